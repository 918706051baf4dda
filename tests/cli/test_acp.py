"""`ctxchat acp` as editors drive it: the real program on real pipes, spoken to by the protocol library's own client."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, embedded_text_resource, image_block, resource_block, resource_link_block, text_block
from acp.client import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    AudioContentBlock,
    DeniedOutcome,
    McpServerStdio,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
    WriteTextFileResponse,
)
from acp.stdio import spawn_agent_process
from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from ctxchat.acp.updates import edits_in
from ctxchat.tools.diffs import difference
from tests.cli.conftest import Cli, Home
from tests.doubles.images import png
from tests.doubles.replies import call, calls, refuses, says
from tests.e2e.serving import model_options, serving
from tests.tools.test_mcp import RAW

Updates = list[dict[str, Any]]


class Editor:
    """What an editor is told, and what its person answers: the id of an option, or empty for none. `buffers` are files as they
    stand there, by their paths; one that is written is saved."""

    def __init__(self, answer: Callable[[list[PermissionOption]], str] = lambda options: "once") -> None:
        self.updates: Updates = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.answer = answer
        self.told: list[dict[str, Any]] = []  # as it came, also what is newer than the library
        self.buffers: dict[str, str] = {}
        self.files: list[tuple[str, str, str]] = []  # what was asked of them: what, in which session, of which
        self.news = asyncio.Event()
        self.agent: ClientSideConnection
        self.process: asyncio.subprocess.Process

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        row = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.updates.append({"session": session_id, **row})
        self.news.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.news.set()
        taken = self.answer(options)
        if taken == "never":
            await asyncio.Event().wait()
        outcome = AllowedOutcome(outcome="selected", option_id=taken) if taken else DeniedOutcome(outcome="cancelled")
        return RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        self.files.append(("read", session_id, path))
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        return ReadTextFileResponse(content=await asyncio.to_thread(Path(path).read_text))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> WriteTextFileResponse:
        self.files.append(("write", session_id, path))
        self.buffers[path] = content
        await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()

    def of(self, kind: str, session: str = "") -> Updates:
        """Updates of one kind, all sessions' or one's."""
        return [u for u in self.updates if u["sessionUpdate"] == kind and session in {"", u["session"]}]

    def text(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        return "".join(u["content"]["text"] for u in self.of(kind, session))

    def saw(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING and event.message.get("method") == "session/update":
            params = event.message["params"]
            self.told.append({"session": params["sessionId"], **params["update"]})

    async def until(self, holds: Callable[[], object]) -> None:
        """Until what was told makes this true."""
        async with asyncio.timeout(120):
            while not holds():
                self.news.clear()
                await self.news.wait()

    async def say(self, session: str, *blocks: Any) -> str:
        """One prompt; why its turn ended."""
        given = [text_block(each) if isinstance(each, str) else each for each in blocks]
        return (await self.agent.prompt(session_id=session, prompt=given)).stop_reason


@asynccontextmanager
async def editing(
    home: Home,
    *options: str,
    answer: Any = None,
    able: dict[str, Any] | None = None,
    editor: Editor | None = None,
) -> AsyncGenerator[Editor, None]:
    """An editor with the agent at work in the person's folder; `able` is what it says it can."""
    editor = editor or (Editor(answer) if answer else Editor())
    line = [sys.executable, "-m", "ctxchat", "acp", *options]
    spawned = spawn_agent_process(
        editor,  # type: ignore[arg-type]
        *line,
        env=home.environ,
        cwd=home.work,
        use_unstable_protocol=True,
        observers=[editor.saw],
    )
    async with spawned as (editor.agent, editor.process):
        params = {"protocolVersion": 1, "clientCapabilities": able or {}}
        await editor.agent._conn.send_request("initialize", params)  # pyright: ignore[reportPrivateUsage]
        yield editor


async def begun(editor: Editor, folder: Path, *servers: Any) -> str:
    return (await editor.agent.new_session(cwd=str(folder), mcp_servers=list(servers))).session_id


@pytest.fixture
def harbour(home: Home) -> Home:
    """A person in a small repository."""
    home.put("README.md", "# Harbour logger\n\nThe gauge at Pier 7 reports every 90 s to the logger Cormorant.\n")
    return home


