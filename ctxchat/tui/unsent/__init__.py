"""The message that is not sent yet: its text and attachments, where they come from, how they are kept and sent."""
