"""Logging in to real MCP servers over HTTP: begun by a person, kept, renewed, refused, and what goes wrong."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError

import msgspec
import pytest
import pytest_asyncio

from ctxchat.core.errors import ToolError
from ctxchat.tools.mcp.host import McpHost
from ctxchat.tools.mcp.login_store import FOLDER, LoginStore, StoredLogin
from ctxchat.tools.mcp.protocol import Address
from ctxchat.tools.mcp.server import McpServer, StartOptions
from tests.doubles.kept_mcp_host import kept_mcp_host
from tests.doubles.ports import free_port, until_listening
from tests.doubles.started_server import started

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = str(Path(__file__).resolve().parents[1] / "doubles" / "mcp_login_server.py")


class Desk:
    """A server that wants logins, and how somebody connects to it: `told` is what it says happened."""

    def __init__(self, folder: Path, host: McpHost, url: str) -> None:
        self.folder, self.host, self.address = folder, host, Address(url=url)
        self.told: list[str] = []
        self.store = LoginStore(folder / FOLDER)

    @asynccontextmanager
    async def connected(self, log_in: bool = False, **more: str) -> AsyncIterator[McpServer]:
        address = msgspec.structs.replace(self.address, **more)
        server = McpServer("harbour", address, StartOptions(str(self.folder), self.folder / "harbour.log"), self.host)
        async with started(server, self.browse if log_in else None):
            yield server

    def browse(self, page: str, callback: Callable[[str], object]) -> None:
        """What a browser does: it goes where the page sends it."""
        self._going = asyncio.get_running_loop().run_in_executor(None, lambda: urllib.request.urlopen(page).read())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpHost]:
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("HARBOUR_SECRET", "hush")
        async with kept_mcp_host(tmp_path_factory.mktemp("kept")) as host:
            yield host


@asynccontextmanager
async def desk(folder: Path, host: McpHost, *arguments: str) -> AsyncIterator[Desk]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, SCRIPT, str(port), *arguments, stdout=-1, stderr=asyncio.subprocess.DEVNULL
    )
    desk = Desk(folder, host, f"http://127.0.0.1:{port}/mcp")

    async def read() -> None:
        assert process.stdout
        async for line in process.stdout:
            if b" " not in line:  # else a word of its web server
                desk.told.append(line.decode().strip())

    reading = asyncio.create_task(read())
    try:
        await until_listening(port)
        yield desk
    finally:
        process.kill()
        await process.wait()
        await reading


async def test_a_login_is_begun_by_a_person_only_and_kept_for_later(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600") as at:
        async with at.connected() as server:
            assert server.state == "failed" and server.row.login_wanted and "mcp login harbour" in server.trouble
            assert at.told == []  # not even registered
        async with at.connected(log_in=True) as server:
            assert server.state == "ready" and [t.spec.name for t in server.tools] == [
                "harbour__add",
                "harbour__end_tokens",
            ]
        file = at.store.path(at.address.url)
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        async with at.connected() as server:
            assert (await server.call("add", {"a": 2, "b": 3})).text == "5"
        assert at.told == ["registered", "logged-in"]
        assert at.store.delete(at.address.url) and not at.store.delete(at.address.url)
        async with at.connected() as server:
            assert server.row.login_wanted


async def test_one_that_ends_is_renewed_also_by_two_sessions_at_once(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "1") as at:
        async with at.connected(log_in=True):
            pass
        async with at.connected() as first, at.connected() as second:
            for _ in range(3):
                await asyncio.sleep(1.1)
                both = await asyncio.gather(*(s.call("add", {"a": 1, "b": 1}) for s in (first, second)))
                assert [reply.text for reply in both] == ["2", "2"]
        assert at.told.count("logged-in") == 1 and at.told.count("renewed") >= 3


async def test_a_token_that_is_refused_is_renewed_and_the_call_goes_out_again(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600") as at:
        async with at.connected(log_in=True):
            pass
        kept = at.store.read(at.address.url)
        assert kept
        at.store.write(at.address.url, msgspec.structs.replace(kept, access_token="stale"))
        async with at.connected() as server:
            assert server.state == "ready" and at.told[-1] == "renewed"


async def test_one_that_ends_at_the_server_while_it_is_in_use_is_renewed(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600") as at:
        async with at.connected(log_in=True):
            pass
        async with at.connected() as server:
            assert (await server.call("end_tokens", {})).text == "1"
            before = at.told.count("renewed")
            assert (await server.call("add", {"a": 2, "b": 3})).text == "5"
            assert at.told.count("renewed") == before + 1


async def test_one_that_is_over_is_told_and_the_tools_say_how_to_mend_it(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "1") as at:
        async with at.connected(log_in=True):
            pass
        async with at.connected() as server:
            await asyncio.sleep(1.1)  # no request is on its way then, which would renew it once more
            kept = at.store.read(at.address.url)
            assert kept
            at.store.write(at.address.url, msgspec.structs.replace(kept, access_token="stale", refresh_token="taken"))
            with pytest.raises(ToolError, match=r"wants you to log in.*mcp login harbour"):
                await server.call("add", {"a": 1, "b": 1})
            assert server.row.login_wanted


async def test_where_the_server_registers_nobody_the_settings_say_who_we_are(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "1", "unregistered") as at:
        async with at.connected(log_in=True) as server:
            assert server.state == "failed" and "client_id" in server.trouble
        async with at.connected(log_in=True, client_id="known", client_secret_env="HARBOUR_SECRET") as server:
            assert server.state == "ready", server.trouble
            await asyncio.sleep(1.1)
        async with at.connected() as server:
            assert server.state == "ready" and "renewed" in at.told


async def test_a_login_that_is_refused_says_why(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600", "denied") as at, at.connected(log_in=True) as server:
        assert server.state == "failed" and "refused" in server.trouble and "today" in server.trouble
        assert at.store.read(at.address.url) is None


async def test_what_was_copied_from_a_browser_elsewhere_is_taken_and_nothing_else_is(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600") as at:
        seen: list[int] = []

        def elsewhere(page: str, callback: Callable[[str], object]) -> None:
            def go() -> None:
                class Stay(urllib.request.HTTPRedirectHandler):
                    def redirect_request(self, *_: object) -> None: ...

                try:
                    urllib.request.build_opener(Stay).open(page)
                except HTTPError as sent:
                    back = sent.headers["location"]
                    root = back.partition("?")[0]
                    for wrong in (root, f"{root}?code=mine&state=guessed", f"{root}x"):
                        try:
                            urllib.request.urlopen(wrong)
                        except HTTPError as refused:
                            seen.append(refused.code)
                    for wrong in ("not an address", "http://["):
                        loop.call_soon_threadsafe(callback, wrong)
                    loop.call_soon_threadsafe(callback, f" {back}\n")

            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, go)

        server = McpServer("harbour", at.address, StartOptions(str(tmp_path), tmp_path / "harbour.log"), host)
        server.start(elsewhere)
        await asyncio.wait_for(server.settled(), 60)
        assert server.state == "ready" and seen == [404, 404, 404]
        await server.stop()


async def test_a_header_of_the_settings_is_not_replaced_by_a_login(tmp_path: Path, host: McpHost):
    async with desk(tmp_path, host, "3600") as at:
        at.store.write(at.address.url, StoredLogin("whatever"))
        address = msgspec.structs.replace(at.address, headers={"authorization": "Bearer mine"})
        server = McpServer("harbour", address, StartOptions(str(tmp_path), tmp_path / "harbour.log"), host)
        server.start()
        await asyncio.wait_for(server.settled(), 60)
        assert "Authorization header" in server.trouble and not server.row.login_wanted
        await server.stop()
