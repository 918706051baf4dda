"""MCP servers, and servers for logins, that want more than a login to themselves: the tokens of others, an address that only this
machine reaches, memory without an end."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import pytest_asyncio

from ctxchat.core.errors import ToolError
from ctxchat.tools.mcp.host import McpHost
from ctxchat.tools.mcp.http_transport import MAX_LOGIN_ANSWER_BYTES
from ctxchat.tools.mcp.login_store import FOLDER, LoginStore, StoredLogin
from ctxchat.tools.mcp.protocol import Address
from ctxchat.tools.mcp.server import McpServer, StartOptions
from tests.doubles.hostile_http import Answer, Asked, HostileHttp, hostile_http
from tests.doubles.kept_mcp_host import kept_mcp_host
from tests.doubles.started_server import started

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Harbour:
    """An MCP server that wants a login to `login`, or to itself: both agree to all, but for what `special` says of a path."""

    def __init__(self, folder: Path, host: McpHost, server: HostileHttp, login: HostileHttp) -> None:
        self.folder, self.host, self.server, self.login = folder, host, server, login
        self.address = Address(url=f"{server.url}/mcp", timeout=5)
        self.store = LoginStore(folder / FOLDER)
        self.special: dict[str, Answer] = {}
        self.issuer = login
        self.lifetime = 3600
        self.trusted = True
        server.answer, login.answer = self.answer, self.answer
        self.pages: list[str] = []

    def answer(self, asked: Asked) -> Answer:
        path = urlsplit(asked.path).path
        if path in self.special:
            return self.special[path]
        match path:
            case "/mcp" | "/mcp/":
                return self._mcp(asked)
            case "/.well-known/oauth-protected-resource/mcp":
                return Answer(body={"resource": self.address.url, "authorization_servers": [self.issuer.url]})
            case "/.well-known/oauth-authorization-server":
                return Answer(body=self.metadata(self.issuer))
            case "/register":
                return Answer(201, {"client_id": "me", "redirect_uris": asked.said["redirect_uris"]})
            case "/authorize":
                back = parse_qs(urlsplit(asked.path).query)
                where = f"{back['redirect_uri'][0]}?code=c&state={back['state'][-1]}"
                return Answer(302, headers={"location": where})
            case "/token":
                token = {"access_token": "good", "refresh_token": "more", "token_type": "Bearer"}
                return Answer(body={**token, "expires_in": self.lifetime})
            case _:
                return Answer(404)

    def metadata(self, server: HostileHttp, **more: object) -> dict[str, object]:
        at = {f"{name}_endpoint": f"{server.url}/{path}" for name, path in ENDPOINTS.items()}
        return {"issuer": server.url, **at, "code_challenge_methods_supported": ["S256"], **more}

    def _mcp(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != "Bearer good" or not self.trusted:
            return Answer(401, headers={"www-authenticate": "Bearer"})
        if asked.method != "POST":
            return Answer(405)
        if "id" not in asked.said:
            return Answer(202)
        parameters = asked.said.get("params") or {}
        assert isinstance(parameters, dict)
        about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        results = {
            "initialize": {**about, "serverInfo": {"name": "harbour", "version": "1"}},
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        if str(asked.said["method"]) not in results:
            error = {"code": -32601, "message": "unknown"}
            return Answer(body={"jsonrpc": "2.0", "id": asked.said["id"], "error": error})
        return Answer(body={"jsonrpc": "2.0", "id": asked.said["id"], "result": results[str(asked.said["method"])]})

    def browse(self, page: str, callback: Callable[[str], object]) -> None:
        self.pages.append(page)
        self.going = asyncio.get_running_loop().run_in_executor(None, _visit, page)

    @asynccontextmanager
    async def connected(self, log_in: bool = True, **more: object) -> AsyncIterator[McpServer]:
        address = msgspec.structs.replace(self.address, **more)
        server = McpServer("harbour", address, StartOptions(str(self.folder), self.folder / "harbour.log"), self.host)
        async with started(server, self.browse if log_in else None):
            yield server


def _visit(page: str) -> None:
    with suppress(OSError):
        urllib.request.urlopen(page).read()


OTHERS = {
    "resource": "https://other.example/mcp",
    "authorization_servers": ["https://other.example"],
    "issuer": "https://other.example",
    "authorization_endpoint": "https://other.example/authorize",
    "token_endpoint": "https://other.example/token",
}
ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpHost]:
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("HARBOUR_SECRET", "hush")
        async with kept_mcp_host(tmp_path_factory.mktemp("kept")) as host:
            yield host


@pytest_asyncio.fixture(loop_scope="module")
async def harbour(tmp_path: Path, host: McpHost) -> AsyncIterator[Harbour]:
    async with hostile_http() as server, hostile_http() as login:
        yield Harbour(tmp_path, host, server, login)


@pytest.mark.parametrize("who", ["resource", "issuer", "registration", "token", "authorization"])
async def test_no_part_of_a_login_is_asked_where_anybody_could_read_it(harbour: Harbour, who: str) -> None:
    """A request there would be seen, or reach what listens to this network only."""
    away = "http://192.0.2.1:9"
    told = harbour.metadata(harbour.login)
    match who:
        case "resource":
            harbour.special["/mcp"] = Answer(401, headers={"www-authenticate": f'Bearer resource_metadata="{away}/x"'})
        case "issuer":
            body = {"resource": harbour.address.url, "authorization_servers": [away]}
            harbour.special["/.well-known/oauth-protected-resource/mcp"] = Answer(body=body)
        case _:
            told[f"{who}_endpoint"] = f"{away}/x"
            harbour.special["/.well-known/oauth-authorization-server"] = Answer(body=told)
    async with harbour.connected() as server:
        assert server.state == "failed" and away in server.trouble and "anybody could read" in server.trouble
    assert not harbour.pages and harbour.store.read(harbour.address.url) is None


@pytest.mark.parametrize(
    "path",
    [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/token",
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_no_answer_of_a_login_takes_memory_without_an_end(harbour: Harbour, path: str, kind: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(2_000):
            yield b" " * 100_000

    status = 401 if path == "/mcp" else 200
    harbour.special[path] = Answer(status, endless(), {"content-type": kind, "www-authenticate": "Bearer"})
    async with harbour.connected() as server:
        assert server.state == "failed"
    sent = max(harbour.server.sent, harbour.login.sent)
    assert sent < 20 * MAX_LOGIN_ANSWER_BYTES, sent


async def test_a_packed_answer_is_not_unpacked(harbour: Harbour) -> None:
    harbour.special["/token"] = Answer(body=b"\x1f\x8b\x08", headers={"content-encoding": "gzip"})
    async with harbour.connected() as server:
        assert server.state == "failed" and "packed" in server.trouble


async def test_what_refreshes_a_login_goes_where_it_came_from_and_nowhere_else(harbour: Harbour) -> None:
    """A server that says later that another one has its logins would get what it never had: the secret of the client, and the
    token for new ones."""
    harbour.lifetime = 2
    async with (
        hostile_http() as thief,
        harbour.connected(client_id="known", client_secret_env="HARBOUR_SECRET", issuer=harbour.login.url) as server,
    ):
        thief.answer = harbour.answer
        assert server.state == "ready", server.trouble
        harbour.issuer, harbour.trusted = thief, False
        with pytest.raises(ToolError, match="log in"):
            await server.call("add", {})
        harbour.trusted = True
        await asyncio.sleep(2.1)  # its token is over
        await server.call("add", {})
        assert not any("more" in str(asked.said) or "hush" in str(asked.said) for asked in thief.asked), thief.asked


@pytest.mark.parametrize(
    ("says", "meant", "described", "gets"),
    [
        ("thief", "", True, ""),
        ("thief", "login", True, ""),
        ("server", "login", True, ""),
        ("login", "login", False, ""),  # the fall-back is the server itself
        ("server", "", True, "server"),
        ("login", "login", True, "login"),
    ],
)
async def test_the_secret_of_a_client_goes_to_the_server_itself_or_to_the_issuer_that_the_settings_name(
    harbour: Harbour, says: str, meant: str, described: bool, gets: str
) -> None:
    async with hostile_http() as thief:
        all_ = {"thief": thief, "login": harbour.login, "server": harbour.server}
        thief.answer, harbour.issuer = harbour.answer, all_[says]
        if not described:
            harbour.special["/.well-known/oauth-authorization-server"] = Answer(404)
        issuer = f"{all_[meant].url}/" if meant else ""
        async with harbour.connected(client_id="known", client_secret_env="HARBOUR_SECRET", issuer=issuer) as server:
            assert server.state == ("ready" if gets else "failed"), server.trouble
            assert gets or "not for that place" in server.trouble
        assert [n for n, each in all_.items() if "hush" in str([a.said for a in each.asked])] == [gets] * bool(gets)


async def test_the_port_for_the_browser_is_closed_after_the_login_and_takes_no_answer_twice(harbour: Harbour) -> None:
    async with harbour.connected() as server:
        assert server.state == "ready", server.trouble
        back = parse_qs(urlsplit(harbour.pages[0]).query)
        again = f"{back['redirect_uri'][0]}?code=other&state={back['state'][0]}"
        await asyncio.wait_for(harbour.going, 10)
        with pytest.raises(OSError) as refused:
            await asyncio.to_thread(urllib.request.urlopen, again)
        assert not isinstance(refused.value, HTTPError)
    assert len([path for path in harbour.login.paths("POST") if path == "/token"]) == 1


@pytest.mark.parametrize(
    "endpoint", ["/authorize?tenant=1", "/authorize?state=guessed&code=evil", "/authorize#state=guessed"]
)
async def test_the_state_of_a_login_is_ours_whatever_its_page_has_in_its_address(
    harbour: Harbour, endpoint: str
) -> None:
    told = harbour.metadata(harbour.login, authorization_endpoint=harbour.login.url + endpoint)
    harbour.special["/.well-known/oauth-authorization-server"] = Answer(body=told)
    async with harbour.connected() as server:
        if "#" in endpoint:
            assert server.state == "failed" and "page" in server.trouble and not harbour.pages
        else:
            assert server.state == "ready", server.trouble


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/register", Answer(400, b"\x1b]0;x\x07" + b"long " * 100_000)),
        ("/token", Answer(400, b"\x1b]0;x\x07" + b"long " * 100_000)),
        ("/token", Answer(200, b'{"access_token": "a", "token_type": "DPoP"}')),
        ("/token", Answer(200, b'{"access_token": "a", "token_type": "Bearer", "expires_in": 1' + b"0" * 400 + b"}")),
        ("/.well-known/oauth-protected-resource/mcp", Answer(body=OTHERS)),
        ("/.well-known/oauth-authorization-server", Answer(body=OTHERS)),
    ],
)
async def test_what_goes_wrong_is_told_in_a_few_words_and_nothing_is_kept(
    harbour: Harbour, path: str, answer: Answer
) -> None:
    harbour.special[path] = answer
    async with harbour.connected() as server:
        assert server.state == "failed" and 0 < len(server.trouble) < 1_000
    assert harbour.store.read(harbour.address.url) is None


async def test_a_server_that_moves_within_its_own_place_is_logged_in_to_as_any_other(harbour: Harbour) -> None:
    harbour.special["/mcp"] = Answer(307, headers={"location": "/mcp/"})
    async with harbour.connected(log_in=False) as server:
        assert server.row.login_wanted
    async with harbour.connected() as server:
        assert server.state == "ready", server.trouble


async def test_no_redirection_takes_a_token_along(harbour: Harbour) -> None:
    async with hostile_http() as thief:
        for path, status in (("/mcp", 307), ("/mcp", 302), ("/token", 307)):
            harbour.special = {path: Answer(status, headers={"location": f"{thief.url}{path}"})}
            login = StoredLogin("good", 1.0 if path == "/token" else 0.0, "more", f"{harbour.login.url}/token", "me")
            harbour.store.write(harbour.address.url, login)
            async with harbour.connected(log_in=False) as server:
                assert server.state == ("ready" if path == "/token" else "failed")
        assert not thief.asked
