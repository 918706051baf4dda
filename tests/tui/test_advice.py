"""What an option means in tokens here, and advice in the right direction with the session's own figures."""

from __future__ import annotations

import msgspec
import pytest

from ctxchat.config.option_table import find_option
from ctxchat.config.schema import DEFAULTS
from ctxchat.config.trust import held_lines
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.journal import SessionState
from ctxchat.core.record import CompactionRecord, Reason, SideUsage
from ctxchat.core.sections import Section
from ctxchat.presentation.advice import advice
from ctxchat.presentation.effects import effect, with_marks
from ctxchat.tui.commands import COMMANDS, default_keys
from ctxchat.tui.panels.help import entries, letters, lines, writing
from tests.tui.harbour import HarbourSession

DESK = HarbourSession(window=200_000)
FIGURES = with_marks(DESK.context_usage, compression_trigger=0.75, target=0.5)
CONTEXT = DEFAULTS.context


def told(key: str, value: object) -> str:
    option = find_option(tuple(key.split(".")))
    assert option
    return effect(option, key, value, FIGURES, DESK.view)


def test_shares_are_told_in_tokens_of_this_window() -> None:
    assert (FIGURES.limit, FIGURES.trigger_tokens) == (195_904, 146_928)
    assert told("context.compression_trigger", 0.75) == "0.75 = at 146.9k of 195.9k"
    assert told("context.compression_trigger", 0.98).startswith("0.98 = at 182.9k of 195.9k, held back")
    assert told("context.target", 0.5) == "0.5 = at 98.0k of 195.9k"
    assert told("context.prepare.soft_mark", 0.6) == "0.6 = at 117.5k of 195.9k"
    assert told("context.reactive.full_trigger", 0.92) == "0.92 = at 180.2k of 195.9k"


def test_a_working_limit_that_lowers_a_share_is_named() -> None:
    context_usage = msgspec.structs.replace(FIGURES, working_limit=50_000, working_limit_source="configured")
    for key, value, said in (
        ("context.compression_trigger", 0.75, "0.75 = at 50.0k of 195.9k, the working limit lowers it"),
        ("context.compression_trigger", 0.2, "0.2 = at 39.2k of 195.9k"),
        ("context.target", 0.5, "0.5 = at 25.0k of 50.0k"),
        ("context.prepare.soft_mark", 0.6, "0.6 = at 40.0k of 195.9k, the working limit lowers it"),
        ("context.reactive.micro_trigger", 0.8, "0.8 = at 50.0k of 195.9k, the working limit lowers it"),
    ):
        option = find_option(tuple(key.split(".")))
        assert option and effect(option, key, value, context_usage, DESK.view) == said


def test_sizes_are_told_by_what_the_session_holds() -> None:
    assert told("context.output_reserved", 4096) == "195.9k left for the prompt"
    assert told("context.output_reserved", 90_000).startswith("50.0k, the most that is kept free here; 150.0k left")
    assert told("context.max_tokens", 0) == "the window here is 200.0k"
    few, many = (told("context.keep_recent", n) for n in (2, 10_000))
    assert few.startswith("the newest 2 hold") and few != many
    assert "results are longer" in told("context.tool_results.max_tokens", 500)
    assert told("context.sections.tools.budget", 10).endswith("over it") and "now" in told(
        "context.sections.tools.budget", 0
    )
    assert told("context.summary_max_tokens", 1959) == "1 % of the limit"


@pytest.mark.parametrize("value", [None, True, "x", [1], {}, -1, 0, 10**12, float("nan")])
def test_any_value_may_be_asked_about(value: object) -> None:
    from ctxchat.config.option_table import options

    for option in options():
        assert isinstance(effect(option, option.key, value, FIGURES, DESK.view), str)


@pytest.mark.parametrize("key", ["context.max_tokens", "context.output_reserved", "context.tool_results.max_tokens"])
def test_a_size_below_zero_means_nothing(key: str) -> None:
    assert told(key, -5) == ""


def test_new_marks_move_on_the_bar_and_everything_still_adds_up() -> None:
    for marks in ({"compression_trigger": 0.5}, {"target": 0.2}, {"output_reserved": 40_000}, {"max_tokens": 32_000}):
        seen = with_marks(FIGURES, **marks)
        assert sum(s.tokens for s in seen.sections) == max(seen.window, seen.used + seen.reserved_output)
        assert seen != FIGURES and seen.target_tokens <= seen.trigger_tokens


