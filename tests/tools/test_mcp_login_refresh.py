"""A login is refreshed once, whoever asks for it and however the asking ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from ctxchat.tools.mcp.login import LoginAuth
from ctxchat.tools.mcp.login_store import LoginStore, StoredLogin

URL = "https://server.example/mcp"


class Keyless:
    """No keyring."""


class Server:
    """It takes the newest access token only, and each refresh token once; a refresh waits for `hold`."""

    def __init__(self) -> None:
        self.number, self.refreshed = 0, 0
        self.hold, self.asked = asyncio.Event(), asyncio.Event()
        self.hold.set()

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path != "/token":
            fine = request.headers["authorization"] == f"Bearer a{self.number}"
            await asyncio.sleep(0)
            return httpx2.Response(200 if fine else 401)
        given = (await request.aread()).decode()
        if f"refresh_token=r{self.number}&" not in given:
            return httpx2.Response(400, json={"error": "invalid_grant"})
        self.number, self.refreshed = self.number + 1, self.refreshed + 1
        self.asked.set()
        await self.hold.wait()
        said = {"access_token": f"a{self.number}", "token_type": "Bearer", "refresh_token": f"r{self.number}"}
        return httpx2.Response(200, json=said | {"expires_in": 3600})


Opened = tuple[httpx2.AsyncClient, LoginAuth, LoginStore]


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[Server, StoredLogin], Opened]:
    def open(server: Server, login: StoredLogin) -> Opened:
        transport = httpx2.MockTransport(server)
        store = LoginStore(tmp_path / "logins", Keyless())
        store.write(URL, login)
        auth = LoginAuth(store, URL, login, httpx2.AsyncClient(transport=transport))
        return httpx2.AsyncClient(transport=transport, auth=auth), auth, store

    return open


def login(access: str = "a0", expires_at: float = 0.0) -> StoredLogin:
    return StoredLogin(access, expires_at, "r0", "https://server.example/token", "me")


async def test_a_refresh_goes_on_when_the_request_is_given_up(opened: Callable[..., Opened]) -> None:
    server = Server()
    client, auth, store = opened(server, login(expires_at=1.0))
    server.hold.clear()
    asking = asyncio.create_task(client.get(URL))
    await server.asked.wait()
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    server.hold.set()
    await auth.wait_for_refresh()
    kept = store.read(URL)
    assert kept and (kept.access_token, kept.refresh_token) == ("a1", "r1")
    assert (await client.get(URL)).status_code == 200 and server.refreshed == 1


@pytest.mark.parametrize("was", [login("stale"), login(expires_at=1.0)], ids=["refused", "expired"])
async def test_requests_side_by_side_refresh_once(opened: Callable[..., Opened], was: StoredLogin) -> None:
    server = Server()
    client, _, _ = opened(server, was)
    replies = await asyncio.gather(*(client.get(URL) for _ in range(5)))
    assert [reply.status_code for reply in replies] == [200] * 5 and server.refreshed == 1


async def test_what_another_session_kept_is_used_unless_it_has_expired_too(opened: Callable[..., Opened]) -> None:
    server = Server()
    client, _, store = opened(server, login("stale"))
    store.write(URL, login("a0"))
    assert (await client.get(URL)).status_code == 200 and server.refreshed == 0
    client, _, store = opened(server, login("stale", 1.0))
    store.write(URL, login("older", 1.0))
    assert (await client.get(URL)).status_code == 200 and server.refreshed == 1
