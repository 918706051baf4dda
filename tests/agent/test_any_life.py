"""A session through anything, in any order, with a real store: turns, cancels, tools, answers, passes, changes by hand, models,
forks, kills. After each step the view is valid, the parts add up, each group is covered once, and the record has only grown."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from ctxchat.core.budget import Window
from ctxchat.core.errors import CtxchatError, ModelError, StorageError
from ctxchat.core.events import Failed, TurnFinished, TurnStarted, Usage
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.view import problems
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import Journal, begin_journal, open_journal
from tests.agent.desk import Desk, Echo
from tests.agent.test_any_history import Filler
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import Reply, ScriptedModel, calls, fails, says

NAMES = sorted(builtin_strategies(PlanOptions()))
TOOLS = ("echo", "write", "rm -rf", "", "\x1b[2J")

texts = st.sampled_from(["hello", "go on", "word " * 200, "日本語。" * 40, "\x1b[2J\ud800", " "]) | st.text(max_size=20)
odd = st.sampled_from([None, "counted", Usage(10**9, 5), Usage(-1, -1), Usage(3, 1, cost_usd=1e4), Usage(100, 10**7)])
arguments = st.sampled_from(
    ['{"text": "x"}', '{"text": "refuse"}', '{"text": "crash"}', "{broken", "[1]", '{"text": "\\ud800"}']
)
wanted = st.lists(
    st.builds(ToolCall, st.sampled_from(["", "a", "a"]), st.sampled_from(TOOLS), arguments), min_size=1, max_size=3
)
replies = st.one_of(
    st.builds(says, texts, usage=odd),
    st.builds(lambda made, text: calls(*made, text=text), wanted, texts),
    st.builds(fails, st.sampled_from(["server", "auth", "bad_request"]).map(lambda k: ModelError("no", kind=k)), texts),
    st.just(fails(ModelError("maximum context length exceeded", kind="bad_request", status=400))),
)


class Mortal:
    """A journal whose process can be killed: nothing is written from then on."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        if self.dead and name != "session":
            raise StorageError("Killed.")
        return getattr(self._journal, name)

    def kill(self) -> None:
        self.dead = True
        self._journal._lock.release()  # as the system does for a process that is gone


