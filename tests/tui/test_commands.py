"""One table: what is typed, what the palette offers and what keys start."""

from __future__ import annotations

from collections import Counter
from inspect import iscoroutinefunction

import pytest

from ctxchat.config.keys import ACTION_IDS, PRESETS, SWALLOWED, Action, resolve
from ctxchat.tui.actions import handler
from ctxchat.tui.commands import (
    BY_NAME,
    COMMANDS,
    Invocation,
    Unknown,
    bindings,
    default_keys,
    keys_of,
    parse,
    shown_key,
)

ELSEWHERE = {"send", "send_later", "newline", "interrupt", "palette", "scroll_up", "scroll_down"}
"""Actions of the editor and the screen that are no commands."""


def test_every_command_has_a_key_and_no_key_has_two() -> None:
    keys = [key for c in COMMANDS for key in keys_of(c, default_keys())]
    assert all(keys_of(c, default_keys()) for c in COMMANDS)
    assert [k for k, n in Counter(keys).items() if n > 1] == []
    assert not set(keys) & SWALLOWED


def test_every_action_of_the_key_table_is_a_command_or_the_editors() -> None:
    assert {c.id for c in COMMANDS} | ELSEWHERE == set(ACTION_IDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_a_command_does_what_the_table_names(command: Action) -> None:
    assert iscoroutinefunction(handler(command))


def test_keys_of_ones_own_are_bound_instead() -> None:
    keys = resolve({"xray": "ctrl+t", "archive": []}).keys
    bound = {b.action: b.key for b in bindings(keys)}
    assert bound["command('xray')"] == "ctrl+t"
    assert "command('archive')" not in bound


@pytest.mark.parametrize("text", ["hello", "/etc/hosts is broken", "/ alone", "a /help", "//help", "1/2"])
def test_a_message_is_a_message(text: str) -> None:
    assert parse(text) is None


def test_a_command_takes_the_rest_as_its_argument() -> None:
    assert parse(" /rename  The tide gauge \n") == Invocation(BY_NAME["rename"], "The tide gauge")
    assert parse("/COMPACT now") == Invocation(BY_NAME["compact"])
    assert parse("/compact now keep the port") == Invocation(BY_NAME["compact"], "keep the port")
    assert parse("/compact nowhere") == Invocation(BY_NAME["compact"], "nowhere")
    assert parse("/?") == Invocation(BY_NAME["help"])


def test_an_unknown_command_is_named_with_the_nearest_one() -> None:
    assert parse("/hepl") == Unknown("hepl", "help")
    assert parse("/arch") == Unknown("arch", "archive")
    assert parse("/zzzz") == Unknown("zzzz", "")


def test_keys_read_as_people_write_them() -> None:
    assert [shown_key(k) for k in ("f8", "shift+f8", "escape", "ctrl+p")] == ["F8", "shift+F8", "esc", "ctrl+p"]


def test_every_alt_key_is_one_that_terminals_send_as_such():
    """Textual reads some (alt+b, alt+f) as moves of the cursor by words, so a command there could never be called."""
    from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

    taken = {sequence[1] for sequence in ANSI_SEQUENCES_KEYS if len(sequence) == 2 and sequence[0] == "\x1b"}
    keys = [k for preset in PRESETS for ks in resolve({}, preset).keys.values() for k in ks]
    assert [key for key in keys if key.startswith("alt+") and key.removeprefix("alt+") in taken] == []
