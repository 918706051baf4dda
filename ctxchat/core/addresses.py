"""Which hosts are this machine: a server there is asked straight, whatever proxy the environment names. No name is looked up."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

_SHORT = re.compile(r"127(\.\d+){1,2}")
"""How 127.0.0.1 is written by who writes little; systems take it."""


def is_loopback(host: str) -> bool:
    """True for a host (without port, an IPv6 address without brackets) that says itself that it is this machine."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost") or _SHORT.fullmatch(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified  # who asks for "any address" gets his own


def is_here(url: str) -> bool:
    """The same of a URL; False for what is none."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
