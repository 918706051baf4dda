"""A real MCP server of the official SDK over HTTP that wants a login: it registers programs, agrees to every login, and its
access tokens hold for so many seconds. What happens is written to standard output, a word a line.

Arguments: the port, the seconds, and `unregistered` (it knows the client `known` and registers none), `denied` (it agrees to no
login) or nothing."""

from __future__ import annotations

import secrets
import sys
import time

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PORT, SECONDS, MODE = int(sys.argv[1]), int(sys.argv[2]), (*sys.argv[3:], "")[0]
GRACE_S = 60
"""Seconds that a token is taken beyond what it was said to hold for: on a busy machine a request takes long to arrive."""

ROOT = f"http://127.0.0.1:{PORT}"


def tell(word: str) -> None:
    print(word, flush=True)


class Known(OAuthClientInformationFull):
    """A client that may come back to any port of its machine, as native programs may."""

    def validate_redirect_uri(self, redirect_uri):
        return redirect_uri


class Provider:
    """Keeps all in memory; each token for a renewal is taken once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.renewals: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if MODE == "unregistered" and client_id == "known":
            back = ["http://127.0.0.1/callback"]
            method = "client_secret_post"
            return Known(
                client_id=client_id, client_secret="hush", redirect_uris=back, token_endpoint_auth_method=method
            )
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        tell("registered")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if MODE == "denied":
            why = {"error": "access_denied", "error_description": "not \x1b[2J today"}
            return construct_redirect_uri(str(params.redirect_uri), **why, state=params.state)
        code = secrets.token_urlsafe(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: object, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, code: AuthorizationCode
    ) -> OAuthToken:
        tell("logged-in")
        del self.codes[code.code]
        return self._token(client.client_id, code.scopes)

    async def load_refresh_token(self, client: object, token: str) -> RefreshToken | None:
        return self.renewals.get(token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        tell("renewed")
        del self.renewals[token.token]
        return self._token(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: object) -> None: ...

    def _token(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, renewal = secrets.token_urlsafe(20), secrets.token_urlsafe(20)
        until = int(time.time() + SECONDS + GRACE_S)
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, expires_at=until)
        self.renewals[renewal] = RefreshToken(token=renewal, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=renewal, expires_in=SECONDS)


provider = Provider()
server = MCPServer(
    "harbour",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=ROOT,
        resource_server_url=f"{ROOT}/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=MODE != "unregistered"),
        validate_token_resource=False,
    ),
)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def end_tokens() -> int:
    """End all access tokens now, however long they were to hold; how many."""
    ended = len(provider.access)
    provider.access.clear()
    return ended


if __name__ == "__main__":
    server.run("streamable-http", port=PORT)