async def test_a_turn_is_told_as_it_happens(harbour: Home) -> None:
    async with editing(harbour) as editor:
        opened = await editor.agent.new_session(cwd=str(harbour.work), mcp_servers=[])
        session = opened.session_id
        assert opened.modes and opened.modes.current_mode_id == "ask"
        assert {option.id for option in opened.config_options or ()} == {"mode", "model"}
        assert await editor.say(session, "Which logger does the tide gauge at Pier 7 report to?") == "end_turn"
        assert "Cormorant" in editor.text()
        begun_calls = {u["toolCallId"]: u for u in editor.of("tool_call")}
        ended = {u["toolCallId"]: u["status"] for u in editor.of("tool_call_update")}
        assert begun_calls and ended == dict.fromkeys(begun_calls, "completed")
        (read,) = [u for u in begun_calls.values() if u["kind"] == "read"]
        assert read["locations"] == [{"path": str(harbour.work / "README.md"), "line": 1}]
        assert 0 < editor.of("usage_update")[-1]["used"] < editor.of("usage_update")[-1]["size"]
        assert {c["name"] for c in editor.of("available_commands_update")[0]["availableCommands"]} == {
            "archive",
            "compact",
            "context",
            "init",
            "undo",
        }
        assert editor.of("session_info_update")[-1]["title"].startswith("Which logger")
        editor.updates.clear()
        assert await editor.say(session, "/context") == "end_turn"
        assert "| tools |" in editor.text()
        assert await editor.say(session, "/compact") == "end_turn"
        assert "Nothing to free" in editor.text()
        (row,) = (await editor.agent.list_sessions(cwd=str(harbour.work))).sessions
        assert (row.session_id, row.cwd) == (session, str(harbour.work))
        assert (await editor.agent.list_sessions(cwd=str(harbour.root))).sessions == []


async def test_nothing_is_done_without_a_yes_and_a_rule_is_stored_as_it_is_shown(harbour: Home) -> None:
    said: list[str] = ["deny", "", "no-such-option", "always"]
    async with editing(harbour, answer=lambda options: said.pop(0)) as editor:
        session = await begun(editor, harbour.work)
        for name in ("a.txt", "b.txt", "c.txt"):
            assert await editor.say(session, f"create file {name} with hello") == "end_turn"
            assert not (harbour.work / name).exists()
        assert {u["status"] for u in editor.of("tool_call_update")} == {"failed"}
        call, options = editor.asked[0]
        assert call.content and call.content[0].type == "diff"
        assert (call.content[0].path, call.content[0].new_text) == (str(harbour.work / "a.txt"), "hello\n")
        names = {option.option_id: option.name for option in options}
        assert list(names) == ["once", "session", "always", "deny"]
        assert names["always"].endswith("write_file: a.txt") and names["session"].endswith("write_file: *")
        assert await editor.say(session, "create file d.txt with hello") == "end_turn"
        assert await editor.say(session, "create file d.txt with hello again") == "end_turn"
        assert (harbour.work / "d.txt").read_text().startswith("hello again") and len(editor.asked) == 4
        said.append("session")
        for name in ("e.txt", "f.txt"):
            assert await editor.say(session, f"create file {name} with hello") == "end_turn"
        assert (harbour.work / "f.txt").exists() and len(editor.asked) == 5
    assert "write_file: d.txt" in (harbour.settings / "permissions.toml").read_text()


async def test_modes_and_models_are_set_and_say_what_is_wrong(harbour: Home) -> None:
    async with editing(harbour) as editor:
        session = await begun(editor, harbour.work)
        await editor.agent.set_session_mode(session_id=session, mode_id="read-only")
        await editor.say(session, "create file a.txt with hello")
        assert not (harbour.work / "a.txt").exists() and not editor.asked
        changed = await editor.agent.set_config_option(config_id="mode", session_id=session, value="all")
        assert changed and changed.config_options[0].current_value == "all"
        await editor.say(session, "create file a.txt with hello")
        assert (harbour.work / "a.txt").exists() and not editor.asked
        (harbour.settings / "config.toml").write_text('[permissions]\nmode = "plan"\n')
        await editor.say(session, "hello")
        assert editor.of("current_mode_update")[-1]["currentModeId"] == "plan"  # settings that were edited meanwhile
        for wrong in (
            editor.agent.set_session_mode(session_id=session, mode_id="yolo"),
            editor.agent.set_config_option(config_id="model", session_id=session, value="nobody/has-this"),
            editor.agent.set_config_option(config_id="colour", session_id=session, value="red"),
        ):
            with pytest.raises(RequestError) as refused:
                await wrong
            assert refused.value.code == -32602 and len(str(refused.value)) > 20


