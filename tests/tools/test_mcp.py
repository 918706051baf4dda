"""MCP servers of the official SDK, as processes and over HTTP: called, slow, failing, dying, missing, started anew."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from ctxchat.core.errors import ToolError
from ctxchat.core.events import ToolFinished
from ctxchat.core.images import kind_of, size_of
from ctxchat.core.messages import Image
from ctxchat.core.ports import ToolContext, ToolOutput, ToolQuestion, ToolText
from ctxchat.tools.mcp.host import McpHost
from ctxchat.tools.mcp.protocol import Address
from ctxchat.tools.mcp.server import MAX_QUESTIONS, McpServer, StartOptions
from ctxchat.tools.mcp.worker import MAX_RESULT_CHARS
from ctxchat.tools.processes import child
from tests.agent.desk import Desk
from tests.doubles.http_mcp import forgetful
from tests.doubles.kept_mcp_host import RAW, kept_mcp_host
from tests.doubles.ports import free_port, until_listening
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.doubles.started_server import started

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = str(Path(__file__).resolve().parents[1] / "doubles" / "mcp_server.py")
LOCAL = Address(command=sys.executable, args=(SCRIPT,))
LIBRARY = Address(command=sys.executable, args=(str(Path(SCRIPT).with_name("mcp_library.py")),))


def wrong(how: str) -> Address:
    """The server that does not keep to the rules."""
    return Address(command=sys.executable, args=(RAW, how))


BUSY = wrong("busy")
"""That it is, this once: a tool that answers, one that never does, one that it dies of. Up at once, which the SDK's is not."""


async def pid_of(server: McpServer, folder: Path) -> int:
    log = folder / "logs" / "harbour.log"
    while not (log.exists() and log.read_text().strip()):
        assert server.state == "starting"
        await asyncio.sleep(0.02)
    return int(log.read_text().split()[0])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int) -> bool:
    """The worker sees to the end of its servers, also where nobody waits for that any more."""
    for _ in range(3000):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpHost]:
    async with kept_mcp_host(tmp_path_factory.mktemp("kept")) as host:
        yield host


@asynccontextmanager
async def up(address: Address, folder: Path, host: McpHost, **more) -> AsyncIterator[McpServer]:
    server = McpServer("harbour", address, StartOptions(str(folder), folder / "logs" / "harbour.log"), host, **more)
    async with started(server):
        yield server


@asynccontextmanager
async def over_http(script: str = SCRIPT) -> AsyncIterator[Address]:
    port = free_port()
    async with child([sys.executable, script, str(port)], stderr=asyncio.subprocess.DEVNULL):
        await until_listening(port)
        yield Address(url=f"http://127.0.0.1:{port}/mcp")


@asynccontextmanager
async def over_pipes() -> AsyncIterator[Address]:
    yield LOCAL


