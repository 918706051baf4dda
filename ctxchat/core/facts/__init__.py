"""Exact facts that code keeps when messages are folded: `find` looks for them in the record, `collect` carries them from
compaction to compaction, `order` says which matter most, `page` writes what fits. No model is asked, and no summary is read.
"""

from ctxchat.core.facts.collect import Memory, collect, facts_of_change, kept_facts, merged, survival
from ctxchat.core.facts.find import carries, facts_of
from ctxchat.core.facts.gone import turns_down
from ctxchat.core.facts.order import KINDS
from ctxchat.core.facts.page import TITLES, fitting, line_of, render
from ctxchat.core.facts.shared import asks, plain

__all__ = [
    "KINDS",
    "TITLES",
    "Memory",
    "asks",
    "carries",
    "collect",
    "facts_of",
    "facts_of_change",
    "fitting",
    "kept_facts",
    "line_of",
    "merged",
    "plain",
    "render",
    "survival",
    "turns_down",
]
