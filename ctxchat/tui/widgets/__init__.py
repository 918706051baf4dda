"""Widgets that the chat and the screens over it share."""