@pytest.mark.parametrize("way", [over_pipes, over_http])
async def test_its_tools_are_called_and_named_for_every_provider(
    way: Callable, tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with way() as address, up(address, tmp_path, host) as server:
        assert (server.state, server.trouble) == ("ready", "")
        tools = {tool.spec.name: tool for tool in server.tools}
        named = ["add", "say_b_it_b_", "fail", "read", "fail_over", "slow", "die"]
        assert list(tools) == [f"harbour__{name}" for name in named]
        add = tools["harbour__add"]
        assert add.spec.description == "Add two numbers." and set(add.spec.parameters["properties"]) == {"a", "b"}
        assert (await call(add, a=2, b=3)).text == "5"
        wrong = await call(add, a="x", b=3)
        assert wrong.status == "error" and "a" in wrong.text
        failed = await call(tools["harbour__fail"])
        assert failed.status == "error" and "fail" in failed.text
    assert (server.state, list(server.tools)) == ("off", [])


async def test_a_server_on_this_machine_is_not_asked_through_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody is there
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with over_http() as address, up(address, tmp_path, McpHost()) as server:
        assert (server.state, server.trouble) == ("ready", "")


async def test_each_call_is_asked_for_by_its_own_rule(tmp_path: Path, context: ToolContext, host: McpHost) -> None:
    async with up(BUSY, tmp_path, host, only=["add", "not there"]) as server:
        (add,) = server.tools
        access_request = add.access_request({"a": 1}, context)
        assert (access_request.access, access_request.inside, access_request.patterns) == (
            "network",
            False,
            ("harbour__add",),
        )
        assert access_request.summary == 'harbour: add {"a":1}'


async def test_a_call_that_takes_too_long_ends_and_the_server_goes_on(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(msgspec.structs.replace(BUSY, timeout=0.5), tmp_path, host) as server:
        tools = {tool.spec.name: tool for tool in server.tools}
        with pytest.raises(ToolError, match="harbour"):
            await call(tools["harbour__slow"])
        async with asyncio.timeout(60):
            assert await answered(lambda: call(tools["harbour__add"])) == "add"


async def answered(ask: Callable[[], Awaitable[ToolOutput]]) -> str:
    """The text, asked for until a busy machine has it within the time a call may take."""
    while True:
        with suppress(ToolError):
            return (await ask()).text


async def test_a_server_that_dies_is_said_and_started_anew_for_the_next_call(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(BUSY, tmp_path, host) as server:
        tools = {tool.spec.name: tool for tool in server.tools}
        with pytest.raises(ToolError, match=r"harbour.*started again"):
            await call(tools["harbour__die"])
        again = {tool.spec.name: tool for tool in server.tools}
        assert list(again) == list(tools)  # a model that calls one now is not told that there is none
        assert (await call(again["harbour__add"])).text == "add"
        assert server.state == "ready"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (Address(command="no-such-program-here"), "no-such-program-here"),
        (Address(command=sys.executable, args=("-c", "print('no protocol')")), ""),
        (Address(url="http://127.0.0.1:9/mcp"), ""),
        (Address(url="http://127.0.0.1:9/mcp", headers_env={"X-Key": "CTXCHAT_TEST_NOT_SET"}), "CTXCHAT_TEST_NOT_SET"),
        (Address(url="http:/127.0.0.1:9/mcp"), "http:/127.0.0.1:9/mcp cannot be used"),
        (Address(url="http://127.0.0.1:9/mcp", headers={"X-Key": "ключ"}), "'X-Key' cannot be sent: character 6"),
    ],
)
async def test_one_that_cannot_be_reached_costs_its_tools_and_says_why(
    address: Address, why: str, tmp_path: Path, host: McpHost
) -> None:
    async with up(address, tmp_path, host) as server:
        assert server.state == "failed" and not server.tools
        assert why in server.trouble and server.trouble


async def test_what_a_process_says_before_it_fails_is_told_once(tmp_path: Path, host: McpHost) -> None:
    program = "import os, sys; sys.exit(os.environ['SAYS'] and f'no module {os.environ[\"SAYS\"]} here')"
    for missing, told in (("x", "It said: no module x here"), ("", "")):
        address = Address(command=sys.executable, args=("-c", program), env={"SAYS": missing})
        async with up(address, tmp_path, host) as server:
            assert server.state == "failed" and ("It said" in server.trouble) == bool(told) and told in server.trouble


async def test_what_a_process_says_beside_the_protocol_goes_to_a_file(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(BUSY, tmp_path, host) as server:
        with pytest.raises(ToolError):
            await call({tool.spec.name: tool for tool in server.tools}["harbour__die"])
    assert "goodbye from the server" in (tmp_path / "logs" / "harbour.log").read_text()


SILENT = "echo $$ >&2; exec sleep 600"
DEAF = "trap 'echo told to end >&2' TERM; echo $$ >&2; while :; do sleep 0.1; done"


def impatient(script: str, folder: Path, host: McpHost) -> McpServer:
    """Not started. The host is up, and a shell is up at once, so that neither start counts."""
    address = Address(command="sh", args=("-c", script))
    return McpServer("harbour", address, StartOptions(str(folder), folder / "logs" / "harbour.log", timeout=2.0), host)


async def test_one_that_never_answers_is_given_up(tmp_path: Path, host: McpHost) -> None:
    server = impatient(SILENT, tmp_path, host)
    server.start()
    pid = await pid_of(server, tmp_path)
    await asyncio.wait_for(server.settled(), 60)
    assert server.state == "failed" and server.trouble.startswith("It did not answer in time.")
    assert await gone(pid)


async def test_one_that_is_being_given_up_when_it_is_to_end_is_not_left_behind(tmp_path: Path, host: McpHost) -> None:
    server = impatient(DEAF, tmp_path, host)
    server.start()
    pid = await pid_of(server, tmp_path)
    while alive(pid) and "told" not in (tmp_path / "logs" / "harbour.log").read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await server.stop()
    assert await gone(pid)


@pytest.mark.parametrize("how", ["silent", "deaf"])
@pytest.mark.parametrize("ending", ["stop", "dismiss"])
async def test_one_that_is_still_starting_is_ended_and_not_left_behind(
    how: str, ending: str, tmp_path: Path, host: McpHost
) -> None:
    server = McpServer("harbour", wrong(how), StartOptions(str(tmp_path), tmp_path / "logs" / "harbour.log"), host)
    server.start()
    pid = await pid_of(server, tmp_path)
    if ending == "stop":
        await server.stop()
    else:
        server.dismiss()
        await asyncio.wait_for(server.settled(), 60)
    assert server.state == "off" and await gone(pid)


async def test_what_it_writes_beside_the_protocol_is_passed_over_and_never_shown(
    tmp_path: Path, call: Callable, caplog: pytest.LogCaptureFixture, host: McpHost
) -> None:
    async with up(wrong("beside"), tmp_path, host) as server:
        (echo,) = server.tools
        assert (await call(echo)).text == "echo"
    assert not caplog.records


async def test_a_line_without_an_end_is_not_kept(tmp_path: Path, host: McpHost) -> None:
    async with up(wrong("endless"), tmp_path, host) as server:
        pid = await pid_of(server, tmp_path)
        assert server.state == "failed" and server.trouble
    assert await gone(pid)


async def test_tools_whose_names_would_be_the_same_are_all_there(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(wrong("twins"), tmp_path, host) as server:
        names = [tool.spec.name for tool in server.tools]
        assert names[:3] == ["harbour__a_b", "harbour__a_b_2", "harbour__a_b_3"]
        assert len(set(names)) == 5 and all(len(name) <= 64 for name in names)
        assert [(await call(tool)).text for tool in server.tools] == ["a b", "a_b", "a.b", "x" * 90, "x" * 91]


async def test_schemas_of_no_object_are_made_such_that_providers_take_them(tmp_path: Path, host: McpHost) -> None:
    async with up(wrong("shapeless"), tmp_path, host) as server:
        shapes = {tool.spec.name: tool.spec.parameters for tool in server.tools}
        assert list(shapes) == ["harbour__text", "harbour__number", "harbour__word", "harbour__list"]
        assert shapes.pop("harbour__list")["properties"] == {"a": {}, "b": {}, "c": {"type": "string"}}
        for shape in shapes.values():
            assert shape["type"] == "object" and shape["properties"] == {} and shape.get("required", []) == []


async def test_a_tool_that_is_none_costs_itself_and_is_named(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(wrong("broken"), tmp_path, host) as server:
        assert (server.state, server.row.tools) == ("ready", ("harbour__good", "harbour__plain"))
        assert server.row.left_out == (
            "no schema (its schema is none)",
            "number 3 (it has no name)",
            "number 4 (its name is no text)",
            "number 5 (it is no description of a tool)",
            "huge (its schema is 300.1 kB long)",
        )
        assert [(await call(tool)).text for tool in server.tools] == ["good", "plain"]
    assert server.row.left_out == ()


async def test_a_schema_nested_without_an_end_costs_its_tool_and_not_the_server(tmp_path: Path, host: McpHost) -> None:
    async with up(wrong("nested"), tmp_path, host) as server:
        assert (server.state, server.row.tools) == ("ready", ("harbour__good",))
        assert server.row.left_out == ("deep (its schema is nested without an end)",)


async def test_arguments_of_odd_names_have_plain_ones_and_reach_the_server_by_theirs(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(wrong("odd"), tmp_path, host) as server:
        (query,) = server.tools
        assert query.spec.parameters == {
            "type": "object",
            "properties": {"ids": {"type": "array", "items": {}}, "_filter": {"type": "string"}},
        }
        assert "Needs $filter or ids." in query.spec.description
        assert msgspec.json.decode((await call(query, _filter="a", ids=[1])).text) == {"$filter": "a", "ids": [1]}


async def test_data_and_images_of_results_are_passed_on(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(wrong("rich"), tmp_path, host) as server:
        rows, same, wrapped, picture, torn = [await call(tool) for tool in server.tools]
        assert rows.text == '2 rows\n{"rows":[1,2]}'
        assert (same.text, wrapped.text) == ('{"rows": [1,  2]}', "5")  # said twice by the server, once by us
        assert picture.text == "" and [kind_of(image) for image in picture.images] == ["png"]
        assert (torn.text, torn.images) == ("[image: damaged]", ())


async def test_an_image_of_a_result_lies_beside_the_session_and_the_model_sees_it(
    tmp_path: Path, host: McpHost
) -> None:
    async with up(wrong("rich"), tmp_path, host) as server:
        model = ScriptedModel([calls(("harbour__picture", "{}")), says("A dot.")])
        desk = Desk(model, tools=server.tools, mode="all")
        await desk.say("show me")
        result = desk.state.ledger.groups[1].messages[1]
        (image,) = result.content
        assert isinstance(image, Image) and (image.width, image.height) == (1, 1)
        assert [size_of(data) for data in model.requests[1].images.values()] == [(1, 1)]


async def test_a_server_that_says_its_tools_are_others_is_asked_for_them(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(wrong("others"), tmp_path, host) as server:
        assert server.row.tools == ("harbour__tool0",)
        await call(server.tools[0])
        for _ in range(3000):
            if server.row.tools == ("harbour__tool1",):
                break
            await asyncio.sleep(0.02)
        assert server.row.tools == ("harbour__tool1",)


async def test_a_server_of_resources_alone_has_not_failed(tmp_path: Path, host: McpHost) -> None:
    async with up(wrong("resources"), tmp_path, host) as server:
        assert (server.state, server.trouble, server.row.tools) == ("ready", "", ())


async def test_resources_are_listed_and_read_by_two_tools(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(LIBRARY, tmp_path, host) as server:
        tools = {tool.spec.name.partition("__")[2]: tool for tool in server.tools}
        assert set(tools) == {"bind", "lend", "meet", "reserve", "pay", "list_resources", "read_resource"}
        listed = (await call(tools["list_resources"])).text.splitlines()
        assert any(line.startswith("book://tides") and "water" in line for line in listed)
        assert any(line.startswith("book://{name}/page/{number}") for line in listed)
        assert (await call(tools["read_resource"], uri="book://tides")).text == "high water at six"
        assert (await call(tools["read_resource"], uri="book://moby/page/3")).text == "page 3 of moby"
        [image] = (await call(tools["read_resource"], uri="book://cover")).images
        assert kind_of(image) == "png"
        with pytest.raises(ToolError):
            await call(tools["read_resource"], uri="book://nowhere")


async def test_a_server_that_says_its_resources_are_others_is_asked_for_them(tmp_path: Path, host: McpHost) -> None:
    async with up(wrong("shelf"), tmp_path, host) as server:
        before = {each.uri for each in server.resources}
        plate = await server.read("book://plate")  # which its server calls text, as the SDK does where nobody says
        assert (plate.failed, len(plate.images)) == (False, 1)
        assert "book://next" in before and (await server.read("book://next")).text == "read, and gone"
        for _ in range(3000):
            if {each.uri for each in server.resources} != before:
                break
            await asyncio.sleep(0.02)
        assert {each.uri for each in server.resources} ^ before == {"book://next", "book://after"}


@pytest.mark.parametrize(
    ("said", "came"),
    [
        (("Tides", "7", "yes"), "accept: book='Tides' days=7 sign=True"),
        (("Tides", "many"), "decline"),
        (("",), "decline"),
    ],
)
async def test_what_a_server_asks_is_put_to_the_person(
    said: tuple[str, ...], came: str, tmp_path: Path, host: McpHost
) -> None:
    async with up(LIBRARY, tmp_path, host) as server:
        answers, questions, output = iter(said), list[ToolQuestion](), None
        async for piece in server.tools[1].run({}, ToolContext("c", str(tmp_path), "", 1000, 10.0)):
            if isinstance(piece, ToolQuestion):
                questions.append(piece)
                piece.answered(next(answers))
            else:
                output = piece
        assert isinstance(output, ToolOutput) and output.text == came
        assert len(questions) == len(said) and "harbour asks: What do you want to lend?" in questions[0].text
        assert questions[-1].options == (("yes", "no") if len(said) == 3 else ())


@asynccontextmanager
async def library_over_http() -> AsyncIterator[Address]:
    async with over_http(LIBRARY.args[0]) as address:
        yield address


async def asked_in(server: McpServer, tool: str, folder: Path, say: str) -> tuple[list[str], str]:
    """What is asked in a call and answered with that, and what came of it."""
    await server.settled()
    (called,) = [each for each in server.tools if each.spec.name.endswith(f"__{tool}")]
    questions, output = list[str](), ""
    async for piece in called.run({}, ToolContext("c", str(folder), "", 1000, 10.0)):
        if isinstance(piece, ToolQuestion):
            questions.append(piece.text)
            piece.answered(say)
        elif isinstance(piece, ToolOutput):
            output = piece.text
    return questions, output


@pytest.mark.parametrize("way", ["pipes", "http"])
async def test_a_server_that_asks_in_the_older_form_is_connected_anew_in_that(
    way: str, tmp_path: Path, host: McpHost
) -> None:
    ways = {"pipes": library_over_pipes, "http": library_over_http}
    async with ways[way]() as address, up(address, tmp_path, host) as server:
        with pytest.raises(ToolError, match="call the tool again"):
            await asked_in(server, "reserve", tmp_path, "Ada")
        questions, output = await asked_in(server, "reserve", tmp_path, "Ada")
        assert "Who wants it?" in questions[0] and output == "for Ada"


@pytest.mark.parametrize(("said", "came"), [("x, z", ["x", "z"]), ("x, w", None), (" , ", None)])
async def test_several_of_some_are_answered_with_commas_between(
    said: str, came: list[str] | None, tmp_path: Path, host: McpHost
) -> None:
    async with up(wrong("asker"), tmp_path, host) as server:
        questions, output = await asked_in(server, "several", tmp_path, said)
        assert "of: x, y, z" in questions[0]
        expected = {"action": "decline"} if came is None else {"action": "accept", "content": {"a": came}}
        assert json.loads(output)["q0"] == expected


@pytest.mark.parametrize("said", ["yes", "no"])
async def test_a_page_that_a_call_wants_opened_is_shown_and_the_call_made_then(
    said: str, tmp_path: Path, host: McpHost
) -> None:
    async with up(LIBRARY, tmp_path, host) as server:
        if said == "no":
            with pytest.raises(ToolError, match="URL elicitation required"):
                await asked_in(server, "pay", tmp_path, said)
        else:
            questions, output = await asked_in(server, "pay", tmp_path, said)
            assert questions == ["harbour asks: Pay here\nhttps://pay.example.org/1"] and output == "paid"


@asynccontextmanager
async def asker_over_pipes() -> AsyncIterator[Address]:
    yield wrong("asker")


@pytest.mark.parametrize(
    ("way", "tool", "said"), [(library_over_http, "lend", ("Tides", "7", "yes")), (asker_over_pipes, "two", ("x", "y"))]
)
async def test_while_a_person_is_asked_no_time_of_the_call_goes_by(
    way: Callable, tool: str, said: tuple[str, ...], tmp_path: Path, host: McpHost
) -> None:
    async with way() as address, up(msgspec.structs.replace(address, timeout=4.0), tmp_path, host) as server:
        (asks,) = [each for each in server.tools if each.spec.name.endswith(f"__{tool}")]
        answers, output = iter(said), None
        async for piece in asks.run({}, ToolContext("c", str(tmp_path), "", 1000, 10.0)):
            if isinstance(piece, ToolQuestion):
                await asyncio.sleep(2.5)
                piece.answered(next(answers))
            elif isinstance(piece, ToolOutput):
                output = piece
        assert output and output.status == "ok" and next(answers, None) is None
        assert said[0] in output.text


@asynccontextmanager
async def library_over_pipes() -> AsyncIterator[Address]:
    yield LIBRARY


@pytest.mark.parametrize("way", [library_over_pipes, library_over_http])
async def test_of_two_calls_side_by_side_each_is_asked_about_itself(
    way: Callable, tmp_path: Path, host: McpHost
) -> None:
    async with way() as address, up(address, tmp_path, host) as server:
        (meet,) = [tool for tool in server.tools if tool.spec.name.endswith("__meet")]

        async def at(desk: str) -> str:
            async for piece in meet.run({"desk": desk}, ToolContext(desk, str(tmp_path), "", 1000, 10.0)):
                if isinstance(piece, ToolQuestion):
                    assert f"desk {desk}?" in piece.text
                    piece.answered(f"reader {desk}")
                elif isinstance(piece, ToolOutput):
                    return piece.text
            raise AssertionError

        assert await asyncio.gather(at("1"), at("2")) == ["reader 1 at 1", "reader 2 at 2"]


@pytest.mark.parametrize("answered", [True, False])
async def test_a_question_of_nobody_knows_which_call_outlives_the_one_that_puts_it(
    answered: bool, tmp_path: Path, host: McpHost
) -> None:
    address = msgspec.structs.replace(wrong("crossed"), timeout=3.0)
    async with up(address, tmp_path, host) as server:
        early, late = (
            tool.run({}, ToolContext(str(n), str(tmp_path), "", 1000, 10.0)) for n, tool in enumerate(server.tools)
        )
        first = asyncio.ensure_future(anext(early))
        second = asyncio.ensure_future(anext(late))
        question = await first
        assert isinstance(question, ToolQuestion) and "who?" in question.text
        await asyncio.sleep(3.5)  # more time than the other call has
        if answered:
            question.answered("Ada")
            ended = await anext(early)
            assert isinstance(ended, ToolOutput) and ended.text == "early"
        await early.aclose()
        output = await second
        assert isinstance(output, ToolOutput)
        assert json.loads(output.text) == (
            {"action": "accept", "content": {"a": "Ada"}} if answered else {"action": "decline"}
        )
        await late.aclose()


async def test_no_server_asks_without_an_end_and_each_answer_goes_to_its_own_question(
    tmp_path: Path, host: McpHost
) -> None:
    async with up(wrong("asker"), tmp_path, host) as server:
        asked, said = dict[str, int](), dict[str, str]()
        for tool in server.tools:
            questions = 0
            async for piece in tool.run({}, ToolContext("c", str(tmp_path), "", 1000, 30.0)):
                if isinstance(piece, ToolQuestion):
                    questions += 1
                    assert piece.server == "harbour"
                    piece.answered(f"to {piece.text.splitlines()[-1]}")
                elif isinstance(piece, ToolOutput):
                    name = tool.spec.name.removeprefix("harbour__")
                    asked[name], said[name] = questions, piece.text
        assert asked == {"endless": MAX_QUESTIONS, "two": 2, "many": 0, "odd": 3, "several": 1}
        assert json.loads(said["two"])["q0"]["content"] == {"a": "to a"}
        assert json.loads(said["two"])["q1"]["content"] == {"b": "to b"}
        assert json.loads(said["endless"])["q199"] == {"action": "decline"}


async def test_a_call_says_how_far_it_is(tmp_path: Path, host: McpHost) -> None:
    async with up(LIBRARY, tmp_path, host) as server:
        pieces = [p async for p in server.tools[0].run({}, ToolContext("c", str(tmp_path), "", 1000, 10.0))]
        *said, output = pieces
        assert said == [ToolText(f"{n} of 3: step {n}\n") for n in (1, 2, 3)]
        assert isinstance(output, ToolOutput) and output.text == "bound"


@pytest.mark.parametrize("status", [404, 400])
async def test_a_session_over_http_that_the_server_forgot_is_opened_anew(
    tmp_path: Path, call: Callable, host: McpHost, status: int
) -> None:
    with forgetful(status) as (address, sessions):
        async with up(address, tmp_path, host) as server:
            assert (await call(server.tools[0])).text == "hi there"
            sessions.clear()
            answers = [await call(server.tools[0]) for _ in range(2)]
            assert [(a.status, a.text) for a in answers] == [("ok", "hi there")] * 2
            assert len(sessions) == 1 and server.state == "ready"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_over_http_is_read_up_to_a_length_and_a_longer_one_costs_that_call(
    tmp_path: Path, call: Callable, host: McpHost, stream: bool
) -> None:
    with forgetful(404) as (address, _):
        async with up(address, tmp_path, host) as server:
            (hi,) = server.tools
            assert (await call(hi, letters=9_000_000, stream=stream)).text == "x" * 9_000_000
            with pytest.raises(ToolError, match=r"more than 32.0 MB"):
                await call(hi, letters=33_000_000, stream=stream)
            assert (await call(hi)).text == "hi there" and server.state == "ready"


async def test_a_result_of_very_many_parts_is_read_by_another_process(
    tmp_path: Path, call: Callable, host: McpHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {"mcp", "mcp_types"} & sys.modules.keys():  # of tests of the worker's own parts
        monkeypatch.delitem(sys.modules, name)
    async with up(wrong("crowd"), tmp_path, host) as server:
        (echo,) = server.tools
        assert (await call(echo)).text == "\n".join(["part"] * 30_000)
    assert not {"mcp", "mcp_types"} & sys.modules.keys()


async def test_a_long_result_is_passed_on_whole_up_to_a_cap_that_is_told(
    tmp_path: Path, call: Callable, host: McpHost
) -> None:
    async with up(wrong("long"), tmp_path, host) as server:
        (echo,) = server.tools
        text = (await call(echo)).text
        assert (
            MAX_RESULT_CHARS <= len(text) < MAX_RESULT_CHARS + 100
            and text.startswith("long long")
            and text.endswith("long ")
        )
        assert "[… 2,500,000 characters left out …]" in text


async def test_a_result_too_long_for_the_window_lies_whole_in_the_sessions_file(tmp_path: Path, host: McpHost) -> None:
    model = ScriptedModel([calls(("harbour__echo", {})), says("ok")])
    async with up(wrong("crowd"), tmp_path, host) as server:
        desk = Desk(model, tools=server.tools, mode="all")
        (done,) = [event for event in await desk.say("go") if isinstance(event, ToolFinished)]
    assert desk.journal.spilled[done.spilled] == "\n".join(["part"] * 30_000)
    assert done.spilled in done.output and len(done.output) < 100_000


async def test_servers_that_share_a_host_end_one_by_one(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(wrong("twins"), tmp_path / "a", host) as first:
        async with up(BUSY, tmp_path / "b", host) as second:
            assert (await call(second.tools[0])).text == "add"
        assert (await call(first.tools[0])).text == "a b"
    async with up(BUSY, tmp_path / "c", host) as again:
        assert again.state == "ready"


async def test_a_call_that_is_broken_off_leaves_the_others_alone(tmp_path: Path, call: Callable, host: McpHost) -> None:
    async with up(BUSY, tmp_path, host) as server:
        tools = {tool.spec.name: tool for tool in server.tools}
        slow = asyncio.create_task(call(tools["harbour__slow"]))
        assert (await call(tools["harbour__add"])).text == "add"
        slow.cancel()
        assert (await call(tools["harbour__add"])).text == "add"
        with pytest.raises(asyncio.CancelledError):
            await slow
