"""Keeps the figures that the conditions of hooks are compared with (`core.hooks.Moment`): counts calls and tokens as the events
of a session pass, and gives the figures at an event. Runs no hook.
"""

from __future__ import annotations

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import Event, ToolFinished, ToolStarted, TurnStarted
from ctxchat.core.hooks import Moment


class HookMoments:
    """The figures of one session, as hooks see them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen: ContextUsage | None = None  # the gauge as last shown, which counts a round that is not sealed yet
        self._results = 0  # tokens of results that came after `_seen`
        self._calls = 0  # calls of the turn that have started
        self._asked_calls = 0  # calls of the turn that hooks were asked about before they ran

    def count_event(self, event: Event) -> None:
        """Take an event of the session into account."""
        match event:
            case TurnStarted():
                self._calls, self._results, self._asked_calls = 0, 0, 0
            case ToolStarted():
                self._calls += 1
            case ToolFinished(tokens=tokens):
                self._results += tokens
            case ContextUsage():
                self._seen, self._results = event, 0
            case _:
                pass

    def count_asked_call(self) -> None:
        """Count a call that hooks are asked about; it has not started yet."""
        self._asked_calls += 1

    async def at_event(self, event: Event | None) -> Moment:
        """The figures at an event; None for the session's own start and end."""
        conversation = self._conversation
        if isinstance(event, ToolStarted | ToolFinished):
            return self._moment(self._seen or conversation.context_usage, event.name)
        if event is None or isinstance(event, TurnStarted):
            # The message that has just arrived counts. A full refresh only the first time: the turn makes one itself.
            return self._moment(await (conversation.remeasure() if self._seen else conversation.refresh()))
        return self._moment(conversation.context_usage)

    def at_question(self, tool: str) -> Moment:
        """The figures for a hook whose answer counts; `tool` is the tool of the call it is asked about, empty where it is about
        none. That call has not started yet, but counts all the same."""
        moment = self._moment(self._seen or self._conversation.context_usage, tool)
        if not tool:
            return moment
        before = moment.session_calls - moment.tool_calls
        return msgspec.structs.replace(moment, tool_calls=self._asked_calls, session_calls=before + self._asked_calls)

    def _moment(self, context_usage: ContextUsage, tool: str = "") -> Moment:
        """The figures by a gauge. At a call of a `tool` the results that this gauge does not count yet are added."""
        conversation = self._conversation
        groups = conversation.ledger.groups_in_force
        return Moment(
            context_pressure=round((context_usage.used + (self._results if tool else 0)) / context_usage.limit, 4),
            turn_count=conversation.ledger.turn,
            tool_calls=self._calls,
            message_count=sum(bool(item.group) for item in conversation.view.items),
            session_calls=self._calls + sum(len(g.first.calls) for g in groups if g.turn < conversation.ledger.turn),
            session_messages=sum(len(g.messages) for g in groups),
            tool_name=tool,
        )
