"""The chat in a browser: who gets in, and that the page asks nobody else for anything."""

from __future__ import annotations

import asyncio
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from aiohttp import ClientSession, CookieJar, WSServerHandshakeError, web
from yarl import URL

from ctxchat.bootstrap.flags import Flags
from ctxchat.cli.serve import chat_command
from ctxchat.cli.serving import HOST, ChatServer
from tests.cli.conftest import Cli

SHOWN = b"Harbour"
PROGRAM = f"import sys; sys.stdout.buffer.write(b'__GANGLION__\\nD' + bytes([0, 0, 0, 7]) + {SHOWN!r})"
AT_WORK = """
import json, sys, time
told = json.dumps({"type": "session", "id": sys.argv[1] or "first"}).encode()
sys.stdout.buffer.write(b"__GANGLION__\\nM" + len(told).to_bytes(4, "big") + told)
shown = f"at {sys.argv[1] or 'nothing'}".encode()
sys.stdout.buffer.write(b"D" + len(shown).to_bytes(4, "big") + shown)
sys.stdout.flush()
time.sleep(60)
"""


@pytest.fixture
async def served() -> AsyncIterator[ChatServer]:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    async with serving(lambda session: shlex.join([sys.executable, "-c", PROGRAM]), port) as server:
        yield server


@asynccontextmanager
async def serving(command: Callable[[str], str], port: int) -> AsyncIterator[ChatServer]:
    server = ChatServer(command, port, lambda address: None, text_size=20)
    runner = web.AppRunner(await server._make_app())  # what textual-serve runs
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    try:
        yield server
    finally:
        await runner.cleanup()


def visitor() -> ClientSession:
    return ClientSession(cookie_jar=CookieJar(unsafe=True))  # an address in figures, as a browser takes it


async def test_the_address_opens_the_page_and_the_program(served: ChatServer) -> None:
    async with visitor() as browser:
        async with browser.get(served.address) as page:
            text = await page.text()
            assert page.status == 200 and "token" not in str(page.url)
            base = str(page.url).rstrip("/")
            assert "default-src 'self'" in page.headers["Content-Security-Policy"]
        links = re.findall(r"""(?:src|href)="(\w+://[^/"]+)""", text)
        assert set(links) == {served.public_url}
        for script in re.findall(r"""src="([^"]+)""", text):
            async with browser.get(script) as loaded:
                assert loaded.status == 200
        (socket_url,) = re.findall(r"""websocket-url="([^"]+)""", text)
        async with browser.ws_connect(socket_url, origin=served.public_url, compress=15) as chat:
            assert chat.compress
            assert await chat.receive_bytes(timeout=10) == SHOWN
        assert socket_url.startswith(base.replace("http", "ws", 1))


async def test_a_tab_that_is_loaded_again_goes_on_and_the_end_waits_for_no_tab() -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    async with (
        serving(lambda session: shlex.join([sys.executable, "-c", AT_WORK, session]), port) as server,
        visitor() as browser,
    ):
        async with browser.get(server.address) as page:
            text = await page.text()
        assert "<title>ctxchat</title>" in text and 'data-font-size="20"' in text
        (socket_url,) = re.findall(r"""websocket-url="([^"]+)""", text)
        for tab, shown in (("one", b"at nothing"), ("one", b"at first"), ("two", b"at nothing")):
            async with browser.ws_connect(f"{socket_url}/{tab}", origin=server.public_url) as chat:
                assert await chat.receive_bytes(timeout=10) == shown
            async with asyncio.timeout(10):
                while server._open:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        left = await browser.ws_connect(f"{socket_url}/two", origin=server.public_url)
        assert await left.receive_bytes(timeout=10)
        began = monotonic()
    assert left.close_code or (await left.receive(timeout=5)).type.name in {"CLOSE", "CLOSED"}
    assert monotonic() - began < 10, "a page that stays open would hold it up for a minute"


async def test_what_else_listens_on_this_machine_is_sent_no_cookie_and_one_alone_opens_nothing(
    served: ChatServer,
) -> None:
    async with visitor() as browser:
        async with browser.get(served.address) as page:
            place = page.url.path
        kept = {cookie.key: cookie for cookie in browser.cookie_jar}
        assert len(place) > 40 and kept and all(place.startswith(cookie["path"]) for cookie in kept.values())
        assert not browser.cookie_jar.filter_cookies(URL("http://127.0.0.1:1/")), "whoever listens on another port"
        stolen = {name: cookie.value for name, cookie in kept.items()}
    async with visitor() as thief:
        for path in ("/ws", "/", "/static/js/textual.js", place + "ws"):
            cookies = stolen if path != place + "ws" else {}
            async with thief.get(served.public_url + path, cookies=cookies) as answer:
                assert answer.status == 403


async def test_no_route_opens_by_its_place_or_by_the_cookie_alone(served: ChatServer) -> None:
    router = (await served._make_app()).router
    routes = {route.resource.canonical for route in router.routes() if route.resource}
    assert len(routes) >= 4 and all(route.startswith(f"{served._place}/") or route == served._place for route in routes)
    async with visitor() as browser, browser.get(served.address):
        cookies = {cookie.key: cookie.value for cookie in browser.cookie_jar}
    async with visitor() as thief:
        for route in routes:
            bare = route.removeprefix(served._place) or "/"
            for path, held in ((route, {}), (bare, cookies), (f"/x{bare}", cookies), (f"/..{route}", {})):
                for method in ("GET", "HEAD", "POST"):
                    async with thief.request(method, served.public_url + path, cookies=held) as answer:
                        assert answer.status == 403, (method, path)


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/download/x", "/?token=guessed"])
async def test_without_the_token_nothing_is_there(served: ChatServer, path: str) -> None:
    async with visitor() as browser, browser.get(served.public_url + path) as answer:
        assert answer.status == 403


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "null"}])
async def test_other_pages_and_other_names_are_turned_away(served: ChatServer, headers: dict[str, str]) -> None:
    async with visitor() as browser:
        async with browser.get(served.address) as page:
            assert page.status == 200
        async with browser.get(page.url, headers=headers) as answer:
            assert answer.status == 403
        with pytest.raises(WSServerHandshakeError, match="403"):
            await browser.ws_connect(f"{page.url}ws", headers=headers)


def test_the_chat_gets_the_options_as_they_were_given() -> None:
    command = chat_command(Flags(model="offline/assistant", window=9000, session="a b; rm x"))
    words = shlex.split(command.removeprefix("exec "))
    assert (
        words[1] == "-I" and words[-7:-5] == ["ctxchat", "--model"] and words[-3:] == ["9000", "--session", "a b; rm x"]
    )


def test_a_port_that_is_taken_is_said(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        said = cli("serve", "--port", str(taken.getsockname()[1]))
    assert said.code == 1 and "cannot be used" in said.err and "--port" in said.err
    assert not said.out, "no address of a page that is not there"
