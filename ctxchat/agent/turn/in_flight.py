"""Holds what of a turn is in flight, that is not in the record (the session's messages) yet: a reply that is arriving, or a
round, which is a reply with tool calls, while its calls run.

However the turn ends, this is sealed into the record first, so that every call has a result and the next request is valid. Knows
no model and no tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.turn.model_calls import ArrivingReply
from ctxchat.core.clip import clip
from ctxchat.core.grouping import close_round, single
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message

CANCELLED = "[cancelled by the user before it finished]"
FAILED = "[not run: the turn ended with an error]"
NOT_KEPT = "[this ran, but the turn ended with an error and its result was not kept]"
LAST_ROUND = "[not run: the turn had reached its last round]"

MAX_STOPPED_RESULT_TOKENS = 1000
"""Tokens kept of the output of a call that was stopped."""


class InFlight:
    """What is in flight in a conversation. `begun` maps the ids of the calls that began to run to their output so far."""

    def __init__(self, conversation: Conversation, begun: Mapping[str, str]) -> None:
        self._conversation = conversation
        self._begun = begun
        self.draft = ArrivingReply()
        self.reply: Message | None = None  # complete, but not sealed
        self.results: dict[str, Message] = {}  # by the id of the call
        self.text = ""  # that of the last reply that had any

    def set_reply(self, message: Message, before: str = "") -> None:
        """Take over a reply that is complete; `before` is the text of the half reply that it continues."""
        self.reply, self.results, self.draft = message, {}, ArrivingReply()
        self.text = f"{before}{message.text}" if message.text else self.text

    async def seal(self, closing: str) -> None:
        """Seal what is open; calls without a result get `closing` for one. Never raises: what the store refuses is written
        later."""
        conversation = self._conversation
        group = self._group(closing)
        self.reply, self.draft = None, ArrivingReply()
        if group is not None:
            await conversation.write_or_owe(Sealed((group,)))
        with suppress(Exception):  # the next request compiles the view again, and then reports the fault
            await conversation.remeasure()

    def _group(self, closing: str) -> Group | None:
        """What is in flight as a group: a half reply marked as interrupted, or a round with `closing` in place of missing
        results; None for nothing."""
        conversation, reply = self._conversation, self.reply
        if reply is None:
            return self._half_reply()
        if reply.seq < conversation.ledger.next_seq:
            return None  # sealed already: the cancel came in the middle of it
        if not reply.calls:
            return single("reply", reply, conversation.ledger.turn)
        next_seq = reply.seq + len(reply.calls) + 1
        results = dict(self.results)
        for seq, call in enumerate(reply.calls, reply.seq + 1):
            if call.id in self._begun and call.id not in results:
                shown = self._cut_off(self._begun[call.id], NOT_KEPT if closing == FAILED else closing)
                results[call.id] = Message(seq, "tool", shown, call_id=call.id, name=call.name, at=reply.at)
        return close_round(reply, list(results.values()), conversation.ledger.turn, next_seq, closing)

    def _half_reply(self) -> Group | None:
        """The reply that is arriving, as a group; its calls are left out, since they may not be complete. None where nothing
        arrived."""
        if not self.draft.has_begun:
            return None
        conversation = self._conversation
        message = self.draft.message(conversation.ledger.next_seq, conversation.clock.now(), interrupted=True)
        self.text = message.text
        return single("reply", msgspec.structs.replace(message, calls=()), conversation.ledger.turn)

    def _cut_off(self, shown: str, closing: str) -> str:
        """The output of a call that was stopped, and `closing`, which says so."""
        if not shown.strip():
            return closing
        text = clip(shown.rstrip(), MAX_STOPPED_RESULT_TOKENS, self._conversation.counter.count_text)
        return f"{text}\n{closing}"
