"""Logging in to an MCP server over HTTP (OAuth 2.1): the login that a person begins, and what came of it, kept and refreshed.

Runs in the worker process. What a server says begins no login, and the tokens of one address go to no other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from ctxchat.core.errors import ToolError, first_problem
from ctxchat.core.secrets import masked
from ctxchat.tools.mcp.http_transport import ShowPage, check_address, origin
from ctxchat.tools.mcp.login_store import LoginStore, StoredLogin
from ctxchat.tools.mcp.protocol import Address, LoginWanted
from ctxchat.tools.text import clip_line

CALLBACK_TIMEOUT_S = 5.0
"""Seconds that a browser which comes back has to say what it came with."""

REFRESH_TIMEOUT_S = 15.0
"""Seconds that a server may take to refresh a login; another session waits for it a little longer."""

REFRESH_END_TIMEOUT_S = 1.5
"""Seconds that a refresh has to end when its connection is closed."""

LOGGED_IN = (
    b"<!doctype html><meta charset=utf-8><title>ctxchat</title><p>You can close this page and go back to ctxchat."
)


# ── using one ──


class LoginAuth(httpx2.Auth):
    """Names the person to a server with the access token of their login, and refreshes that when it expires or is refused.
    Sessions that share a login do so one after the other: most servers take each refresh token only once. For the same reason a
    refresh goes on when the request that wanted it is given up; `wait_for_refresh` waits for it. `plain` is what it is sent
    by."""

    def __init__(self, store: LoginStore, url: str, login: StoredLogin, plain: httpx2.AsyncClient) -> None:
        self._store, self._url, self._login, self._plain = store, url, login, plain
        self._refreshing: asyncio.Task[None] | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The request, before it a refresh where the token has expired; where it is refused a refresh, and the request again."""
        used = self._login
        for due in (used.expired, True):
            if due and self._login is used:
                if self._refreshing is None or self._refreshing.done():
                    self._refreshing = asyncio.create_task(self._refresh(used))
                await asyncio.shield(self._refreshing)
            used = self._login
            request.headers["Authorization"] = f"Bearer {used.access_token}"
            response = yield request
            if response.status_code != 401:
                return

    async def wait_for_refresh(self) -> None:
        """Wait for a refresh that is under way, so that what the server has given is kept."""
        if self._refreshing:
            await asyncio.wait({self._refreshing}, timeout=REFRESH_END_TIMEOUT_S)

    async def _refresh(self, used: StoredLogin) -> None:
        """Take over what another session has refreshed meanwhile, else refresh. Raises OSError, TimeoutError."""
        async with self._store.lock(self._url):
            kept = await asyncio.to_thread(self._store.read, self._url) or used
            if kept.refresh_token and (kept.access_token == used.access_token or kept.expired):
                async with asyncio.timeout(REFRESH_TIMEOUT_S):
                    refreshed = await _refreshed(kept, await self._plain.send(_refresh_request(kept)))
                if refreshed:
                    kept = refreshed
                    await asyncio.to_thread(self._store.write, self._url, refreshed)
            self._login = kept


def _refresh_request(login: StoredLogin) -> httpx2.Request:
    data = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
    if login.resource:
        data["resource"] = login.resource
    if login.client_secret and login.method != "client_secret_basic":
        data["client_secret"] = login.client_secret
    request = httpx2.Request("POST", login.token_url, data=data)
    if login.client_secret and login.method == "client_secret_basic":
        named = httpx2.BasicAuth(quote(login.client_id, safe=""), quote(login.client_secret, safe=""))
        request = next(named.sync_auth_flow(request))
    return request


async def _refreshed(login: StoredLogin, response: httpx2.Response) -> StoredLogin | None:
    """The login as it goes on; None where the server refuses."""
    try:
        token = OAuthToken.model_validate_json(await response.aread())
    except ValueError:
        return None
    if response.status_code != 200:
        return None
    return msgspec.structs.replace(
        login,
        access_token=token.access_token,
        expires_at=_expires_at(token),
        refresh_token=token.refresh_token or login.refresh_token,
    )


def _expires_at(token: OAuthToken) -> float:
    return time.time() + token.expires_in if token.expires_in else 0.0


# ── a person logs in ──


