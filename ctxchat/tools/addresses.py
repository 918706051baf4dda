"""Which addresses of the network may be fetched from: public ones, judged after the name was resolved, and near ones that were
called by their address. Fetches nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
from collections.abc import Awaitable, Callable

import httpx

from ctxchat.core import network
from ctxchat.core.addresses import is_loopback
from ctxchat.core.errors import ToolError, UsageError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port to addresses. Raises OSError."""

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(rb"[a-z0-9_.:-]+")
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that was ever given out of IPv6."""
_CLOUD = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
"""Azure's and Oracle's own, the same in every machine there: public by their numbers, they tell of the machine to whoever is on
it."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


async def system_resolve(host: str, port: int) -> list[str]:
    """The system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: IPAddress) -> bool:
    """True for an address anyone could reach: not this machine, this network, a cloud's metadata, nor one that hides such."""
    if isinstance(address, ipaddress.IPv6Address):
        hidden = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if hidden is None and address in _NAT64:
            hidden = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if hidden is not None:
            return is_public(hidden)
        if address not in _UNICAST:  # what else there is hides another address, or is this network's
            return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _CLOUD)


def checked(written: str) -> httpx.URL:
    """An address in its plain form. Raises ToolError for what is not http(s) or carries a password."""
    try:
        url = httpx.URL(written.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{written[:200]} is no valid address: {error}.") from error
    if url.scheme not in _PORTS:
        raise ToolError(f"{written[:200]} is no address that can be fetched.", "It begins with http:// or https://.")
    if url.userinfo:
        raise ToolError("An address with a user name or password in it is not fetched.")
    if not _HOST.fullmatch(url.raw_host) or not 0 < (url.port or 1) < 65536:
        raise ToolError(f"{written[:200]} names no valid host.")
    # One form of the same address, so that a rule for it holds: no fragment, no usual port, at least a slash.
    port = None if url.port == _PORTS[url.scheme] else url.port
    url = url.copy_with(fragment=None, port=port)
    return url.copy_with(path="/") if url.path == "/" else url


def is_near(url: httpx.URL) -> bool:
    """True for an address that says itself that it is this machine's or this network's, so that who allows it knows."""
    host = url.host.rstrip(".")
    try:
        return not is_public(ipaddress.ip_address(host))
    except ValueError:
        return is_loopback(host)


def near_only(url: httpx.URL, public: Callable[[IPAddress], bool] = is_public) -> Callable[[IPAddress], bool]:
    """Which addresses a person has agreed to who allowed this one: `public` ones, or the very one it names."""
    if not is_near(url):
        return public
    try:
        named = ipaddress.ip_address(url.host)
    except ValueError:
        return lambda address: address.is_loopback
    return lambda address: address == named


def proxy_for(url: httpx.URL) -> str:
    """The proxy of the environment for an address; empty for none. None is asked for what is near. Raises ToolError for one that
    is none."""
    try:
        return "" if is_near(url) else network.proxy_for(str(url), os.environ)
    except UsageError as problem:
        raise ToolError(problem.text, problem.hint) from problem


async def addresses(url: httpx.URL, resolve: Resolve, allowed: Callable[[IPAddress], bool]) -> list[str]:
    """The addresses of a host, every one of them allowed. Raises ToolError."""
    try:
        found = await resolve(url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme])
    except (OSError, UnicodeError) as error:
        raise ToolError(f"The host {url.host} cannot be found.", "Check the address and the connection.") from error
    for address in found:
        if not allowed(ipaddress.ip_address(address.partition("%")[0])):
            raise ToolError(
                f"{url.host} is {address}, an address of this machine or its network; by that name it is not fetched.",
                "Call web_fetch with the address itself where you need it: the user is asked about that.",
            )
    if not found:
        raise ToolError(f"The host {url.host} has no address.")
    return found
