"""Skills and command files as values: arguments in their places, commands apart, names, and what the head says of them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import UsageError
from ctxchat.core.prompt_files import (
    MAX_INDEX_CHARS,
    PromptArgument,
    PromptFile,
    called_prompt,
    fill,
    find_prompt,
    named_arguments,
    skills_index,
)


def command(body: str, name: str = "do", **more: str) -> PromptFile:
    return PromptFile(name, "command", "does it", body, f"/{name}.md", **more)  # pyright: ignore[reportArgumentType]


def test_arguments_stand_in_their_places():
    filled = fill(command("All: $ARGUMENTS. First: $1, second: $2, third: [$3]."), 'a "b c"')
    assert filled.text == 'All: a "b c". First: a, second: b c, third: [].'
    assert fill(command("Nothing asked for."), "x y").text == "Nothing asked for.\n\nARGUMENTS: x y"
    assert fill(command("costs $1,000? $10 $ARGUMENTS[1]"), "a b").text == "costs a,000?  b"
    skill = PromptFile("s", "skill", "", "first: $0", "/s/SKILL.md", folder="/s")
    assert fill(skill, "a b").text == "Folder of this skill: /s\n\nfirst: a"


@given(st.text())
def test_whatever_is_given_runs_nothing_that_the_file_does_not_name(arguments: str):
    filled = fill(command("See !`git log $1` and $ARGUMENTS"), arguments)
    assert len(filled.commands) == 1 and filled.commands[0].startswith("git log ")
    assert filled.with_outputs(["<out>"]).startswith("See <out> and ")


@given(st.text(), st.text(max_size=20))
def test_any_text_can_be_a_body(body: str, arguments: str):
    filled = fill(command(body), arguments)
    assert len(filled.texts) == len(filled.commands) + 1
    filled.with_outputs([""] * len(filled.commands))


def test_a_name_is_found_in_full_by_its_origin_and_by_its_end():
    mine, theirs = command("", "review", origin="user"), command("", "review", origin="project")
    deep = command("", "front:end:new")
    files = [theirs, mine, deep, command("", "other:make"), command("", "more:make")]
    assert find_prompt("review", files) is theirs and find_prompt("user:review", files) is mine
    assert find_prompt("new", files) is deep and find_prompt("make", files) is None
    assert find_prompt("user:review", [command("", "user:review", origin="project"), mine]) is mine
    called = called_prompt("/new it\nand more", files)
    assert called is not None and called.file is deep and called.texts[0].endswith("ARGUMENTS: it\nand more")
    for message in ("/etc/hosts is broken", "new", "/nothing", "a /new one"):
        assert called_prompt(message, files) is None


def test_many_long_descriptions_take_no_more_of_the_head_than_they_may():
    skills = [PromptFile(f"s{n}", "skill", "x" * 1_000, "", "") for n in range(200)]
    text = skills_index(skills)
    assert len(text) < MAX_INDEX_CHARS * 1.2 and all(f"- s{n}: " in text for n in range(200))
    assert skills_index([PromptFile("s", "skill", "", "", "", by_model=False), command("")]) == ""


def asking(*names: str) -> PromptFile:
    """A server's prompt that needs all of them."""
    arguments = tuple(PromptArgument(name, f"which {name}", required=True) for name in names)
    return PromptFile("s:p", "prompt", "", origin="server", arguments=arguments, hint="<…>")


VALUES = st.dictionaries(st.sampled_from(["topic", "tone", "length"]), st.text(), min_size=2)


@given(VALUES, st.randoms())
def test_arguments_of_a_server_s_prompt_are_given_by_name_in_any_order(values: dict[str, str], order):
    words = [shlex.quote(f"{name}={value}") for name, value in values.items()]
    order.shuffle(words)
    assert named_arguments(asking(*values), " ".join(words)) == values


@given(st.lists(st.text(alphabet="abc", min_size=1), min_size=2, max_size=6))
def test_words_without_a_name_go_in_order_and_all_that_are_left_to_the_last(words: list[str]):
    assert named_arguments(asking("first", "last"), " ".join(words)) == {"first": words[0], "last": " ".join(words[1:])}


def test_one_argument_takes_all_that_is_typed_as_it_is():
    assert named_arguments(asking("topic"), 'the "old" wall\'s  ivy\n= x') == {"topic": 'the "old" wall\'s  ivy\n= x'}
    assert named_arguments(asking("topic"), "topic='the wall'") == {"topic": "the wall"}
    assert named_arguments(asking(), "and go on") == {}


def test_what_a_server_needs_and_nobody_gave_is_named():
    with pytest.raises(UsageError, match=r"/s:p needs tone \(which tone\)"):
        named_arguments(asking("topic", "tone"), "walls")


def test_a_server_s_prompt_is_called_in_full_only_and_a_file_goes_before_it():
    theirs, own = asking(), PromptFile("s:p", "command", "")
    assert find_prompt("p", [theirs]) is None and find_prompt("s:p", [theirs]) is theirs
    assert find_prompt("s:p", [own, theirs]) is own and find_prompt("server:s:p", [own, theirs]) is theirs
    assert find_prompt("p", [theirs, own]) is own