class PersonLogin(httpx2.Auth):
    """A login under way, and then the login. `page` is who shows a person the address where they log in; what came of it goes to
    the store at once, and is used as any other from there: what the server says later, of other servers for logins too, changes
    nothing about it."""

    def __init__(
        self, address: Address, port: int, secret: str, store: LoginStore, page: ShowPage, plain: httpx2.AsyncClient
    ) -> None:
        self._address, self._store, self._page, self._plain = address, store, page, plain
        self._state = ""
        self._kept: LoginAuth | None = None
        self.answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        callback: Any = f"http://localhost:{port}/callback"  # as other agents do: it is what people register
        metadata = OAuthClientMetadata(client_name="ctxchat", redirect_uris=[callback])
        self._client: OAuthClientInformationFull | None = None
        if address.client_id:
            method = "client_secret_post" if secret else "none"
            self._client = OAuthClientInformationFull(
                client_id=address.client_id,
                client_secret=secret or None,
                redirect_uris=[callback],
                token_endpoint_auth_method=method,
            )
        self._flow = OAuthClientProvider(address.url, metadata, self, self._show, self._wait)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow until somebody has logged in."""
        flow = (self._kept or self._flow).async_auth_flow(request)
        with suppress(StopAsyncIteration):
            outgoing = await anext(flow)
            while True:
                outgoing = await flow.asend((yield outgoing))

    async def wait_for_refresh(self) -> None:
        """See `LoginAuth.wait_for_refresh`."""
        if self._kept:
            await self._kept.wait_for_refresh()

    def accept_callback(self, address: str) -> bool:
        """The address that the browser was sent back to, with what the server said; False where it is not of this login."""
        said: dict[str, str] = {}
        with suppress(ValueError):  # no address at all
            said = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        if not self._state or said.get("state") != self._state or self.answer.done():
            return False
        if "code" in said:
            self.answer.set_result(AuthorizationCodeResult(code=said["code"], state=self._state, iss=said.get("iss")))
        else:
            why = said.get("error_description") or said.get("error") or "no reason given"
            self.answer.set_exception(ToolError(f"The login was refused: {why[:200]}"))
        return True

    async def _show(self, page: str) -> None:
        context = self._flow.context
        if self._state:
            raise LoginWanted("It wants you to log in once more.")
        self._check_issuer()
        for where in (page, self._token_url):
            check_address(where, self._address.url)
        assert context.client_info
        *_, self._state = parse_qs(urlsplit(page).query).get("state", [""])  # ours is the last
        if not self._state:
            raise ToolError(f"The page for its login is at no address that can be used: {page[:200]}")
        await self._page(page, self.accept_callback)

    def _check_issuer(self) -> None:
        """The server says who has its logins. Raises ToolError where that is somebody the secret of the settings is not for."""
        told = self._flow.context.oauth_metadata
        issuer, meant = str(told.issuer) if told else self._address.url, self._address.issuer
        if not (self._client and self._client.client_secret):
            return
        if not (issuers_match(issuer, meant) if meant else origin(issuer) == origin(self._address.url)):
            raise ToolError(
                f"It says that its logins are at {clip_line(issuer, 200)}, and the client secret is not for that place.",
                f'If it is, set issuer = "{clip_line(issuer, 200)}" for this server.',
            )

    async def _wait(self) -> AuthorizationCodeResult:
        return await self.answer

    @property
    def _token_url(self) -> str:
        told = self._flow.context.oauth_metadata
        base = self._flow.context.get_authorization_base_url(self._address.url)
        return str(told.token_endpoint) if told else urljoin(base, "/token")

    # The SDK's `TokenStorage`: nothing from before is used, for the address to come back to is another each time.

    async def get_tokens(self) -> OAuthToken | None:
        """None."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them, with what a refresh takes. Raises OSError."""
        context, client = self._flow.context, self._flow.context.client_info
        assert client
        login = StoredLogin(
            tokens.access_token,
            _expires_at(tokens),
            tokens.refresh_token or "",
            self._token_url,
            client.client_id,
            client.client_secret or "",
            client.token_endpoint_auth_method or "",
            context.get_resource_url() if context.should_include_resource_param(context.protocol_version) else "",
        )
        await asyncio.to_thread(self._store.write, self._address.url, login)
        self._kept = LoginAuth(self._store, self._address.url, login, self._plain)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client that the settings name, None for one that the server is to register."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Kept with the tokens."""


@asynccontextmanager
async def logging_in(
    address: Address, secret: str, store: LoginStore, page: ShowPage, plain: httpx2.AsyncClient
) -> AsyncGenerator[PersonLogin, None]:
    """The authentication with which a connection is opened for a login. While it is in use, a server listens on this machine at
    the address to which the browser comes back. Raises ToolError if its port is taken."""
    login: PersonLogin | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, TimeoutError):  # whoever else knocks
            line = await asyncio.wait_for(reader.readline(), CALLBACK_TIMEOUT_S)
            target = line.decode("ascii", "replace").split(" ")
            found = bool(login) and target[0] == "GET" and login.accept_callback(target[1] if len(target) > 1 else "")
            status, body = (b"200 OK", LOGGED_IN) if found else (b"404 Not Found", b"")
            head = b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            writer.write(head % (status, len(body)) + body)
            await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", address.callback_port)
    except OSError as problem:
        raise ToolError(f"Port {address.callback_port} is taken: {problem.strerror}.") from problem
    async with server:
        login = PersonLogin(address, server.sockets[0].getsockname()[1], secret, store, page, plain)
        login.answer.add_done_callback(lambda _: server.close())
        try:
            yield login
        except Exception as problem:
            if isinstance(first_problem(problem), OAuthRegistrationError):
                raise ToolError(
                    f"It does not register ctxchat by itself ({clip_line(masked(str(first_problem(problem))), 300)}).",
                    "Whoever runs the server can give you an id for it: set it as client_id of this server, and the variable "
                    "with its secret, if it has one, as client_secret_env.",
                ) from problem
            raise