# ── advice ──


def passed(reason: Reason, *turns: int) -> SessionState:
    one = CompactionRecord(
        outcome="compacted",
        id="k",
        reason=reason,
        strategy="pipeline",
        before=SideUsage(9, 1),
        after=SideUsage(1, 1),
    )
    return SessionState(compactions=(one,) * len(turns), endings=tuple(turns), fills=(1,) * (max(turns) + 1))


def with_overhead(tokens: int) -> ContextUsage:
    sections = tuple(msgspec.structs.replace(s, tokens=tokens) if s.name == "tools" else s for s in FIGURES.sections)
    return msgspec.structs.replace(FIGURES, sections=sections)


def test_a_session_that_went_well_gets_no_advice() -> None:
    assert advice(FIGURES, SessionState(), CONTEXT) == ()
    assert advice(FIGURES, passed("auto", 2, 12, 24), CONTEXT) == ()
    assert advice(FIGURES, passed("manual", 20, 21, 22, 23), CONTEXT) == ()


def test_who_compacts_too_often_is_told_to_raise_the_trigger() -> None:
    (one,) = advice(FIGURES, passed("auto", 20, 21, 23), CONTEXT)
    assert one.key == "context.compression_trigger"
    assert "3 compactions in the last 5 turns" in one.text
    assert "Raise context.compression_trigger (0.75 → 0.85, at 166.5k instead of 146.9k)" in one.text
    assert "larger window" in one.text and "ower" not in one.text


def test_a_trigger_that_cannot_go_higher_leaves_a_larger_window() -> None:
    full = with_marks(FIGURES, compression_trigger=0.95)
    (one,) = advice(full, passed("auto", 20, 21, 22), msgspec.structs.replace(CONTEXT, compression_trigger=0.95))
    assert one.key == "context.max_tokens" and "larger window" in one.text and "Raise" not in one.text


def test_refused_requests_call_for_an_earlier_pass_or_the_true_window() -> None:
    (one,) = advice(FIGURES, passed("context_overflow", 3), CONTEXT)
    assert "Lower context.compression_trigger (0.75 → 0.65, at 127.3k)" in one.text and "1 request here was" in one.text
    knowledge = msgspec.structs.replace(FIGURES, window_source="learned", window=128_000)
    (one,) = advice(knowledge, passed("context_overflow", 3), CONTEXT)
    assert "set context.max_tokens = 128000" in one.text and one.key == "context.max_tokens"


def test_heavy_overhead_is_named_by_its_parts() -> None:
    (one,) = advice(with_overhead(70_000), SessionState(), CONTEXT)
    assert "tools 70.0k" in one.text and "would not help" not in one.text
    (one,) = advice(with_overhead(170_000), SessionState(), CONTEXT)
    assert "above the trigger, so a compaction would not help" in one.text


# ── trust, help ──


def test_what_waits_for_trust_is_told_as_what_it_does() -> None:
    held = {
        "model": "evil/x",
        "permissions.rules": ["shell: *"],
        "mcp": {"files": {"command": "npx", "args": ["-y", "thing\x1b[2J"]}, "far": {"url": "http://x"}},
        "hooks": [{"event": "error", "action": "run", "command": "make lint"}],
        "agents": {"a": {"permissions": "all"}},
    }
    assert held_lines(held) == (
        "hook at error: runs make lint",
        "server files: starts npx -y thing\\x1b[2J",
        "server far: talks to http://x",
        "allowed without asking: shell: *",
        'model = "evil/x"',
        'agent a: permissions = "all"',
    )


@pytest.mark.parametrize("width", [17, 25, 37, 57, 77, 117])
def test_help_keeps_to_its_width_and_names_everything(width: int) -> None:
    keys = default_keys()
    for rows in (entries(keys), writing(keys)):
        shown = lines(rows, width)
        text = shown.plain
        assert all(len(line.rstrip()) <= width for line in text.splitlines()), width
        assert all(row[0] in text for row in rows)
    commands = lines(entries(keys), width).plain
    assert all(f"/{c.name}" in commands for c in COMMANDS)
    assert all(len(line.rstrip()) <= max(width, 17) for line in letters(width).plain.splitlines())
    assert Section("tools", 1).name in letters(width).plain
