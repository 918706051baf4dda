"""Fetches one page over HTTP, safely.

The address that was checked is the one connected to, and redirects to another host are not followed. If the environment names a
proxy, that resolves the name and connects. Of a compressed body at most the wanted size is unpacked, against decompression bombs.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from email.message import Message

import httpx
import msgspec

from ctxchat.certificates import client_options
from ctxchat.core.errors import ToolError, UsageError
from ctxchat.tools.addresses import (
    IPAddress,
    Resolve,
    addresses,
    checked,
    is_public,
    near_only,
    proxy_for,
    system_resolve,
)

ACCEPTED = "gzip, deflate"

_MAX_GZIP_MEMBERS = 50
"""The largest number of members of a gzip body."""

_PLAIN = {"", "identity"}
_GZIP = {"gzip", "x-gzip"}


def unpacked(data: bytes, encoding: str, most: int) -> bytes:
    """The body decoded by its Content-Encoding header, at most `most` bytes. Each layer is limited by itself: compressed twice, a
    gigabyte is a kilobyte. Raises ToolError."""
    for layer in reversed([name.strip().lower() for name in encoding.split(",")]):
        if layer in _PLAIN:
            continue
        if layer != "deflate" and layer not in _GZIP:
            raise ToolError(f"The page is packed as {layer[:20]}, which was not asked for.")
        try:
            data = _inflated(data, zlib.MAX_WBITS | 32, most)  # either head is taken, whatever the header says
        except zlib.error:
            if layer != "deflate":
                raise ToolError("The page is packed in a way that cannot be read.") from None
            data = _raw(data, most)
    return data[:most]


def _raw(data: bytes, most: int) -> bytes:
    """The data of `deflate` without a header, as some servers send it."""
    try:
        return _inflated(data, -zlib.MAX_WBITS, most)
    except zlib.error as error:
        raise ToolError("The page is packed in a way that cannot be read.") from error


def _inflated(data: bytes, window: int, most: int) -> bytes:
    found = bytearray()
    for _ in range(_MAX_GZIP_MEMBERS):
        part = zlib.decompressobj(window)
        try:
            found += part.decompress(data, most - len(found))
        except zlib.error:
            if not found:
                raise
            break  # what follows a whole body is of no use, as browsers have it
        data = part.unused_data
        if not data or len(found) >= most:
            break
    return bytes(found)


MAX_BYTES = 2_000_000
MAX_REDIRECTS = 5


class Fetched(msgspec.Struct, frozen=True):
    """A response; at most `MAX_BYTES` of its body were read (`cut`: it is longer)."""

    url: httpx.URL
    status: int
    kind: str
    charset: str
    body: bytes
    cut: bool


class Elsewhere(msgspec.Struct, frozen=True):
    """A redirect to another host, which is not followed."""

    url: httpx.URL


class Fetcher:
    """Fetches pages. `allowed` returns whether an IP address may be connected to; a URL that names an IP address itself is not
    checked. `seconds` is the time limit for everything together."""

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        allowed: Callable[[IPAddress], bool] = is_public,
        seconds: float = 30.0,
    ) -> None:
        self._resolve, self._allowed, self._seconds = resolve, allowed, seconds

    async def fetch(self, url: httpx.URL) -> Fetched | Elsewhere:
        """Fetch a URL, with redirects on the same host. Raises ToolError."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(url)
        except TimeoutError as error:
            raise ToolError(f"{url.host} did not answer within {self._seconds:g} s.") from error
        except (httpx.HTTPError, httpx.InvalidURL, ImportError) as error:  # a kind of proxy that httpx needs more for
            raise ToolError(f"{url.host} could not be read: {str(error) or type(error).__name__}.") from error

    async def _follow(self, url: httpx.URL) -> Fetched | Elsewhere:
        start, allowed = url, near_only(url, self._allowed)
        for _ in range(MAX_REDIRECTS + 1):
            got = await self._request_once(url, allowed)
            if isinstance(got, Fetched):
                return got
            if not _same_place(start, got.url):
                return got
            url = got.url
        raise ToolError(f"{start} redirects more than {MAX_REDIRECTS} times.")

    async def _request_once(self, url: httpx.URL, allowed: Callable[[IPAddress], bool]) -> Fetched | Elsewhere:
        """Make one request, to one of the checked addresses: if the name resolves to another address meanwhile, that changes
        nothing."""
        if proxy := proxy_for(url):
            async with self._open(url, url.host, proxy) as response:
                return await _answer(url, response)
        refused: Exception | None = None
        for address in (await addresses(url, self._resolve, allowed))[:4]:
            try:
                async with self._open(url, address) as response:
                    return await _answer(url, response)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                refused = error
        raise ToolError(f"{url.host} cannot be reached: {refused}.") from refused

    @asynccontextmanager
    async def _open(self, url: httpx.URL, address: str, proxy: str = "") -> AsyncGenerator[httpx.Response, None]:
        headers = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "ctxchat",
            "Accept": "text/html,text/plain,text/*;q=0.9,application/json,*/*;q=0.5",
            "Accept-Encoding": ACCEPTED,
        }
        # Reading the certificates of the authorities takes some fifty milliseconds.
        try:
            options = await asyncio.to_thread(client_options, httpx, str(url), proxy)
        except UsageError as problem:
            raise ToolError(problem.text, problem.hint) from problem
        # The certificate is still checked against the name.
        extensions = {"sni_hostname": url.raw_host.decode("ascii")} if url.scheme == "https" else {}
        async with (
            httpx.AsyncClient(**options, timeout=self._seconds) as client,
            client.stream("GET", url.copy_with(host=address), headers=headers, extensions=extensions) as response,
        ):
            yield response


async def _answer(url: httpx.URL, response: httpx.Response) -> Fetched | Elsewhere:
    if response.is_redirect and (target := response.headers.get("location")):
        try:
            joined = url.join(target)
        except (httpx.InvalidURL, ValueError) as error:
            raise ToolError(f"{url} redirects to an address that is none.") from error
        return Elsewhere(checked(str(joined)))
    header = Message()
    header["content-type"] = response.headers.get("content-type", "")
    packed = bytearray()
    async for piece in response.aiter_raw(65536):
        packed += piece
        if len(packed) > MAX_BYTES:
            break
    encoding = response.headers.get("content-encoding", "")
    body = await asyncio.to_thread(unpacked, bytes(packed), encoding, MAX_BYTES + 1)
    cut = max(len(packed), len(body)) > MAX_BYTES
    kind, charset = header.get_content_type(), str(header.get_param("charset", "") or "").lower()
    given = kind if response.headers.get("content-type") else ""
    return Fetched(url, response.status_code, given, charset, body[:MAX_BYTES], cut)


def _same_place(start: httpx.URL, target: httpx.URL) -> bool:
    """Whether a redirect stays on the same host, with or without `www.`: a non-standard port must stay, and https must not become
    http."""
    plain = start.host.removeprefix("www.") == target.host.removeprefix("www.")
    return plain and start.port == target.port and not (start.scheme == "https" and target.scheme == "http")
