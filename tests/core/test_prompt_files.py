"""Skills and command files as values: arguments in their places, commands apart, names, and what the head says of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.prompt_files import (
    MAX_INDEX_CHARS,
    PromptFile,
    called_prompt,
    fill,
    find_prompt,
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
    called = called_prompt("/new it\nand more", files)
    assert called is not None and called.file is deep and called.texts[0].endswith("ARGUMENTS: it\nand more")
    for message in ("/etc/hosts is broken", "new", "/nothing", "a /new one"):
        assert called_prompt(message, files) is None


def test_many_long_descriptions_take_no_more_of_the_head_than_they_may():
    skills = [PromptFile(f"s{n}", "skill", "x" * 1_000, "", "") for n in range(200)]
    text = skills_index(skills)
    assert len(text) < MAX_INDEX_CHARS * 1.2 and all(f"- s{n}: " in text for n in range(200))
    assert skills_index([PromptFile("s", "skill", "", "", "", by_model=False), command("")]) == ""
