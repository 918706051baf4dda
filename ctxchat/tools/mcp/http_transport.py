"""A server at an address: the client that speaks HTTP to it, who we are to it, and what its answers say of our session.

Runs in the worker process. Knows nothing of what is said over it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ctxchat.core.errors import ToolError
from ctxchat.core.network import fault_of_header, proxy_for
from ctxchat.tools.mcp.login_store import LoginStore
from ctxchat.tools.mcp.protocol import Address, LoginWanted
from ctxchat.tools.mcp.stream_guard import reading_shallow

ShowPage = Callable[[str, Callable[[str], object]], Awaitable[None]]
"""Shows a person the address where they log in; what it is given beside that takes the address they come back to."""


@asynccontextmanager
async def http_transport(
    address: Address, session: HttpSession, logins: Path, page: ShowPage | None
) -> AsyncGenerator[Any, None]:
    """The SDK's transport to that address, for as long as the block lasts. With a `page`, a person is there to log in where the
    server wants that; without one a login of the folder `logins` is used, if there is one. Raises ToolError."""
    store, auth = LoginStore(logins), None
    async with AsyncExitStack() as stack:
        if not session.has_header and page:
            login: Any = import_module("ctxchat.tools.mcp.login")
            secret = _variable(address.client_secret_env)
            auth = await stack.enter_async_context(login.logging_in(address, secret, store, page))
        elif not session.has_header:
            auth = await _auth(address, store)
        client = await stack.enter_async_context(_client(address, session, auth))
        sdk: Any = import_module("mcp.client.streamable_http")
        sdk.jsonrpc_message_adapter = reading_shallow(sdk.jsonrpc_message_adapter)
        yield sdk.streamable_http_client(address.url, http_client=client)


class HttpSession:
    """What became of a session over HTTP. `forgotten`: the server has answered that it knows it no more."""

    def __init__(self, address: Address) -> None:
        self.forgotten = False
        self.has_header = any(name.lower() == "authorization" for name in (*address.headers, *address.headers_env))
        self._url = address.url
        self._refused = False

    def raise_refusal(self) -> None:
        """Raises LoginWanted, or ToolError where a header of the settings is what the server refuses; nothing where it does not
        refuse us."""
        if self._refused and self.has_header:
            raise ToolError("It refuses the Authorization header that the settings have for it (401).")
        if self._refused:
            raise LoginWanted("It wants you to log in.")

    @contextmanager
    def told_refusals(self) -> Iterator[None]:
        """What comes of a refusal, said as one."""
        try:
            yield
        except ToolError:
            raise
        except Exception:
            self.raise_refusal()
            raise

    async def check_response(self, response: Any) -> None:
        """At an answer: 401 wants a login, 404 for a session says that it is over, and some servers say 400 and that in words."""
        if response.request.url == self._url:
            self._refused = response.status_code == 401
        if response.status_code == 404:
            self.forgotten |= "mcp-session-id" in response.request.headers
        elif response.status_code == 400 and "mcp-session-id" in response.request.headers:
            self.forgotten |= b"session" in (await response.aread()).lower()


_TOLD = dict(os.environ)
"""What the environment said when this process began."""


def forget_proxies() -> None:
    """From now on a client has the proxy that it is given, and no other: libraries read these settings otherwise than we."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]


async def _auth(address: Address, logins: LoginStore) -> Any:
    """What names us to a server in whose settings nothing does: a login, where one is kept."""
    kept = await asyncio.to_thread(logins.read, address.url)
    return import_module("ctxchat.tools.mcp.login").LoginAuth(logins, address.url, kept) if kept else None


def _client(address: Address, session: HttpSession, auth: Any) -> Any:
    library = import_module("httpx2")
    certificates = os.environ.get("SSL_CERT_FILE", "")
    if certificates and address.url.startswith("https:") and not Path(certificates).is_file():
        raise ToolError(f"SSL_CERT_FILE names {certificates}, which is no file.")
    return library.AsyncClient(
        auth=auth,
        event_hooks={"response": [session.check_response]},
        headers=_headers(address),
        timeout=library.Timeout(30.0, read=address.timeout),
        follow_redirects=True,
        proxy=proxy_for(address.url, _TOLD) or None,
    )


def _variable(name: str) -> str:
    """Its value, empty without a name. Raises ToolError where it is not set."""
    if name and name not in os.environ:
        raise ToolError(f"The variable {name} is not set.", "It holds the client secret of this server.")
    return os.environ[name] if name else ""


def _headers(address: Address) -> dict[str, str]:
    missing = [name for name in address.headers_env.values() if name not in os.environ]
    if missing:
        raise ToolError(f"The variable {missing[0]} is not set.", "It holds a header of this server.")
    for name in address.headers_env.values():
        if fault := fault_of_header(os.environ[name]):
            raise ToolError(f"The variable {name} cannot be sent: {fault}.", "It holds a header of this server.")
    return {**address.headers, **{header: os.environ[name] for header, name in address.headers_env.items()}}
