"""Network settings against what is documented of them: curl's and Go's `NO_PROXY`, addresses as people write them."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import UsageError
from ctxchat.core.network import (
    fault_of_header,
    known_to_clients,
    proxy_for,
    whole_address,
    with_path,
    without_proxy,
)

PROXY = "http://proxy.test:3128"
LABELS = st.text("abcdefghij0123456789", min_size=1, max_size=6).map(lambda label: f"x{label}")
NAMES = st.lists(LABELS, min_size=2, max_size=4).map(".".join).map(lambda name: f"{name}.test")
V4 = st.integers(0x0B000000, 0xDFFFFFFF).map(ipaddress.IPv4Address).filter(lambda a: not a.is_loopback)
V6 = st.integers(0x2000 << 112, (0x4000 << 112) - 1).map(ipaddress.IPv6Address)
PORTS = st.integers(1, 65_535)
NOISE = st.lists(
    st.sampled_from(["", " ", "elsewhere.org", ".no", "10.9.0.0/16", "fd12::/16", "[::7]", "not/a/range", "::/x"])
)


def url_of(host: object, port: int = 0, scheme: str = "http") -> str:
    return f"{scheme}://{f'[{host}]' if ':' in str(host) else host}{f':{port}' if port else ''}/v1"


def goes_through(url: str, told: str) -> bool:
    return bool(proxy_for(url, {"http_proxy": PROXY, "https_proxy": PROXY, "no_proxy": told}))


def told(noise: list[str], *entries: object) -> str:
    return ",".join((*noise, *map(str, entries)))


@given(NAMES, NOISE, PORTS)
def test_a_name_excepts_itself_and_all_below_it(name: str, noise: list[str], port: int) -> None:
    url = url_of(name, port)
    assert goes_through(url, told(noise))
    for entry in (name, name.upper(), f".{name}", f"*.{name}", name.partition(".")[2], f"{name}:{port}", "*"):
        assert not goes_through(url, told(noise, entry)), entry
    for entry in (f"a{name}", f"a.{name}", f"{name}:{port % 65_535 + 1}", name[1:]):
        assert goes_through(url, told(noise, entry)), entry


@given(st.one_of(V4, V6), NOISE, st.data())
def test_an_address_is_excepted_by_itself_and_by_ranges(address, noise: list[str], data: st.DataObject) -> None:
    url = url_of(address)
    bits = data.draw(st.integers(1, address.max_prefixlen))
    within = ipaddress.ip_network((address, bits), strict=False)
    entries = [address, within] + (
        [f"[{address}]", f"[{within.network_address}]/{bits}"] if address.version == 6 else []
    )
    for entry in entries:
        assert not goes_through(url, told(noise, entry)), entry
    other = address.__class__(int(address) ^ 1)
    for entry in (
        other,
        f"{other}/{address.max_prefixlen}",
        f"{other}:80" if address.version == 4 else f"[{other}]:80",
    ):
        assert goes_through(url, told(noise, entry)), entry


@given(NOISE, st.sampled_from(["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "a.localhost", "0.0.0.0"]), PORTS)
def test_this_machine_is_never_behind_a_proxy(noise: list[str], host: str, port: int) -> None:
    assert not goes_through(f"http://{host}:{port}/v1", told(noise))


@given(st.lists(st.one_of(NAMES, V4.map(str), V6.map(lambda a: f"[{a}]"), V6.map(lambda a: f"{a}/64")), max_size=5))
def test_what_is_handed_on_is_what_every_client_reads(entries: list[str]) -> None:
    for host in filter(None, without_proxy({"NO_PROXY": ", ".join(entries)}).split(",")):
        assert "/" not in host and "[" not in host
        urlsplit(f"all://{f'[{host}]' if ':' in host else host}")


PIECES = st.sampled_from(
    [
        *(
            "http://",
            "https:",
            "socks5h://",
            "//",
            "user",
            ":",
            "p%40ss",
            "@",
            "proxy",
            ".",
            "test",
            "3128",
            "0",
            "[::1]",
        ),
        *("/", "?", "#", "'", '"', "\\", "fd00::1", "ü", "$HOST", ",", ";", "=", " ", "%25eth0", "localhost"),
    ]
)
WRITTEN = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=7).map("".join))
"""What people set, or nearly."""


@given(WRITTEN, WRITTEN, st.text(max_size=60))
def test_whatever_is_set_there_is_a_proxy_or_none_or_a_named_variable(http: str, every: str, no: str) -> None:
    environment = {"HTTP_PROXY": http, "ALL_PROXY": every, "NO_PROXY": no}
    try:
        found = proxy_for("http://far.test/v1", environment)
    except UsageError as problem:
        assert "_PROXY" in problem.text and problem.hint
    else:
        assert not found or httpx.Proxy(found).url.host
        assert all(httpx.Proxy(value).url.host for value in known_to_clients(environment).values())


@given(WRITTEN)
def test_whatever_is_set_there_is_an_address_or_says_why_not(written: str) -> None:
    try:
        whole = whole_address(written)
    except ValueError as problem:
        assert str(problem)
    else:
        assert not whole or (httpx.URL(whole).host and whole_address(whole) == whole)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("proxy.test:3128", "http://proxy.test:3128"),
        ("socks://127.0.0.1:9", "socks5h://127.0.0.1:9"),
        ("SOCKS5://u:p@[::1]:9", "socks5://u:p@[::1]:9"),
    ],
)
def test_a_proxy_as_people_write_it(value: str, expected: str) -> None:
    assert proxy_for("https://far.test", {"ALL_PROXY": value}) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("ftp://proxy:1", "socks4://proxy:1", "http://", "http://proxy:abc", "http://a b", "://", "http:/proxy:1"),
        *('"http://proxy:1"', "http://user:1#2@proxy:1", "http://user:1/2@proxy:1", "http=a:1;https=b:2", "fd00::1:1"),
    ],
)
def test_a_proxy_that_is_none_is_named_by_its_variable(value: str) -> None:
    with pytest.raises(UsageError, match="HTTPS_PROXY") as raised:
        proxy_for("https://far.test", {"HTTPS_PROXY": value})
    assert "socks5h://" in raised.value.hint


def test_the_small_letters_count_first_and_the_scheme_before_all() -> None:
    both = {"http_proxy": "http://small", "HTTP_PROXY": "http://large", "all_proxy": "http://all"}
    assert proxy_for("http://far.test", both) == "http://small"
    assert proxy_for("https://far.test", both) == "http://all"


def test_only_what_libraries_do_not_know_is_written_otherwise() -> None:
    told = {"all_proxy": "socks://h:1", "HTTP_PROXY": "http://h:2", "HTTPS_PROXY": "ftp://h"}
    assert known_to_clients(told) == {"all_proxy": "socks5h://h:1"}
    addresses = {"OPENAI_BASE_URL": "box:1/v1", "GROQ_API_BASE": "https://x", "MISTRAL_API_BASE": "a b", "BASE": "x"}
    assert known_to_clients(addresses) == {"OPENAI_BASE_URL": "http://box:1/v1"}


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("192.168.1.4:1234", "http://192.168.1.4:1234"),
        ("box:8080/v1", "http://box:8080/v1"),
        ("models.example.org/v1", "https://models.example.org/v1"),
        ("HTTPS://models.example.org/v1/?api-version=1", "https://models.example.org/v1?api-version=1"),
        ("", ""),
    ],
)
def test_an_address_as_people_write_it(written: str, whole: str) -> None:
    assert whole_address(written) == whole == whole_address(whole)


@pytest.mark.parametrize(
    "written",
    [
        "ftp://x",
        "http://",
        "http://x:99999",
        "http//x",
        "http:/x",
        "'x'",
        "http://a..b",
        "$HOST/v1",
        "http://x:port",
        "http://[::1",
        "a b",
        "http://ü.org",
    ],
)
def test_what_is_no_address_says_why(written: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        whole_address(written)


@given(NAMES, st.sampled_from(["", "/v1", "/openai/v1/", "/a%20b"]), st.sampled_from(["", "?api-version=1&x=%2F"]))
def test_a_path_is_put_before_what_stands_behind_a_question_mark(host: str, path: str, query: str) -> None:
    assert with_path(f"https://{host}{path}{query}", "/x") == f"https://{host}{path.rstrip('/')}/x{query}"


@given(st.text())
def test_a_header_takes_what_ascii_shows(value: str) -> None:
    assert bool(fault_of_header(value)) == any(not 32 <= ord(letter) < 127 for letter in value)
