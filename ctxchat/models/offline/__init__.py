"""The built-in assistant: no language model, but a real agent that finds, reads, quotes, runs and summarises by rule.

It sees what any model sees, the view and the tools it was offered, and nothing else. Here is only what it is called and holds:
who has a model does not load it.
"""

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import OFFLINE_NAME as OFFLINE_NAME

OFFLINE_WINDOW = Window(32_768, "loaded")
"""It has no window of its own; this one makes every feature for full windows usable without a model."""
