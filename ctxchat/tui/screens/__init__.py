"""The screens: the chat, and those it opens."""