async def test_a_session_in_which_nothing_was_said_is_there_and_one_that_is_not_has_the_protocols_code(
    harbour: Home,
) -> None:
    here = str(harbour.work)
    async with editing(harbour) as editor:
        session = await begun(editor, harbour.work)
    async with editing(harbour) as editor:  # as acpx does: a process begins it, another one goes on with it
        for _ in range(2):
            assert [row.session_id for row in (await editor.agent.list_sessions(cwd=here)).sessions] == [session]
            await editor.agent.load_session(cwd=here, session_id=session, mcp_servers=[])
        assert await editor.say(session, "hello") == "end_turn"
        await editor.say(session, "create file a.txt with hello")
        with pytest.raises(RequestError):
            await editor.say(session, "/undo")
        for wrong in (
            editor.agent.load_session(cwd=here, session_id="nobody", mcp_servers=[]),
            editor.agent.resume_session(cwd=here, session_id="nobody", mcp_servers=[]),
            editor.say("nobody", "hello"),
        ):
            with pytest.raises(RequestError) as refused:
                await wrong
            assert refused.value.code == -32002 and "nobody" in str(refused.value)
        async with editing(harbour) as other:
            await other.agent.load_session(cwd=here, session_id=session, mcp_servers=[])
            assert "hello" in other.text("user_message_chunk")
            assert "> " in other.text(), "that it is open elsewhere is said at once"


async def test_a_mode_is_kept_with_its_session_but_for_the_one_in_which_nothing_asks(harbour: Home) -> None:
    here = str(harbour.work)
    async with editing(harbour) as editor:
        session = await begun(editor, harbour.work)
        await editor.say(session, "hello")
        await editor.agent.set_session_mode(session_id=session, mode_id="plan")
    for chosen, comes, said in (
        ("auto-edit", "plan", "Mode plan,"),
        ("all", "auto-edit", "auto-edit,"),
        ("", "ask", "all"),
    ):
        async with editing(harbour) as editor:
            opened = await editor.agent.resume_session(cwd=here, session_id=session, mcp_servers=[])
            assert opened.modes and opened.modes.current_mode_id == comes and said in editor.text()
            if chosen:
                await editor.agent.set_config_option(config_id="mode", session_id=session, value=chosen)


async def test_acpx_begins_lists_goes_on_refuses_and_cancels_each_in_a_process_of_its_own(harbour: Home) -> None:
    """What acpx 0.19 sends, in its order: each of its commands starts the agent anew."""
    able = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    here = str(harbour.work)
    script = [
        calls(call("read_file", path="README.md"), call("write_file", "call_2", path="a.txt", content="a\n")),
        says("Written."),
        calls(call("write_file", "call_3", path="b.txt", content="b\n")),
    ]
    with serving(script) as double:
        options = model_options(double)
        async with editing(harbour, *options, able=able) as editor:  # sessions new
            session = await begun(editor, harbour.work)
        async with editing(harbour, *options, able=able) as editor:  # sessions list, of all folders
            rows = (await editor.agent.list_sessions()).sessions
            assert [(row.session_id, row.cwd, row.title) for row in rows] == [(session, here, None)]
        async with editing(harbour, *options, able=able) as editor:  # "write it down"
            await editor.agent.resume_session(cwd=here, session_id=session, mcp_servers=[])
            assert await editor.say(session, "write it down") == "end_turn"
            ended = [u for u in editor.of("tool_call_update") if u.get("status") == "completed"]
            diff = [each for u in ended for each in u["content"] if each["type"] == "diff"]
            assert diff == [{"type": "diff", "path": str(harbour.work / "a.txt"), "newText": "a\n"}]
            assert {kind for kind, _, _ in editor.files} == {"read", "write"} and len(
                editor.of("agent_message_chunk")
            ) <= 4
            for mode_id, code in (("read-only", 0), ("yolo", -32602)):  # set-mode
                try:
                    await editor.agent.set_session_mode(session_id=session, mode_id=mode_id)
                    assert not code
                except RequestError as refused:
                    assert refused.code == code
            await editor.agent.set_session_mode(session_id=session, mode_id="ask")
            editor.answer = lambda options: "never"
            turn = asyncio.create_task(editor.say(session, "another one"))
            await editor.until(lambda: len(editor.asked) == 2)
            await editor.agent.cancel(session_id=session)  # cancel
            assert await turn == "cancelled" and not (harbour.work / "b.txt").exists()
            await editor.agent.close_session(session_id=session)  # sessions close
        async with editing(harbour, *options, able=able) as editor:  # sessions history
            await editor.agent.load_session(cwd=here, session_id=session, mcp_servers=[])
            assert editor.text("user_message_chunk") == "write it downanother one"
            statuses = {u["toolCallId"]: u["status"] for u in editor.of("tool_call_update")}
            assert statuses == {"call_1": "completed", "call_2": "completed", "call_3": "failed"}


