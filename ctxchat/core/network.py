"""Reads network settings: which proxy a URL goes through by the environment, what a server's address means, and what is wrong
with either.

Pure: an environment or an address goes in, a proxy, an address or an error that names its variable comes out. No host name is
looked up, nothing is sent.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urlsplit, urlunsplit

from ctxchat.core.addresses import is_here
from ctxchat.core.errors import UsageError

PROXY_SCHEMES = {
    "http": "http",
    "https": "https",
    "socks5": "socks5",
    "socks5h": "socks5h",
    "socks": "socks5h",  # as desktops write it
    "socks4": "",
    "socks4a": "",
}
"""The schemes that a proxy's address may begin with, each in the form that HTTP clients know; empty for one that they do not
support."""

_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_~%-]{1,63}(\.[A-Za-z0-9_~%-]{1,63})*\.?")
"""Matches a host name as it is sent; names in other scripts begin with `xn--` then."""

_PLACE = re.compile(r"(\[[^]]+\]|[^:]*)(:[0-9]*)?")
"""Matches a host (an IPv6 address in brackets) and its port."""

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The address of the proxy for a URL, in the form that HTTP clients know; empty for none.

    Goes by `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`; where a variable is set in lower and upper case, the lower
    case counts. This machine is never reached through a proxy. Raises UsageError, which names the variable, for an invalid value.
    """
    parts = urlsplit(url)
    if is_here(url) or _is_excepted(parts, _variable("no_proxy", environment)[1]):
        return ""
    for name in (f"{parts.scheme.lower()}_proxy", "all_proxy"):
        variable, value = _variable(name, environment)
        if value:
            return _proxy(variable, value)
    return ""


def without_proxy(environment: Mapping[str, str]) -> str:
    """The value of `NO_PROXY` in the form that every client reads: names and single addresses, or `*` alone. Entries with ranges
    or ports are left out; our own requests go by `proxy_for`, which knows them."""
    entries = list(_entries(_variable("no_proxy", environment)[1]))
    if "*" in entries:
        return "*"
    hosts = (entry for entry, port in map(_host_and_port, entries) if not port and "/" not in entry)
    return ",".join(dict.fromkeys(host for host in hosts if host))


