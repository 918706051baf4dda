"""The four parts that an open session, its turns and its setup share."""

from __future__ import annotations

import msgspec

from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.turn.tool_runner import ToolRunner


class SessionParts(msgspec.Struct, frozen=True):
    """The working parts of one session. All of them refer to the same `conversation`."""

    conversation: Conversation
    tool_runner: ToolRunner
    compactor: Compactor
    hooks: Hooks
