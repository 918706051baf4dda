"""`ctxchat serve` in a real headless Chromium, driven by its own protocol: skipped where there is none."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pyte
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

from tests.cli.conftest import Home
from tests.e2e.conftest import READY

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.pty, pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")]


class Tab:
    """A page: keys go in, and what its terminal was sent comes out."""

    def __init__(self, line: ClientWebSocketResponse) -> None:
        self._line = line
        self._number = 0
        self._screen = pyte.Screen(200, 80)  # larger than any page: what is drawn names its cells
        self._terminal = pyte.ByteStream(self._screen)
        self.loads = 0

    @property
    def shown(self) -> str:
        """What its terminal shows of what was drawn since it was cleared."""
        return "\n".join(self._screen.display)

    def clear(self) -> None:
        self._screen.reset()

    async def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        await self._line.send_json({"id": self._number, "method": method, "params": params})
        while True:
            answer = self._take(await self._line.receive_json(timeout=30))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _take(self, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("method") == "Page.loadEventFired":
            self.loads += 1
            self.clear()
        if message.get("method") == "Network.webSocketFrameReceived":
            frame = message["params"]["response"]
            if frame["opcode"] == 2:
                self._terminal.feed(base64.b64decode(frame["payloadData"]))
        return message

    async def value(self, expression: str) -> Any:
        return (await self.ask("Runtime.evaluate", expression=expression))["result"].get("value")

    async def until(self, holds: Callable[[], object]) -> None:
        end = monotonic() + 20
        while not holds():
            assert monotonic() < end, self.shown
            try:
                self._take(await self._line.receive_json(timeout=1))
            except TimeoutError:
                continue

    async def write(self, text: str) -> None:
        for letter in text:
            about = {"key": letter, "windowsVirtualKeyCode": ord(letter.upper())}
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, **about)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    async def copy(self, text: str) -> None:
        """As a person copies from another page; the focus comes back by itself."""
        script = (
            "const area = document.body.appendChild(document.createElement('textarea')); area.value = %s; area.select();"
            "document.execCommand('copy'); area.remove(); window.dispatchEvent(new Event('focus'))"
        )
        await self.ask("Runtime.evaluate", expression=script % json.dumps(text), userGesture=True)

    async def press(self, key: str, *, control: bool = False, shift: bool = False) -> None:
        code = {"F2": 113, "F5": 116, "Enter": 13, "r": 82, "v": 86}.get(key, 0)
        more = {"text": "\r"} if key == "Enter" else {}
        about = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 * control + 8 * shift}
        about |= {"nativeVirtualKeyCode": code, "code": f"Key{key.upper()}" if len(key) == 1 else key}
        commands = {"commands": ["paste"]} if control and key == "v" else {}
        kind = "keyDown" if more or commands else "rawKeyDown"
        await self.ask("Input.dispatchKeyEvent", type=kind, **about, **more, **commands)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **about)


@asynccontextmanager
async def browsing(home: Home, *options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, Any]]:
    """The server, the address it printed, and what opens a tab of a browser on an address."""
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, debugging = free.getsockname()[1], other.getsockname()[1]
    pipe = asyncio.subprocess.PIPE
    line = [sys.executable, "-m", "ctxchat", "serve", "--port", str(port), *options]
    server = await asyncio.create_subprocess_exec(*line, stdout=pipe, stderr=pipe, env=home.environ, cwd=home.work)
    profile = home.root / "profile"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    browser = await asyncio.create_subprocess_exec(
        str(CHROMIUM), *flags, f"--remote-debugging-port={debugging}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout
        address = (await asyncio.wait_for(server.stdout.readline(), 30)).decode().strip()
        async with ClientSession() as http:

            async def tab(url: str) -> Tab:
                base = f"http://127.0.0.1:{debugging}/json/new?about:blank"
                for _ in range(300):
                    try:
                        async with http.put(base) as made:
                            about = json.loads(await made.text())
                            break
                    except OSError:
                        await asyncio.sleep(0.1)
                page = Tab(await http.ws_connect(about["webSocketDebuggerUrl"], max_msg_size=0))
                for domain in ("Page", "Runtime", "Network"):
                    await page.ask(f"{domain}.enable")
                await page.ask("Emulation.setFocusEmulationEnabled", enabled=True)
                await page.ask("Page.bringToFront")
                await page.ask("Page.navigate", url=url)
                return page

            yield server, address, tab
    finally:
        for process in (server, browser):
            if process.returncode is None:
                process.kill()
            await process.wait()


def below(process: int) -> list[int]:
    """The programs that this one started, and those that they did."""
    children = [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return [*children, *(each for child in children for each in below(child))]


def runs(process: int) -> bool:
    """False for one that nobody has taken note of the end of, too."""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
async def test_a_tab_is_typed_into_at_once_pasted_into_reloaded_and_ended(harbour: Home, end: signal.Signals) -> None:
    async with browsing(harbour, "--text-size", "20") as (server, address, tab):
        page = await tab(address)
        await page.until(lambda: READY in page.shown)
        assert await page.value("document.title") == "ctxchat"
        assert await page.value("document.getElementById('terminal').dataset.fontSize") == "20"
        assert await page.value("document.activeElement.className") == "xterm-helper-textarea"
        await page.write("Where is ")
        await page.copy("INTERVAL set?")
        await page.press("v", control=True)
        await page.until(lambda: "INTERVAL set?" in page.shown)
        page.clear()
        await page.press("Enter")
        await page.until(lambda: "Looked for" in page.shown)
        other = await tab(address)
        await other.until(lambda: READY in other.shown)
        for key, control in (("F5", False), ("r", True)):
            loads = page.loads
            await page.ask("Page.bringToFront")  # or the browser itself does nothing at a key
            await page.press(key, control=control)
            await page.until(lambda loads=loads: page.loads > loads)
            await page.until(lambda: "Looked for" in page.shown)  # the session of this tab
        assert "Looked for" not in other.shown
        page.clear()
        await page.press("F2", shift=True)
        await page.until(lambda: "Ask about the files" in page.shown)  # a new session, by a key that the browser leaves
        started = below(server.pid)
        began = monotonic()
        server.send_signal(end)
        said = await asyncio.wait_for(server.communicate(), 20)
        assert monotonic() - began < 5
        assert b"Traceback" not in said[0] + said[1]
        assert len(started) >= 2 and not [each for each in started if runs(each)]
        assert await page.value("getComputedStyle(document.querySelector('.closed-dialog')).display") == "flex"


async def test_the_chats_of_its_tabs_begin_with_the_session_that_is_named(harbour: Home) -> None:
    for question in ("Which logger does Pier 7 report to?", "Where is INTERVAL set?"):
        assert (await asyncio.to_thread(harbour.start, "run", question)).code == 0
    listed = await asyncio.to_thread(harbour.start, "sessions", "list", "--json")
    earlier = listed.json[1]["id"]
    for options, shown, other in (
        (("--continue",), "INTERVAL set?", "Pier 7 report"),
        (("--session", earlier[:-1]), "Pier 7 report", "INTERVAL set?"),
    ):
        async with browsing(harbour, *options) as (_, address, tab):
            page = await tab(address)
            await page.until(lambda page=page, shown=shown: shown in page.shown)
            beside = await tab(address)
            await beside.until(lambda page=beside: "is open in another window" in page.shown)
            assert other not in page.shown + beside.shown