async def test_the_models_of_the_server_that_is_given_are_listed_and_asked_there(harbour: Home) -> None:
    listed = {"data": [{"id": name} for name in ("double", "other", "embed-small")]}
    with serving([says("I am the other one.")], pages={"/v1/models": listed}) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work)
            await editor.until(lambda: editor.of("config_option_update"))
            option = editor.of("config_option_update")[-1]["configOptions"][1]
            assert {each["value"] for each in option["options"]} == {
                "openai/double",
                "openai/other",
                "offline/assistant",
            }
            await editor.agent.set_config_option(config_id="model", session_id=session, value="openai/other")
            assert await editor.say(session, "Who are you?") == "end_turn"
            assert "I am the other one." in editor.text()
        assert [seen.body["model"] for seen in double.requests] == ["other"]


async def test_a_cancel_ends_the_turn_wherever_it_is(harbour: Home) -> None:
    script = [
        says("It is a long story, told slowly.", fault="stall", fault_after=3),
        calls(call("write_file", path="a.txt", content="a")),
        says("Here I am."),
    ]
    with serving(script) as double:
        async with editing(harbour, *model_options(double), answer=lambda options: "never") as editor:
            session = await begun(editor, harbour.work)
            turn = asyncio.create_task(editor.say(session, "tell me"))
            await editor.until(lambda: "It is" in editor.text())  # and not what is said of a slow context before it
            with pytest.raises(RequestError, match="under way"):
                await editor.say(session, "and this?")
            await editor.agent.cancel(session_id=session)
            assert await turn == "cancelled"
            turn = asyncio.create_task(editor.say(session, "write it down"))
            await editor.until(lambda: editor.asked)
            await editor.agent.cancel(session_id=session)
            assert await turn == "cancelled" and not (harbour.work / "a.txt").exists()
            (ended,) = [u for u in editor.of("tool_call_update") if u["status"] == "failed"]
            assert ended["toolCallId"] == "call_1" and ended["content"][0]["content"]["text"] == "Cancelled."
            assert await editor.say(session, "are you there?") == "end_turn"
            assert editor.text().endswith("Here I am.")


async def test_a_stored_session_comes_back_whole_in_another_process(harbour: Home) -> None:
    with serving([calls(call("read_file", path="README.md"), reasoning="Look."), says("Cormorant.")]) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work)
            await editor.say(session, "Which logger?")
            told = [(u["sessionUpdate"], u.get("toolCallId")) for u in editor.updates]
        async with editing(harbour) as editor:
            loaded = await editor.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
            assert loaded.config_options and loaded.config_options[1].current_value == "openai/double"
            assert editor.text("user_message_chunk") == "Which logger?"
            assert (editor.text("agent_thought_chunk"), editor.text()) == ("Look.", "Cormorant.")
            again = [(u["sessionUpdate"], u.get("toolCallId")) for u in editor.updates]
            assert [t for t in again if t[1]] == [t for t in told if t[1] and t[0] == "tool_call"] + [
                ("tool_call_update", "call_1")
            ]
            async with editing(harbour) as other:  # which finds it open elsewhere
                await other.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
                assert other.text().startswith("Cormorant.\n") and "is open in another window" in other.text()
                with pytest.raises(RequestError, match="open"):
                    await other.say(session, "Which?")
            with pytest.raises(RequestError, match="There is no session 'nobody'"):
                await editor.agent.load_session(cwd=str(harbour.work), session_id="nobody", mcp_servers=[])
            assert await editor.say(session, "And again?") == "end_turn"
            await editor.agent.close_session(session_id=session)
            with pytest.raises(RequestError, match="Begin one, or load it"):
                await editor.say(session, "hello?")


