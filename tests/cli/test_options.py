"""A chat that begins at once is told what click would have told it, and where click would object nothing begins at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxchat.bootstrap.flags import Flags
from ctxchat.cli.commands import COMMANDS, ctxchat
from ctxchat.cli.options import SWITCHES, TEXTS, of_chat

NAMES = [f"--{name}" for name in (*TEXTS, *SWITCHES, "continue", "help", "version", "windo", "mode")]
WORDS = st.sampled_from(
    [*NAMES, *COMMANDS, "-", "--", "-c", "-h", "", "x", "0", "12", " 7", "-1", "1_0", "٣", "9" * 20]
)
ARGUMENTS = st.lists(WORDS | st.builds("{}={}".format, st.sampled_from(NAMES), WORDS), max_size=5)


def by_click(arguments: Sequence[str]) -> Flags | None:
    """The flags the chat is opened with; None where something else happens."""
    opened: list[Flags] = []

    class Chat(click.Group):
        def invoke(self, ctx: click.Context) -> Any:
            if not ctx._protected_args and not ctx.args:
                with ctx:
                    given = {k.removeprefix("given_"): v for k, v in ctx.params.items()}
                    session = given["session"] or ("-" if given.pop("go_on") else "")
                    named = {k: v for k, v in (given | {"session": session}).items() if v and k != "go_on"}
                    opened.append(Flags(**named))

    group = Chat(name="ctxchat", params=ctxchat.params, invoke_without_command=True)
    try:
        group.main(args=list(arguments), prog_name="ctxchat", standalone_mode=False)
    except (click.exceptions.Exit, click.ClickException):
        return None
    return opened[0] if opened else None


@given(ARGUMENTS)
@example(["--model", "a", "--model=", "--window=07", "--continue"])
def test_what_begins_at_once_is_what_click_reads(arguments: list[str]) -> None:
    given = of_chat(arguments)
    if given is not None:
        assert Flags(**{k: v for k, v in given.items() if v}) == by_click(arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parameter", [p for p in ctxchat.params if p.name not in {"version", "worktree"}], ids=lambda p: p.name
)
def test_each_option_of_the_chat_lets_it_begin_at_once(parameter: click.Option) -> None:
    value = [] if parameter.is_flag else ["8192"]
    given = of_chat([*parameter.opts, *value])
    assert given is not None
    assert msgspec.structs.asdict(Flags(**given)) != msgspec.structs.asdict(Flags())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments", [[name] for name in COMMANDS] + [["--help"], ["-h"], ["--version"], ["--window", "x"]]
)
def test_commands_help_and_faults_are_left_to_click(arguments: list[str]) -> None:
    assert of_chat(arguments) is None
