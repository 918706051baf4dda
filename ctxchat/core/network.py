"""Network settings of the environment and of addresses: which proxy a URL goes through, and what is wrong with what is set.

Pure: an environment in, a proxy or an error that names its variable out. No name is looked up and nothing is sent.
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
"""What a proxy's address may begin with, and how clients know it; empty for what none of ours speaks."""

_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_~%-]{1,63}(\.[A-Za-z0-9_~%-]{1,63})*\.?")
"""A host's name, as it is sent: one of another script begins with `xn--` then."""

_PLACE = re.compile(r"(\[[^]]+\]|[^:]*)(:[0-9]*)?")
"""A host, an IPv6 address in brackets, and its port."""

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The proxy for a URL, with its scheme as clients know it; empty for none. `https_proxy`, `http_proxy`, `all_proxy` and
    `no_proxy`, in small letters or large, the small first. This machine is never behind one. Raises UsageError that names the
    variable whose value is no proxy."""
    parts = urlsplit(url)
    if is_here(url) or _is_excepted(parts, _variable("no_proxy", environment)[1]):
        return ""
    for name in (f"{parts.scheme.lower()}_proxy", "all_proxy"):
        variable, value = _variable(name, environment)
        if value:
            return _proxy(variable, value)
    return ""


def without_proxy(environment: Mapping[str, str]) -> str:
    """The hosts of `NO_PROXY` in words that every client reads: names and single addresses, `*` alone where it is among them.
    Ranges and ports are left out: who asks a server goes by `proxy_for`."""
    entries = list(_entries(_variable("no_proxy", environment)[1]))
    if "*" in entries:
        return "*"
    hosts = (entry for entry, port in map(_host_and_port, entries) if not port and "/" not in entry)
    return ",".join(dict.fromkeys(host for host in hosts if host))


def known_to_clients(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the environment that libraries read themselves and whose value is to be written otherwise: proxies
    (`socks://…` as `socks5h://…`), addresses of servers without a scheme. What is neither stays: who asks is told."""
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
    """A server's address with a scheme and without a slash at the end of its path; empty for none. One without a scheme has
    `http` on this machine and in networks of one's own, else `https`: a key does not leave in the open. Raises ValueError, in
    words, for what is no address."""
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
    """An address with a path put behind its own; what stands behind a question mark stays behind it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def fault_of_header(value: str) -> str:
    """Why a text cannot be sent in a header, as the rest of a sentence; empty where it can."""
    for place, letter in enumerate(value, 1):
        if not (" " <= letter <= "~"):
            named = "a line break" if letter in "\r\n" else f"U+{ord(letter):04X}"
            return f"character {place} of {len(value)} is {named}, which no header can hold"
    return ""


def _proxy(variable: str, value: str) -> str:
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
    """Why host and port of an address are none, as the rest of a sentence; empty where they are. A password with a sign that
    ends the host makes it another one."""
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


def _is_excepted(parts: SplitResult, told: str) -> bool:
    try:
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return False
    address = _address(host)
    for entry in _entries(told):
        if entry == "*":
            return True
        name, only = _host_and_port(entry)
        if only and only != port:
            continue
        if address is not None:
            if _within(address, name):
                return True
        elif name and (host == name.lstrip(".") or host.endswith("." + name.lstrip("."))):
            return True
    return False


def _entries(told: str) -> Iterator[str]:
    """As people write them: between commas or blanks, with `*.` or a scheme in front by some."""
    for entry in told.replace(",", " ").split():
        name = _SCHEME.sub("", entry.lower()).removeprefix("*.").rstrip("/") if entry != "*" else entry
        if name:
            yield name


def _host_and_port(entry: str) -> tuple[str, int]:
    """A host, an address or a range, without brackets; the port it is meant for, 0 for any."""
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
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _address(host: str) -> _IPAddress | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _near(host: str) -> bool:
    """This machine, or one of a network of one's own, by its name alone."""
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_private or address.is_link_local
    return "." not in host or host.endswith((".local", ".localhost", ".lan", ".internal", ".home.arpa", ".test"))


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """A variable and its value, by its name in small letters, else in large ones."""
    for variable in (name, name.upper()):
        if value := environment.get(variable, "").strip():
            return variable, value
    return name, ""