async def test_an_edit_is_told_in_whole_texts_then_and_when_it_is_loaded(harbour: Home) -> None:
    before = "".join(f"line {n}\n" for n in range(1, 31))
    harbour.put("a.txt", before)
    script = [
        calls(call("read_file", path="a.txt")),
        calls(call("edit_file", "call_2", path="a.txt", old="line 20\n", new="line twenty\n")),
        calls(call("write_file", "call_3", path="b.txt", content="new\n")),
        says("Done."),
    ]
    edited = {"type": "diff", "path": str(harbour.work / "a.txt"), "oldText": before}
    edited["newText"] = before.replace("line 20", "line twenty")
    written = {"type": "diff", "path": str(harbour.work / "b.txt"), "newText": "new\n"}

    def diffs(editor: Editor) -> list[Any]:
        contents = [each for u in editor.of("tool_call_update") for each in u.get("content", [])]
        return [each for each in contents if each["type"] == "diff"]

    with serving(script) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "Mend it.") == "end_turn"
            assert diffs(editor)[-1] == written and edited in diffs(editor)
        async with editing(harbour) as editor:
            await editor.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
            assert diffs(editor) == [edited, written]


async def test_a_compaction_is_told_once(harbour: Home) -> None:
    for number in range(8):
        harbour.put(f"f{number}.txt", f"line of text {number}\n" * 900)
    (harbour.settings / "config.toml").write_text("[context.prepare]\nenabled = false\n")
    script = [calls(call("read_file", f"c{number}", path=f"f{number}.txt")) for number in range(8)]
    with serving([*script, *[says("Done.")] * 4]) as double:
        async with editing(harbour, *model_options(double), "--window", "20000") as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "Read them.") == "end_turn"
            told = [u["content"][0]["content"]["text"] for u in editor.updates if u.get("status") in {"completed", "failed"}
                    and u["toolCallId"].startswith("compaction-")]  # fmt: skip
            why, done = told[0], told[-1]
            assert why.startswith("The summary model called a tool") and editor.text().count(why) == 0
            assert "Next try in" in editor.text() and done.count("compacted") == 1 and "→" in done


async def test_two_sessions_in_two_folders_do_not_wait_for_each_other(harbour: Home) -> None:
    other = harbour.root / "other"
    other.mkdir()
    (other / "notes.md").write_text("The retry limit is 7.\n")
    async with editing(harbour) as editor:
        first, second = await begun(editor, harbour.work), await begun(editor, other)
        asked = ("Which logger does Pier 7 report to?", "What is the retry limit?")
        ends = await asyncio.gather(editor.say(first, asked[0]), editor.say(second, asked[1]))
        assert ends == ["end_turn", "end_turn"]
        assert "Cormorant" in editor.text(session=first) and "Cormorant" not in editor.text(session=second)
        assert "notes.md" in editor.text(session=second)


async def test_files_images_and_what_is_embedded_go_along(harbour: Home) -> None:
    long = "line\n" * 20_000
    blocks = [
        "Look at (",
        resource_link_block("README.md", (harbour.work / "README.md").as_uri()),
        "), the ",
        "rest",
        resource_block(embedded_text_resource("file:///elsewhere/unsaved.py", "x = 1\n")),
        resource_block(embedded_text_resource("zed:///long.txt", long)),
        image_block(base64.b64encode(png(8, 6)).decode(), "image/png"),
        resource_link_block("see @private.txt", "https://example.org/ @private.txt"),
    ]
    harbour.put("private.txt", "nobody asked for this\n")
    with serving([says("Seen.")]) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, *blocks) == "end_turn"
            for wrong in (
                image_block("no base64!", "image/png"),
                AudioContentBlock(type="audio", data="", mime_type=""),
            ):
                with pytest.raises(RequestError) as refused:
                    await editor.say(session, wrong)
                assert refused.value.code == -32602
        sent = json.dumps(double.requests[0].body["messages"][-1]["content"])
    assert "Look at (@README.md), the rest `/elsewhere/unsaved.py` `" in sent
    assert "Cormorant" in sent and "x = 1" in sent and "full text: tool-results/" in sent
    assert len(sent) < len(long) and "nobody asked" not in sent


