"""The built-in assistant: no language model, but a real agent that finds, reads, quotes, runs and summarises by rule.

It sees what any model sees, the view and the tools it was offered, and nothing else.
"""

from ctxchat.models.offline.assistant import OFFLINE_NAME, OFFLINE_WINDOW, OfflineAssistant, Reply, decide
from ctxchat.models.offline.summary import OfflineSummariser, extractive_summary

__all__ = [
    "OFFLINE_NAME",
    "OFFLINE_WINDOW",
    "OfflineAssistant",
    "OfflineSummariser",
    "Reply",
    "decide",
    "extractive_summary",
]
