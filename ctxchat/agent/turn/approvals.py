"""Holds the questions that calls have for a person, by call id, and the rules the person has given.

Only this module has futures; events carry values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from weakref import WeakSet

import msgspec

from ctxchat.agent.turn.permissions import DENIED_BELOW, DENIED_BY_MODE, READS, Judgement, judge, offers, stricter
from ctxchat.core.permissions import AccessRequest, Answer, Mode, Rule, Verdict, parse_rules
from ctxchat.core.ports import ToolLeave, ToolQuestion


class Approvals:
    """Judges calls and holds those that wait for an answer. `rules` are from files; rules that the person gives are kept beside
    them.

    `folder` is the workspace, to which rules given here are limited. Without `interactive` nobody can be asked: what would ask is
    denied. `store` keeps rules for good.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        *,
        folder: str = "",
        interactive: bool = True,
        store: Callable[[Sequence[Rule]], Awaitable[None]] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.rules: Sequence[Rule] = tuple(rules)
        self._given: list[Rule] = []
        self._folder = folder
        self._above: Approvals | None = None
        self._below: WeakSet[Approvals] = WeakSet()
        self._interactive = interactive
        self._store = store
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._questions: dict[str, ToolQuestion] = {}
        self._asked: dict[str, tuple[str, AccessRequest]] = {}

    def judge(self, tool: str, access_request: AccessRequest, more: Sequence[Rule] = ()) -> Judgement:
        """The judgement of a call by mode and rules, with some `more` of them to try; `ask` only where somebody can be asked."""
        judgement = judge(tool, access_request, self._in_force, (*self.all_rules, *more), self._folder)
        if judgement.verdict == "ask" and not self._interactive:
            reason = f"Nobody can be asked here and no rule allows it: {tool} was not run. {judgement.reason}".rstrip()
            return Judgement("deny", "nobody to ask", reason)
        if judgement.verdict == "deny" and judgement.rule in DENIED_BY_MODE and self._above:
            return msgspec.structs.replace(judgement, reason=DENIED_BELOW.format(tool=tool))
        return judgement

    def asking(self, judgement: Judgement) -> Judgement:
        """Turn a judgement that allows into a question, because a hook wants the person asked."""
        if not self._interactive:
            return Judgement("deny", "nobody to ask", "A hook wants this asked, and nobody can be asked here.")
        return msgspec.structs.replace(judgement, verdict="ask")

    def offers(self, tool: str, access_request: AccessRequest) -> tuple[str, ...]:
        """The rules to offer to the person who is asked, each in the form in which it would be stored."""
        return offers(tool, access_request, self._in_force, self.all_rules, self._folder)

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules in force: those given since the session was opened, then those from files; each once."""
        return tuple(r for r in dict.fromkeys((*self._given, *self.rules)) if r.folder in {"", self._folder})

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The patterns of paths that rules forbid to read."""
        return tuple(rule.pattern for rule in self.all_rules if rule.denies and rule.tool == READS)

    @property
    def _in_force(self) -> Mode:
        return stricter(self.mode, self._above._in_force) if self._above else self.mode

    def open(self, call_id: str, asked: tuple[str, AccessRequest] | None = None) -> asyncio.Future[Answer]:
        """Open a question, about this tool and what it would do; the future is done when the person answers."""
        if asked:
            self._asked[call_id] = asked
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        return future

    def close(self, call_id: str) -> None:
        """Drop a question that no longer matters."""
        self._waiting.pop(call_id, None)
        self._questions.pop(call_id, None)
        self._asked.pop(call_id, None)

    def objection(self, call_id: str, text: str) -> str:
        """Why these rules, one per line, are no answer to a call that waits; empty where they are."""
        rules = parse_rules(text)
        if rules is None:
            return "This is no rule. One looks like `shell: uv run pytest **`."
        asked = self._asked.get(call_id)
        if asked and self.judge(*asked, rules).verdict != "allow":
            return "This does not cover the call that waits."
        return ""

    def answer(self, call_id: str, answer: Answer) -> None:
        """Answer a question; nothing happens where it is no longer open."""
        future = self._waiting.get(call_id)
        if future is not None and not future.done():
            future.set_result(answer)

    def ask(self, call_id: str, question: ToolQuestion) -> bool:
        """Open a question of a running call; False where nobody can be asked, which the call is told."""
        if self._interactive:
            self._questions[call_id] = question
        else:
            question.answered("")
        return self._interactive

    def pass_on(self, leave: ToolLeave) -> None:
        """Open the question of a sub-agent's call; the answer is passed on to it."""
        self.open(leave.request.call_id).add_done_callback(
            lambda done: None if done.cancelled() else leave.answered(done.result())
        )

    def below(self, mode: Mode) -> Approvals:
        """The approvals of a sub-agent: they never let more through than this one does at that moment; its questions are its
        own."""
        approvals = Approvals(mode, self.rules, folder=self._folder, interactive=self._interactive, store=self._store)
        approvals._above, approvals._given = self, self._given
        self._below.add(approvals)
        return approvals

    def reply(self, call_id: str, text: str) -> None:
        """A person's word to a question that is still open; empty for none."""
        if question := self._questions.pop(call_id, None):
            question.answered(text)

    async def allow(self, rules: Sequence[Rule], verdict: Verdict) -> None:
        """Remember rules for this folder and session, and for good where that was said."""
        here = [msgspec.structs.replace(rule, folder=self._folder) for rule in rules]
        self._given += here
        if verdict == "always" and self._store is not None:
            await self._store(here)

    def withdraw(self, rule: Rule) -> None:
        """No longer in force from the next call on, for sub-agents at work neither; where it is in writing is not its matter."""
        self.rules = tuple(each for each in self.rules if each != rule)
        if rule in self._given:
            self._given.remove(rule)
        for approvals in self._below:
            approvals.withdraw(rule)
