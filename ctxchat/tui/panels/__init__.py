"""The screens over the chat, one each, and what they alone are made of. What they share is in `panel`."""
