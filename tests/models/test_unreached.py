"""Where there is no way to a server: whose address it is, and that no address brings down who asks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.models import probes, said


def unreached(url: str) -> str:
    import httpx

    error = httpx.ConnectError("All connection attempts failed", request=httpx.Request("GET", url))
    return said.unreached([error])


def test_the_proxy_on_the_way_is_named_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert unreached("http://models.example/v1") == "Cannot connect to models.example: nobody listens there."
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@proxy.example:3128")
    assert (
        unreached("http://models.example/v1") == "Cannot connect to the proxy proxy.example:3128: nobody listens there."
    )
    assert unreached("http://127.0.0.1:1/v1") == "Cannot connect to 127.0.0.1:1: nobody listens there."


PORTS = st.one_of(st.integers(-9, 2_000_000).map(str), st.text("0123456789:x-", max_size=7))


@given(st.sampled_from(["127.0.0.1", "[::1", "[::1]", "localhost", "", "exa_mple.invalid"]), PORTS)
async def test_no_address_brings_down_who_asks(host: str, port: str) -> None:
    found: Any = await probes.probe(f"http://{host}:{port}/v1", seconds=0.05)
    assert found is None or isinstance(found, dict | list)
