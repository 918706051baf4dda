"""`python -m ctxchat`."""

from ctxchat.cli import entry

entry()
