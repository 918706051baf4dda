"""What an editor is told by what it says that it can: compactions, sub-agents and files, and a gauge that is ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import groupby
from typing import Any

import pytest
from acp.schema import AcceptElicitationResponse

from ctxchat.acp.updates import compaction_over
from ctxchat.core.record import CompactionRecord
from ctxchat.core.secrets import masked
from tests.cli.conftest import Cli, Home
from tests.cli.test_acp import Editor, begun, editing, harbour
from tests.doubles.replies import call, calls, says
from tests.e2e.serving import model_options, serving

__all__ = ["harbour"]

BOTH = {"session": {"compaction": {}}, "subagents": {}}


def told(editor: Editor, kind: str) -> list[dict[str, Any]]:
    return [each for each in editor.told if each["sessionUpdate"] == kind]


async def test_a_compaction_is_one_entity_with_its_summary_also_when_it_is_loaded(harbour: Home, cli: Cli) -> None:
    async with editing(harbour, able=BOTH) as editor:
        session = await begun(editor, harbour.work)
        for number in range(8):
            harbour.put(f"f{number}.md", f"The harbour has {number} cranes, each with a number.\n" * 120)
            await editor.say(
                session, f"Read f{number}.md and say how many cranes there are. {'Count them well. ' * 90}"
            )
        assert await editor.say(session, "/compact") == "end_turn"
        first, last = told(editor, "compaction_update")
        assert first == {**first, "status": "in_progress"} and "summary" not in first
        assert last["compactionId"] == first["compactionId"] and last["status"] == "completed"
        assert last["summary"][0]["text"].strip() and "→" in last["_meta"]["ctxchat"]
        assert not [u for u in editor.of("tool_call") if u["toolCallId"].startswith("compaction-")]
        usage = told(editor, "usage_update")[-1]
        shown = json.loads((await asyncio.to_thread(cli, "context", session, "--json")).out)
        assert (usage["used"], usage["size"]) == (shown["used"], shown["window"])
        editor.told.clear()
        await editor.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
        assert told(editor, "compaction_update") == [last]


async def test_a_sub_agent_is_a_child_session_that_is_announced_told_and_idle_at_the_end(harbour: Home) -> None:
    script = [
        calls(call("delegate", "d1", task="Which logger is it?", agent="explore")),
        calls(call("read_file", "r1", path="README.md")),
        says("It is the logger Cormorant."),
        says("Cormorant."),
    ]
    with serving(script) as double:
        async with editing(harbour, *model_options(double), able=BOTH) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "Find out which logger it is.") == "end_turn"
            live = editor.told
            before = [each for each in live if each["sessionUpdate"] != "usage_update"]
            editor.told = []
            await editor.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
            again = list(editor.told)
            listed = (await editor.agent.list_sessions(cwd=str(harbour.work))).sessions
        async with editing(harbour, *model_options(double)) as plain:
            await plain.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
            assert {each["session"] for each in plain.told} == {session}
    assert [row.session_id for row in listed] == [session]
    for stream in (before, again):
        parent = [each for each in stream if each["sessionUpdate"] == "subagent_update"]
        child = parent[0]["sessionId"]
        assert {each["session"] for each in parent} == {session} != {child}
        assert [each["state"]["state"] for each in parent] == ["running", "idle"]
        assert parent[1]["state"]["stopReason"] == "end_turn"
        places = [n for n, each in enumerate(stream) if each["session"] == child]
        assert stream.index(parent[0]) < places[0] and places[-1] < stream.index(parent[1])
        kinds = [kind for kind, _ in groupby(stream[n]["sessionUpdate"] for n in places)]
        assert kinds == ["session_message", "tool_call", "tool_call_update", "agent_message_chunk"]
        answer = "".join(stream[n]["content"]["text"] for n in places if "chunk" in stream[n]["sessionUpdate"])
        assert answer == "It is the logger Cormorant."
        task = stream[places[0]]
        assert (task["senderSessionId"], task["recipientSessionId"]) == (session, child)
        assert task["content"][0]["text"] == "Which logger is it?"
    assert before[[each["sessionUpdate"] for each in before].index("subagent_update")]["title"] == "explore"
    ids = [
        [each["messageId"] for each in stream if each["sessionUpdate"] == "session_message"] for stream in (live, again)
    ]
    assert ids[0] == ids[1]
    assert [each["session"] for each in live if each["sessionUpdate"] == "agent_message_chunk"].count(child) > 1, (
        "streamed"
    )
    assert child in {each["session"] for each in live if each["sessionUpdate"] == "usage_update"}


def test_a_summary_is_told_without_the_secrets_of_a_person() -> None:
    record = CompactionRecord("c1", "manual", "", "compacted", summary=f"The key is sk-ant-api03-{'a' * 93}AA")
    assert "sk-ant" not in json.dumps(compaction_over(record, masked))


FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}


async def test_what_is_not_saved_yet_is_read_kept_and_changed_by_the_editor(harbour: Home) -> None:
    script = [
        calls(call("read_file", "r1", path="notes.txt")),
        calls(call("edit_file", "e1", path="notes.txt", old="two", new="three")),
        calls(call("write_file", "w1", path="new/fresh.txt", content="made\n")),
        calls(call("shell", "s1", command="cat notes.txt new/fresh.txt")),
        says("Done."),
    ]
    harbour.put("notes.txt", "one\r\n")
    notes, fresh = harbour.work / "notes.txt", harbour.work / "new" / "fresh.txt"
    with serving(script) as double:
        async with editing(harbour, *model_options(double), able=FILES) as editor:
            editor.buffers[str(notes)] = "one\ntwo\n"  # typed, and not saved
            session = await begun(editor, harbour.work)
            await editor.agent.set_session_mode(session_id=session, mode_id="all")
            assert await editor.say(session, "Mend the notes.") == "end_turn"
            read = next(u for u in editor.of("tool_call_update") if u["toolCallId"] == "r1")
            assert "two" in read["content"][0]["content"]["text"]
            edit = [u for u in editor.of("tool_call_update") if u["toolCallId"] == "e1"][-1]
            assert edit["status"] == "completed", edit
            assert (edit["content"][0]["oldText"], edit["content"][0]["newText"]) == (
                "one\r\ntwo\r\n",  # what is kept of it, and an undo brings back
                "one\r\nthree\r\n",
            )
            ran = [u for u in editor.of("tool_call_update") if u["toolCallId"] == "s1"][-1]
            assert "three" in ran["content"][0]["content"]["text"] and "made" in ran["content"][0]["content"]["text"]
            assert editor.buffers[str(notes)].splitlines() == ["one", "three"] and fresh.read_text() == "made\n"
            assert ("write", session, str(notes)) in editor.files and ("write", session, str(fresh)) in editor.files
            assert {session} == {each[1] for each in editor.files}


@pytest.mark.parametrize("able", [None, {"fs": {"readTextFile": False, "writeTextFile": None}}])
async def test_an_editor_that_does_not_offer_it_is_asked_for_no_file(
    harbour: Home, able: dict[str, Any] | None
) -> None:
    script = [calls(call("write_file", "w1", path="a.txt", content="made\n")), says("Done.")]
    with serving(script) as double:
        async with editing(harbour, *model_options(double), able=able) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "Write it.") == "end_turn"
            assert (harbour.work / "a.txt").read_text() == "made\n" and not editor.files


async def test_where_the_editor_refuses_or_says_nothing_the_disk_counts(harbour: Home) -> None:
    script = [
        calls(call("read_file", "r1", path="README.md")),
        calls(call("edit_file", "e1", path="README.md", old="Cormorant", new="Heron")),
        says("Done."),
    ]

    class Deaf(Editor):
        async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
            raise ValueError("no buffer")

        async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
            raise ValueError("no buffer")

    with serving(script) as double:
        async with editing(harbour, *model_options(double), able=FILES, editor=Deaf()) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "Mend it.") == "end_turn"
            assert "Heron" in (harbour.work / "README.md").read_text()


def test_nothing_is_used_that_the_library_will_take_away() -> None:
    every = (
        "import importlib, pkgutil, ctxchat.acp as ours\n"
        "for found in pkgutil.iter_modules(ours.__path__, 'ctxchat.acp.'): importlib.import_module(found.name)"
    )
    line = [sys.executable, "-W", "error::DeprecationWarning", "-c", every]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


class FormEditor(Editor):
    """Answers forms with a fixed text."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []

    async def create_elicitation(self, *_: Any, **asked: Any) -> AcceptElicitationResponse:
        self.forms.append(asked)
        return AcceptElicitationResponse(action="accept", content={"answer": "Pier 9"})


async def test_a_question_of_the_agent_is_a_form_where_the_editor_has_them(harbour: Home) -> None:
    script = [calls(call("ask_user", question="Which pier?")), says("ok")]
    with serving(script) as double:
        form = FormEditor()
        able = {"elicitation": {"form": {}}}
        async with editing(harbour, *model_options(double), editor=form, able=able) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "go") == "end_turn"
        (answer,) = [m["content"] for m in double.requests[1].body["messages"] if m["role"] == "tool"]
    assert len(form.forms) == 1 and "Pier 9" in answer
