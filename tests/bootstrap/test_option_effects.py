"""Every option of [context] and [tools] has an effect: set to something else, something observable in an open session is another.

What an agent option does in turn is tested with the agent; here it is seen to arrive, or its effect on view, plan and gauge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ctxchat.agent.session import Session
from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import Loaded, load_settings
from ctxchat.config.option_table import options
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.strategies.base import Plan
from ctxchat.storage.database import Database

PlanningSnapshot = Callable[[Session], Any]


def history() -> tuple[Message, ...]:
    found: list[Message] = []
    for n in range(12):
        call = ToolCall(f"c{n}", "read_file", f'{{"path": "f{n}.py"}}')
        start = 4 * n
        found += [
            Message(start + 1, "user", f"question {n}? " * 20),
            Message(start + 2, "assistant", "I look.", calls=(call,), reasoning=Reasoning("thinking " * 40)),
            Message(start + 3, "tool", f"line {n}\n" * 150, call_id=call.id, name="read_file"),
            Message(start + 4, "assistant", f"answer {n}. " * 20),
        ]
    return tuple(found)


def option(name: str) -> PlanningSnapshot:
    """What the agent is told."""
    return lambda session: getattr(session.setup.options, name)


async def planned(session: Session) -> Plan | None:
    return (await session.preview()).plan


def plan(look: Callable[[Plan], Any]) -> Callable[[Session], Any]:
    async def found(session: Session) -> Any:
        made = await planned(session)
        return look(made) if made else None

    return found


def shrinks(made: Plan) -> int:
    return sum(len(s.edits) for s in made.steps if s.name == "shrink_tool_results")


def shown(session: Session) -> int:
    return sum(bool(item.group) for item in session.view.items)


def sources(session: Session) -> list[str]:
    return [i.source for i in session.view.items if i.section == "injected"] + [
        str(session.context_usage.tokens("injected"))
    ]


EFFECTS: dict[str, tuple[str, PlanningSnapshot]] = {
    "context.max_tokens": ("20000", lambda s: (s.context_usage.window, s.context_usage.window_source)),
    "context.max_output": ("900", lambda s: s.setup._config.serving),
    "context.output_reserved": ("2000", lambda s: (s.context_usage.reserved_output, s.context_usage.limit)),
    "context.strategy": ('"truncate"', plan(lambda p: [s.name for s in p.steps])),
    "context.keep_recent": ("2", plan(lambda p: p.keep_recent)),
    "context.keep_turns": ("2", option("keep_turns")),
    "context.compression_trigger": ("0.6", lambda s: s.context_usage.trigger_tokens),
    "context.target": ("0.2", plan(lambda p: p.after)),
    "context.summary_max_tokens": ("300", option("summary_max_tokens")),
    "context.facts_max_tokens": ("300", option("facts_max_tokens")),
    "context.working_set": ("0.2", option("working_set")),
    "context.auto_compact": ('"ask"', option("auto_compact")),
    "context.auto_cold": ('"send"', option("auto_cold")),
    "context.working_limit": ("9000", lambda s: (s.context_usage.working_limit, s.context_usage.trigger_tokens)),
    "context.min_messages": ("400", option("min_messages")),
    "context.compiler": ('"current_tool_trace"', shown),
    "context.shown_tokens": ("900", shown),
    "context.redact": ('["question [0-9]"]', lambda s: sum("[redacted]" in i.message.text for i in s.view.items)),
    "context.inject": (
        '["Speak Latin."]',
        lambda s: [i.message.text for i in s.view.items if "Speak Latin." in i.message.text],
    ),
    "context.providers": ('["identity"]', sources),
    "context.transforms": ("[]", lambda s: s._conversation._transforms),
    "context.summary_model.name": ('"openai/small"', lambda s: s.planner.writer),
    "context.summary_model.api_base": ('"http://x"', lambda s: s.setup._config.serving),
    "context.summary_model.api_key_env": ('"KEY"', lambda s: s.setup._config.serving),
    "context.summary_model.window": ("9000", lambda s: s.setup._config.serving),
    "context.reactive.enabled": ("false", option("reactive_per_turn")),
    "context.reactive.micro_trigger": ("0.8", option("micro_trigger")),
    "context.reactive.full_trigger": ("0.95", option("full_trigger")),
    "context.reactive.preserve_recent_rounds": ("5", option("preserve_recent_rounds")),
    "context.reactive.micro_batch_groups": ("2", option("micro_batch_groups")),
    "context.reactive.max_per_turn": ("1", option("reactive_per_turn")),
    "context.tool_results.max_tokens": ("900", option("tool_result_tokens")),
    "context.tool_results.keep_recent": ("8", plan(shrinks)),
    "context.tool_results.max_recent_tokens": ("10", option("recent_result_tokens")),
    "context.emergency.keep_floor": ("2", option("emergency_floor")),
    "context.emergency.max_calls": ("2", option("emergency_calls")),
    "context.prepare.enabled": ("false", option("prepare")),
    "context.prepare.soft_mark": ("0.5", option("soft_mark")),
    "context.prepare.max_cost": ("0.1", option("prepare_cost")),
    "context.sections.*.budget": ("10", lambda s: [x.name for x in s.context_usage.over_budget]),
    "context.provider_compaction": ("true", lambda s: s._conversation._config.serving),
    "tools.shell_timeout": ("7.0", lambda s: s._tool_runner.limits.seconds),
    "tools.max_output_chars": ("2000", lambda s: s._tool_runner.limits.max_chars),
    "tools.max_rounds": ("3", option("max_rounds")),
    "tools.web": ("false", lambda s: "web_fetch" in s._tool_runner.names),
}
UNSEEN = {"context.transforms"}
"""A list that only plug-ins fill: what it does is shown with the plug-in of the documentation."""


SHOWN_ELSEWHERE = {"tools.mcp_wait"}
"""It takes a server that is late to see it: `test_servers`."""


def test_every_option_is_in_the_table() -> None:
    keys = {o.key for o in options() if o.path[0] in ("context", "tools")}
    assert keys == set(EFFECTS) | SHOWN_ELSEWHERE


def read(folder: Path, text: str) -> Loaded:
    """These settings."""
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(text, encoding="utf-8")
    loaded = load_settings(folder, environ={"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(folder / "d")})
    assert loaded.problems == (), [p.text for p in loaded.problems]
    return loaded


@asynccontextmanager
async def running(folder: Path, text: str) -> AsyncIterator[tuple[Program, Session]]:
    """A session with this history, under these settings, and its program."""
    program = Program(Flags(), read(folder, text), folder, Database(folder / "data"))
    try:
        session = await program.open()
        await session._conversation.write(Sealed(group_messages(history())))
        await session.measure()
        yield program, session
        await session.close()
    finally:
        await program.close()


@asynccontextmanager
async def opened(folder: Path, text: str) -> AsyncIterator[Session]:
    """A session with this history, under these settings."""
    async with running(folder, text) as (_, session):
        yield session


async def observed(session: Session, look: PlanningSnapshot) -> Any:
    seen = look(session)
    return await seen if hasattr(seen, "__await__") else seen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def usual(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """Under no settings; to be looked at."""
    async with opened(tmp_path_factory.mktemp("usual"), "") as session:
        yield session


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("key", [k for k in EFFECTS if k not in UNSEEN])
async def test_another_value_is_something_else_to_see(tmp_path: Path, usual: Session, key: str) -> None:
    value, look = EFFECTS[key]
    async with opened(tmp_path, f"{key.replace('*', 'tools')} = {value}\n") as changed:
        assert await observed(usual, look) != await observed(changed, look)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_rewrites_what_was_sent_says_so_and_nothing_else_does(tmp_path: Path) -> None:
    """An edit under a conversation: a break of what its server has cached comes with these options, and with no others."""
    lines = {key: f"{key.replace('*', 'tools')} = {value}" for key, (value, _) in EFFECTS.items()}
    del lines["context.transforms"]  # as above
    found = dict[str, bool]()
    async with running(tmp_path, "") as (program, session):
        async with aclosing(session.send("hello")) as stream:
            assert [stamped async for stamped in stream]
        for key, line in lines.items():
            program.adopt(await asyncio.to_thread(read, tmp_path, line))
            found[key] = bool((await session.setup.adapt()).breaks)
    assert found == {o.key: bool(o.facts.rewrites) for o in options() if o.key in found}


def test_providers_and_transforms_keep_their_order(tmp_path: Path) -> None:
    from ctxchat.bootstrap.extensions import Extensions
    from ctxchat.bootstrap.session_settings import Configuring

    order = ["identity", "skills", "workspace"]
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text(f"context.providers = {order}\n")
    loaded = load_settings(
        tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(tmp_path / "d")}
    )
    program = Program(Flags(), loaded, tmp_path, Database(tmp_path / "data"))
    made = Configuring(program, Extensions(), lasting=False)(None, "x")
    assert [p.source_id for p in made.context_sources._providers._providers] == order
    program.database.close()
