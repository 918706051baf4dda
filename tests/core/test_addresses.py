"""Which hosts say themselves that they are this machine."""

from __future__ import annotations

import pytest

from ctxchat.core.addresses import is_here, is_loopback

HERE = ["localhost", "LocalHost.", "models.localhost", "127.0.0.1", "127.0.0.1.", "127.8.9.10", "127.1", "127.0.1", "::1",
        "::ffff:127.0.0.1", "0.0.0.0", "::"]  # fmt: skip
AWAY = [
    "",
    "localhost.example.com",
    "notlocalhost",
    "127.example.com",
    "128.0.0.1",
    "10.0.0.1",
    "::2",
    "::ffff:10.0.0.1",
    "127",
]


@pytest.mark.parametrize("host", HERE)
def test_this_machine(host: str) -> None:
    assert is_loopback(host)
    assert is_here(f"http://{f'[{host}]' if ':' in host else host}:8080/v1")


@pytest.mark.parametrize("host", AWAY)
def test_others(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("url", ["", "http://", "http://[::1", "localhost", "http://x@example.com/#127.0.0.1"])
def test_what_names_no_host_of_this_machine(url: str) -> None:
    assert not is_here(url)
