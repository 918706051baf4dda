"""Short HTTP requests to model servers, to find out what they have. A server that does not answer is no error, since most of
those asked are not there: the answer is then None."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ctxchat.certificates import client_options
from ctxchat.core.errors import UsageError
from ctxchat.core.network import proxy_for

if TYPE_CHECKING:
    import httpx

PROBE_TIMEOUT_S = 1.5
"""Seconds a server has for an answer."""

_AWAY = {"ConnectError", "ConnectTimeout", "ProxyError", "InvalidURL", "UnsupportedProtocol", "LocalProtocolError"}

MAX_ANSWER_BYTES = 8 << 20
"""Bytes of an answer that are read at most."""


async def probe(
    url: str,
    *,
    post: dict[str, object] | None = None,
    key: str = "",
    headers: Mapping[str, str] | None = None,
    seconds: float = PROBE_TIMEOUT_S,
) -> Any:
    """The JSON that a URL answers with; None where it answers with anything else, or not within `seconds`. `post` is the JSON
    body of a POST request, `key` is sent as a bearer token."""
    try:
        client = await asyncio.to_thread(_client, url)
        async with client, asyncio.timeout(seconds):
            along = {**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
            request = client.build_request("POST" if post else "GET", url, json=post, headers=along, timeout=seconds)
            response = await client.send(request, stream=True)
            try:
                return await _json(response)
            finally:
                await response.aclose()
    except (OSError, TimeoutError, ValueError, UsageError, ExceptionGroup):  # the last for a port that is none
        return None
    except Exception as error:  # httpx is imported late, so its errors are known by their module
        if type(error).__module__.startswith(("httpx", "httpcore", "h11")):
            return None
        raise


async def listens(url: str) -> bool:
    """Whether a server can be reached at a URL, through the environment's proxy where one is set. Any answer counts, and so does
    a connection without an answer in time. Takes twice `PROBE_TIMEOUT_S` at most."""
    try:
        client = await asyncio.to_thread(_client, url)
        async with client, asyncio.timeout(2 * PROBE_TIMEOUT_S):
            await (await client.send(client.build_request("GET", url), stream=True)).aclose()
    except Exception as error:  # httpx is imported late, so its errors are known by their names
        return type(error).__name__ not in _AWAY
    return True


async def _json(response: httpx.Response) -> Any:
    """The JSON of a response; None for another status, a body that is too long, or no JSON."""
    if response.status_code != 200:
        return None
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_ANSWER_BYTES:
            return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _client(url: str) -> httpx.AsyncClient:
    """An HTTP client for a URL. Call it off the event loop, since importing httpx and reading certificates take a tenth of a
    second."""
    import httpx

    return httpx.AsyncClient(**client_options(httpx, url, proxy_for(url, os.environ)), timeout=PROBE_TIMEOUT_S)