class Life(RuleBasedStateMachine):
    """One session of one person; `desk` is the process it is open in."""

    @initialize(window=st.sampled_from([2_000, 8_000, 60_000]))
    def begin(self, window: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.database = Database(self.folder / "data")
        self.window, self.system, self.mode = window, "You are a test.", "ask"
        self.options = Options(retries=1, auto_compact="off", keep_recent=4, output_reserved=200, max_rounds=4)
        self.plan: list[Reply] = []
        self.record: tuple[Message, ...] = ()
        self.said: list[str] = []
        self.open(begin_journal(self.database, "m", "/"))

    def open(self, opened: Any) -> None:
        self.journal = Mortal(opened.journal)
        self.desk = Desk(
            self.model("a/m"),
            others={name: self.model(name) for name in ("a/m", "b/m")},  # type: ignore[arg-type]
            tools=[Echo(), Echo("write", writes=True)],
            options=self.options,
            mode=self.mode,  # type: ignore[arg-type]
            summariser=Filler(),
            system=self.system,
            journal=self.journal,  # type: ignore[arg-type]
            configure=lambda agent, model: self.edited,
        )
        self.edited = self.desk.config
        self.desk.conversation.state = opened.state

    def model(self, name: str, at: str | None = None) -> ScriptedModel:
        return ScriptedModel(self.script(), name=name, window=Window(self.window, "configured"))

    def script(self) -> Any:
        def answer(request: ModelRequest) -> Reply:
            assert problems(request.view) == []
            return self.plan.pop(0) if self.plan else says("well")

        while True:
            yield answer

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def turn(self, text: str, answers: list[str]) -> None:
        events = await self.desk.say(text, answers)
        assert of(events, TurnFinished) and not [f for f in of(events, Failed) if f.kind == "internal"]

    @rule(
        text=texts, plan=st.lists(replies, max_size=3), answers=st.lists(st.sampled_from(["once", "deny", "session"]))
    )
    def send(self, text: str, plan: list[Reply], answers: list[str]) -> None:
        self.plan = list(plan)
        self.run(self.turn(text, [*answers, *["deny"] * 20]))
        self.said.append(text)

    @rule(text=texts, plan=st.lists(replies, max_size=2), steps=st.integers(0, 60))
    def cancel(self, text: str, plan: list[Reply], steps: int) -> None:
        self.plan = list(plan)

        async def begun() -> bool:
            started = asyncio.Event()

            async def watch() -> None:
                async for stamped in self.desk.session.send(text):
                    if isinstance(stamped.event, TurnStarted):
                        started.set()

            task = asyncio.create_task(watch())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return started.is_set()

        if self.run(begun()):
            self.said.append(text)

    @rule(name=st.sampled_from(NAMES), keep=st.integers(0, 6))
    def compact(self, name: str, keep: int) -> None:
        async def one_pass() -> None:
            preview = await self.desk.session.preview("", keep, strategy=name, target=0.2)
            async for _ in self.desk.session.free_up(preview):
                pass

        with suppress(CtxchatError):
            self.run(one_pass())

    @rule(verb=st.sampled_from(["undo", "redo", "pin", "drop", "shrink", "restore"]), place=st.integers(0, 30))
    def change(self, verb: str, place: int) -> None:
        groups, changes = self.desk.state.ledger.groups, self.desk.session.changes
        names = [""] if verb in {"undo", "redo"} else [g.id for g in groups]
        if names:
            with suppress(CtxchatError):
                self.run(getattr(changes, verb)(names[place % len(names)]))

    @rule(kind=st.sampled_from(["drop", "shrink", ""]), place=st.integers(0, 30))
    def put_off(self, kind: Any, place: int) -> None:
        """Until the next pass, which it may never stand in the way of."""
        groups, changes = self.desk.state.ledger.groups, self.desk.session.changes
        if groups:
            name = groups[place % len(groups)].id
            with suppress(CtxchatError):
                self.run(changes.defer(name, kind) if kind else changes.undefer(name))
            self.run(self.desk.session.preview())

    @rule(agent=st.sampled_from(["", None]))
    def put_off_an_agent(self, agent: str | None) -> None:
        self.run(self.desk.session.setup.defer_setup(agent=agent, effort=agent))

    @rule(back=st.integers(1, 12))
    def undo_in_part(self, back: int) -> None:
        """Of the newest pass the newest groups, as is offered where not all of it fits."""
        ledger = self.desk.state.ledger
        if ledger.compactions:
            newest = ledger.compactions[-1]
            covered = {g for edit in newest.edits for g in edit.covers}
            groups = [g.id for g in ledger.groups if g.id in covered][-back:]
            with suppress(CtxchatError):
                self.run(self.desk.session.changes.undo(newest.id, groups))

    @rule(name=st.sampled_from(["a/m", "b/m"]))
    def switch_model(self, name: str) -> None:
        with suppress(CtxchatError):
            self.run(self.desk.session.setup.switch_model(name))

    @rule(
        system=st.sampled_from(["Be brief.", "Be long. " * 50]),
        window=st.sampled_from([2_000, 8_000, 60_000]),
        keep=st.integers(1, 12),
        strategy=st.sampled_from(["pipeline", *NAMES]),
        mode=st.sampled_from(["ask", "read-only", "plan", "auto-edit", "all"]),
        tools=st.sampled_from([None, ("echo",), ()]),
        plan=st.lists(replies, max_size=2),
        steps=st.none() | st.integers(0, 60),
    )
    def edit_settings(
        self,
        system: str,
        window: int,
        keep: int,
        strategy: str,
        mode: Any,
        tools: tuple[str, ...] | None,
        plan: list[Reply],
        steps: int | None,
    ) -> None:
        """Between two turns, or so many steps into one: then it holds from the next on."""
        self.system, self.window, self.mode, self.plan = system, window, mode, list(plan)
        self.options = replace(self.options, keep_recent=keep, strategy=strategy)
        self.edited = replace(
            self.edited,
            system=system,
            options=self.options,
            mode=mode,
            tools=tools,
            serving=window,
            open_model=self.model,
        )

        async def edited() -> None:
            turn = asyncio.create_task(self.turn("edit", ["deny"] * 20)) if steps is not None else None
            for _ in range(steps or 0):
                await asyncio.sleep(0)
            await self.desk.session.setup.adapt()
            if turn is not None:
                await turn
                self.said.append("edit")
                await self.turn("go by it", ["deny"] * 20)
                self.said.append("go by it")

        self.run(edited())
        assert self.desk.session.setup.options == self.options and self.desk.approvals.mode == mode
        assert set(self.desk.session.setup.tools) <= set(("echo", "write") if tools is None else tools)

    @rule()
    def fork(self) -> None:
        new = sessions.fork(self.database, self.journal.session)
        copied = loading.load_state(self.database, new).state.ledger.messages()
        assert [m.text for m in copied] == [m.text for m in self.stored()]

    @rule(text=texts, plan=st.lists(replies, max_size=2), steps=st.integers(0, 60))
    def kill_in_a_turn(self, text: str, plan: list[Reply], steps: int) -> None:
        self.plan = list(plan)

        async def killed() -> None:
            task = asyncio.create_task(self.desk.say(text, ["once"] * 20))
            for _ in range(steps):
                await asyncio.sleep(0)
            self.journal.kill()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.run(killed())
        self.again()

    @rule(whole=st.booleans())
    def leave(self, whole: bool) -> None:
        if whole:
            self.run(self.desk.session.close())
        else:
            self.journal.kill()
        self.again()

    def again(self) -> None:
        kept = any(row.id == self.journal.session for row in sessions.rows(self.database))
        assert kept or not self.record, "only what nothing was ever said in is not kept"
        self.open(open_journal(self.database, self.journal.session) if kept else begin_journal(self.database, "m", "/"))

    def stored(self) -> tuple[Message, ...]:
        return loading.load_state(self.database, self.journal.session).state.ledger.messages()

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "desk"):
            return
        ledger = self.desk.state.ledger
        self.run(self.desk.session.measure())
        view, context_usage = self.desk.session.view, self.desk.session.context_usage
        assert problems(view) == [] and adds_up(context_usage)
        assert context_usage.used < 4 * view.raw + 500 and 0 <= context_usage.cost_usd < 100
        assert [c for e in ledger.live() for c in e.covers] != [] or not ledger.groups
        assert sorted(c for e in ledger.live() for c in e.covers) == sorted(g.id for g in ledger.groups)
        assert len(earlier(ledger)) <= 1
        stored = self.stored()
        assert [m.text for m in stored[: len(self.record)]] == [m.text for m in self.record], "the record only grows"
        assert len(stored) == len(ledger.messages())
        self.record = stored
        users = [m.text for m in stored if m.role == "user"]
        left = iter(users)
        assert all(sound(text) in left for text in self.said), "what was acknowledged is there, in its order"

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            with suppress(CtxchatError):
                self.run(self.desk.session.close())
            self.runner.close()
            self.database.close()
            shutil.rmtree(self.folder)


def sound(text: str) -> str:
    return text.replace("\ud800", "\ufffd")


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def test_a_session_through_anything() -> None:
    run_state_machine_as_test(Life, settings=settings(QUICK, max_examples=20, stateful_step_count=15))


@pytest.mark.long
def test_many_sessions_through_anything() -> None:
    run_state_machine_as_test(Life, settings=settings(QUICK, max_examples=300, stateful_step_count=40))