async def test_servers_that_the_editor_brings_are_asked_for_like_any_other(harbour: Home) -> None:
    (harbour.settings / "config.toml").write_text("[tools]\nmcp_wait = 60\n")
    server = McpServerStdio(name="harbour tools", command=sys.executable, args=[RAW, "harbour"], env=[])
    with serving([calls(call("harbour-tools__add", a=2, b=3)), says("Added.")]) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work, server)
            assert await editor.say(session, "2 + 3?") == "end_turn"
            assert len(editor.asked) == 1
        assert "harbour-tools__add" in {tool["function"]["name"] for tool in double.requests[0].body["tools"]}
        assert [m["content"] for m in double.requests[1].body["messages"] if m["role"] == "tool"] == ["add"]


async def test_the_plan_a_question_a_pass_and_a_failure_are_told(harbour: Home) -> None:
    items = [{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}]
    script = [
        calls(call("todo", items=items)),
        calls(call("ask_user", "call_2", question="Which pier?", options=["6", "7"])),
        calls(call("read_file", path="README.md")),  # with an id it has used before
        says("Pier 7 it is. " + "It was built long ago. " * 600),
        says("Yes. " + "And it still stands. " * 600),
        says("## Goal\nPier 7.\n"),
        says("## Goal\nPier 7.\n"),
        refuses(401, "Incorrect API key provided"),
    ]
    with serving(script) as double:
        options = (*model_options(double), "--window", "20000")
        async with editing(harbour, *options, answer=lambda options: options[1].option_id) as editor:
            session = await begun(editor, harbour.work)
            assert await editor.say(session, "go") == "end_turn"
            assert [(e["content"], e["status"]) for e in editor.of("plan")[-1]["entries"]] == [
                ("look", "completed"),
                ("mend", "in_progress"),
            ]
            assert [u["toolCallId"] for u in editor.of("tool_call")] == ["call_1", "call_2", "call_1.2"]
            assert editor.of("tool_call_update")[-1]["toolCallId"] == "call_1.2"
            assert editor.asked[0][0].title == "Which pier?"
            results = [m["content"] for m in double.requests[2].body["messages"] if m["role"] == "tool"]
            assert results[-1] == "The user answered: 7"
            await editor.say(session, "Is it old?")
            used = editor.of("usage_update")[-1]["used"]
            assert await editor.say(session, "/compact keep the pier") == "end_turn"
            made = [u for u in editor.updates if u.get("toolCallId", "").startswith("compaction-")]
            assert [u["status"] for u in made] == ["in_progress", "completed"]
            assert "→" in made[-1]["content"][0]["content"]["text"]
            assert editor.of("usage_update")[-1]["used"] < used
            assert await editor.say(session, "/undo") == "end_turn"
            assert "Taken back: " in editor.text() and editor.of("usage_update")[-1]["used"] >= used
            assert await editor.say(session, "/compact keep the pier") == "end_turn"
            made = [u for u in editor.updates if u.get("toolCallId", "").startswith("compaction-")][-2:]
            assert await editor.say(session, "/archive") == "end_turn"
            assert "| tokens |" in editor.text() and made[0]["toolCallId"].removeprefix("compaction-") in editor.text()
            with pytest.raises(RequestError, match=r"key.*"):
                await editor.say(session, "and now?")
            editor.updates.clear()
            await editor.agent.load_session(cwd=str(harbour.work), session_id=session, mcp_servers=[])
            assert [u["status"] for u in editor.of("tool_call") if u["toolCallId"].startswith("comp")] == ["completed"]
            assert "Pier 7 it is." in editor.text()


@asynccontextmanager
async def answering(harbour: Home) -> AsyncGenerator[tuple[Editor, str], None]:
    """An editor in the middle of an answer that stalls, and its session."""
    script = [says("It is a long story, told slowly.", fault="stall", fault_after=4)]
    with serving(script) as double:
        async with editing(harbour, *model_options(double)) as editor:
            session = await begun(editor, harbour.work)
            turn = asyncio.create_task(editor.say(session, "tell me"))
            await editor.until(lambda: "It is" in editor.text())  # and not what is said of a slow context before it
            yield editor, session
            turn.cancel()
            await asyncio.wait({turn})