def known_to_clients(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that libraries read and whose values they would not understand, with values that they do: proxies
    (`socks://…` becomes `socks5h://…`) and addresses of servers without a scheme. Invalid values are left out; the person is told
    of them when a request needs them."""
    changed: dict[str, str] = {}
    for variable, value in environment.items():
        try:
            if variable.lower() in _PROXY_VARIABLES and value.strip():
                whole = _proxy(variable, value.strip())
            elif variable.endswith(("_API_BASE", "_BASE_URL")) and not _SCHEME.match(value.strip()):
                whole = whole_address(value)
            else:
                continue
        except (UsageError, ValueError):
            continue
        if whole != value:
            changed[variable] = whole
    return changed


def whole_address(address: str) -> str:
    """A server's address with a scheme and without a slash at the end of its path; empty for an empty one.

    Without a scheme it gets `http` on this machine and in private networks, else `https`, so that no key is sent unencrypted.
    Raises ValueError, with a text for a person, for an invalid address.
    """
    text = address.strip()
    if not text:
        return ""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("there is a blank or a letter in it that no address has")
    if not _SCHEME.match(text):
        text = f"http://{text}"
        if not _near(urlsplit(text).hostname or ""):
            text = f"https{text[4:]}"
    parts = urlsplit(text)
    if parts.scheme not in _PORTS:
        raise ValueError(f"it begins with {parts.scheme}://, not with http:// or https://")
    if fault := _fault_of_place(parts):
        raise ValueError(fault)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))


def with_path(address: str, path: str) -> str:
    """An address with `path` added to its path; its query stays at the end."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def fault_of_header(value: str) -> str:
    """Why a text cannot be sent in an HTTP header, in words that go on with a sentence; empty where it can."""
    for place, letter in enumerate(value, 1):
        if not (" " <= letter <= "~"):
            named = "a line break" if letter in "\r\n" else f"U+{ord(letter):04X}"
            return f"character {place} of {len(value)} is {named}, which no header can hold"
    return ""


def _proxy(variable: str, value: str) -> str:
    """The address of a proxy in the form that clients know. Raises UsageError, which names the `variable`, where it is not
    one."""
    text = value if _SCHEME.match(value) else f"http://{value}"
    scheme, _, rest = text.partition("://")
    known = PROXY_SCHEMES.get(scheme.lower())
    try:
        parts = urlsplit(text)
        fine = not (
            _fault_of_place(parts)
            or parts.query
            or parts.fragment
            or "@" in parts.path
            or " " in text
            or not text.isprintable()
        )
    except ValueError:
        fine = False
    if not known or not fine:
        why = f"begins with {scheme}://" if fine else "is no proxy's address"
        raise UsageError(
            f"The variable {variable} {why}.",
            "Write http://, https://, socks5:// or socks5h:// and a host with its port, or take the variable away.",
        )
    return f"{known}://{rest}"


def _fault_of_place(parts: SplitResult) -> str:
    """Why the host and port of an address are not valid, in words that go on with a sentence; empty where they are. Such a fault
    also comes from a password with a character that ends the host part (`/`, `#`)."""
    host = parts.hostname or ""
    try:
        fine = parts.port != 0 and _PLACE.fullmatch(parts.netloc.rpartition("@")[2])
    except ValueError:
        fine = False
    if host in _PORTS:
        return f"its {host}:// is not written so"
    if not fine:
        return "its port is none"
    if not host:
        return "there is no host in it"
    return "" if _HOST_NAME.fullmatch(host) or (":" in host and _address(host)) else f"{host!r} is no host"


def _is_excepted(parts: SplitResult, no_proxy: str) -> bool:
    """True where a URL's host and port are among the entries of `no_proxy`; a host name also covers those below it."""
    try:
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return False
    address = _address(host)
    for entry in _entries(no_proxy):
        if entry == "*":
            return True
        name, only_port = _host_and_port(entry)
        if only_port and only_port != port:
            continue
        if address is not None:
            if _within(address, name):
                return True
        elif name and (host == name.lstrip(".") or host.endswith("." + name.lstrip("."))):
            return True
    return False


def _entries(no_proxy: str) -> Iterator[str]:
    """The entries of a value of `no_proxy`, in lower case. They are separated by commas or blanks; some people write `*.` or a
    scheme in front."""
    for entry in no_proxy.replace(",", " ").split():
        name = _SCHEME.sub("", entry.lower()).removeprefix("*.").rstrip("/") if entry != "*" else entry
        if name:
            yield name


def _host_and_port(entry: str) -> tuple[str, int]:
    """An entry of `no_proxy` as a host, address or range of addresses (without brackets), and the port it is for (0: any)."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return (f"{host}{rest}", 0) if rest.startswith("/") else (host, _number(rest.removeprefix(":")))
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, _number(port)
    return entry.rstrip("."), 0


def _number(port: str) -> int:
    return int(port) if port.isascii() and port.isdecimal() else 0


def _within(address: _IPAddress, entry: str) -> bool:
    """True where an address is in an entry's range; false for an entry that is none."""
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _address(host: str) -> _IPAddress | None:
    """A host as an IP address, an IPv4 address also where it is written as IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _near(host: str) -> bool:
    """True for a host that is this machine or in a private network, as far as its name or address shows."""
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_private or address.is_link_local
    return "." not in host or host.endswith((".local", ".localhost", ".lan", ".internal", ".home.arpa", ".test"))


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The name and value of an environment variable, in lower case or else in upper case; an empty value where it is not set."""
    for variable in (name, name.upper()):
        if value := environment.get(variable, "").strip():
            return variable, value
    return name, ""
