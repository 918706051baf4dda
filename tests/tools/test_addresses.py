"""Which addresses may be fetched from."""

from __future__ import annotations

import ipaddress

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.tools.addresses import checked, is_near, is_public, proxy_for


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
     "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1", "ff02::1",
     "::127.0.0.1", "64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "fec0::1",
     "168.63.129.16", "::ffff:168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://x/",
        "http://",
        "http:///x",
        "https://u:p@x/",
        "http://x:99999/",
        "http://[::1",
        "http://a\\@b/",
        "http://a%2eb/",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ToolError):
        checked(url)


@pytest.mark.parametrize("host", ["127.1", "0.0.0.0", "localhost.", "[::ffff:127.0.0.1]", "10.0.0.5"])
def test_what_is_near_is_asked_through_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert is_near(checked(f"http://{host}/")) and not proxy_for(checked(f"http://{host}/"))
    assert proxy_for(checked("http://far.test/")) == "http://proxy.test:3128"
