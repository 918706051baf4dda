"""todo, remember, recall, ask_user, and the catalogue of everything."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext, ToolOutput, ToolQuestion
from ctxchat.core.tokens import rough_count
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.conversation import AskUser, Recall, Remember
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.todo import Todo


async def look(words: str, *how: str) -> str:
    return f"found {words}" if words != "nothing" else ""


@pytest.mark.parametrize(("said", "told"), [("red", "The user answered: red"), (" ", "no answer")])
async def test_the_person_is_asked(context: ToolContext, said: str, told: str) -> None:
    pieces = AskUser().run({"question": " Which? ", "options": ["red", "blue"]}, context)
    question = await anext(pieces)
    assert isinstance(question, ToolQuestion)
    assert (question.text, question.options) == ("Which?", ("red", "blue"))
    question.answered(said)
    question.answered("too late")
    output = await anext(pieces)
    assert isinstance(output, ToolOutput) and told in output.text


def test_a_question_without_words_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="empty"):
        AskUser().access_request({"question": " "}, context)


async def test_memories_are_added_once(call: Callable, tmp_path: Path, context: ToolContext) -> None:
    file = tmp_path / "config" / "memory.md"
    remember = Remember(file)
    assert (await call(remember, text="The user\nlikes tests.")).text == "Remembered."
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("# Mine, without a newline at the end")
    await call(remember, text="A")
    await call(remember, text="B")
    assert (await call(remember, text="A")).text == "That is remembered already."
    assert file.read_text() == "# Mine, without a newline at the end\n- A\n- B\n"
    access_request = remember.access_request({"text": "C"}, context)
    assert (access_request.access, access_request.inside, access_request.preview) == ("write", False, "+- C\n")
    for wrong in ("", " \n", "x" * 1001, "\ud800"):
        with pytest.raises(ToolError):
            await call(remember, text=wrong)


async def test_recall_searches_or_shows(call: Callable) -> None:
    recall = Recall(look, look)
    assert (await call(recall, query="words")).text == "found words"
    assert (await call(recall, id="m12", query=None)).text == "found m12"
    assert (await call(recall, id="nothing")).status == "error"
    assert "Nothing in the archive" in (await call(recall, query="nothing")).text
    with pytest.raises(ToolError):
        await call(recall)


def everything() -> Sequence:
    return standard_tools(sandbox=Sandbox(), environ={}, memory_file=Path("m.md"), search=look, show=look)


def test_the_catalogue() -> None:
    tools = everything()
    assert [tool.spec.name for tool in tools] == [
        "read_file", "list_files", "glob", "grep", "write_file", "edit_file", "shell", "job", "web_fetch", "todo", "ask_user",
        "remember", "recall",
    ]  # fmt: skip
    assert {tool.spec.name for tool in tools if not tool.reads({})} == {
        "write_file", "edit_file", "shell", "job", "todo", "ask_user", "remember",
    }  # fmt: skip
    bare = standard_tools(sandbox=Sandbox(), environ={}, web=False)
    assert not {"web_fetch", "remember", "recall"} & {tool.spec.name for tool in bare}


def test_schemas_are_described_and_short() -> None:
    for tool in everything():
        parameters = tool.spec.parameters
        assert parameters["type"] == "object"
        assert set(parameters.get("required", ())) <= set(parameters["properties"])
        assert "$ref" not in tool.spec.schema
        assert tool.spec.description.endswith(".")
    assert sum(rough_count(tool.spec.schema) for tool in everything()) < 1800


def test_demands_nobody_fetches_are_forgotten(context: ToolContext) -> None:
    todo = Todo()
    for number in range(1000):
        todo.access_request({"items": []}, ToolContext(f"c{number}", context.workspace))
    assert len(todo._judged) <= 256


async def test_a_zero_in_a_memory_does_not_make_the_file_unreadable(call: Callable, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    await call(Remember(file), text="a\0b")
    assert file.read_text() == "- a\ufffdb\n"