async def test_a_signal_ends_it_in_good_order(harbour: Home, cli: Cli) -> None:
    async with answering(harbour) as (editor, session):
        editor.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(editor.process.wait(), 120) == 143
    export = ("sessions", "export", session, "--view", "record", "--format", "openai")
    stored = (await asyncio.to_thread(cli, *export)).json
    assert [m["role"] for m in stored] == ["user", "assistant"] and stored[1]["content"]


async def test_an_editor_that_goes_away_takes_nothing_with_it(harbour: Home, cli: Cli) -> None:
    async with answering(harbour) as (editor, session):
        assert editor.process.stdin
        editor.process.stdin.close()
        assert await asyncio.wait_for(editor.process.wait(), 120) == 0
    kept = await asyncio.to_thread(cli, "sessions", "export", session, "--view", "record", "--format", "markdown")
    assert "It is" in kept.out


@given(lists(sampled_from(["a", "b", "", "+++ x", "-- y", "@@ -1 +1 @@"])), lists(sampled_from(["a", "c", "", "-- z"])))
def test_the_hunks_of_a_diff_are_pieces_of_both_texts(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    for edit in edits_in(difference(before, after, "notes/a.md").text, Path("/harbour")):
        assert edit.type == "diff" and edit.path == "/harbour/notes/a.md"
        assert edit.new_text in after and (edit.old_text or "") in before
        assert edit.new_text != edit.old_text


def test_a_diff_that_was_cut_or_is_none_is_no_edit() -> None:
    long = difference("", "line\n" * 500, "a").text
    assert (
        edits_in(long, Path("/harbour"))
        == edits_in("+- a memory\n", Path("/harbour"))
        == edits_in("", Path("/harbour"))
        == []
    )


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def asked(id: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def test_whatever_comes_in_is_answered_in_a_sentence_and_standard_output_holds_nothing_else(harbour: Home) -> None:
    lines = [
        json.dumps(INITIALIZE),
        "this is no json",
        "[1, 2]",
        '{"id": [1], "method": "initialize"}',
        '{"jsonrpc": "2.0", "id": 2, "method": 7}',
        '{"jsonrpc": "2.0", "id": 99, "error": "what?"}',
        '"\\ud800"',
        "[" * 5000,
        "",
        asked(3, "session/dance"),
        asked(4, "session/new", cwd="not/absolute", mcpServers=[]),
        asked(5, "session/new", cwd=str(harbour.root / "gone"), mcpServers=[]),
        asked(6, "session/prompt", sessionId="nobody"),
        asked(7, "session/list", cursor="x"),
        asked(8, "session/load", cwd=str(harbour.work), sessionId="", mcpServers=[]),
    ]
    answers: list[dict[str, Any]] = []
    started = [sys.executable, "-m", "ctxchat", "acp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(started, **pipes, text=True, cwd=harbour.work, env=harbour.environ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        while {row["id"] for row in answers if row.get("id")} != set(range(1, 9)):
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(60) == 0 and process.stdout.read() == ""
        assert "Traceback" not in process.stderr.read()
    errors = [row["error"]["message"] for row in answers if "error" in row]
    assert all(len(text) > 15 and "errors" not in text for text in errors), errors
    by_id = {row["id"]: row for row in answers if row.get("id") is not None}
    assert by_id[1]["result"]["protocolVersion"] == 1
    assert "session/dance" in by_id[3]["error"]["message"]
    assert "no absolute path" in by_id[4]["error"]["message"] and "gone" in by_id[5]["error"]["message"]
    assert by_id[6]["error"]["message"].startswith("prompt: ")
    assert sum(row.get("id", 0) is None for row in answers) == 5


def test_it_is_answered_before_anything_heavy_is_loaded(harbour: Home) -> None:
    code = (
        "import sys; from ctxchat.acp.server import EditorAgent; from ctxchat.bootstrap.flags import Flags; "
        "heavy = {'textual', 'rich', 'litellm', 'tiktoken', 'httpx', 'sqlite3', 'ctxchat.agent.session'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=harbour.environ, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_missing_extra_is_named_with_its_remedy(cli: Cli, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acp", None)
    for name in [name for name in sys.modules if name.startswith("ctxchat.acp.")]:
        monkeypatch.delitem(sys.modules, name)
    ran = cli("acp")
    assert ran.code == 1
    assert "agent-client-protocol" in ran.sentence and "uv run --extra acp ctxchat acp" in ran.sentence
