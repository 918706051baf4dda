"""Tells which hosts are this machine, by their name or address alone: servers there are never asked through a proxy. No name is
looked up."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

_SHORT = re.compile(r"127(\.\d+){1,2}")
"""Matches short forms of 127.0.0.1 (`127.1`), which systems accept."""


def is_loopback(host: str) -> bool:
    """True for a host (without port; an IPv6 address without brackets) that is this machine by its name or address."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost") or _SHORT.fullmatch(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified  # a connection to 0.0.0.0 goes to this machine


def is_here(url: str) -> bool:
    """True for a URL whose host is this machine; false for an invalid URL."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
