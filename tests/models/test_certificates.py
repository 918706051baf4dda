"""Certificates that the environment names: those that can be read are trusted, by every transport; others are told by the
variable, before anything is sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from ctxchat.certificates import VARIABLES, named_context
from ctxchat.core.errors import ModelError, ToolError, UsageError
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.network import check_network_settings
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from ctxchat.tools.fetching import Fetched, Fetcher
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.requests import asks, listen
from tests.doubles.tls import authority
from tests.models.served import Way, lane

pytestmark = pytest.mark.asyncio(loop_scope="session")

Placed = Callable[[Path, Path], str]
"""What a variable is set to, by the authority's file and an empty folder."""


def _file(pem: Path, folder: Path) -> str:
    return str(pem)


def _folder(pem: Path, folder: Path) -> str:
    """One of OpenSSL's, with what else lies in such: a link that leads nowhere, a certificate that is none, other files."""
    shutil.copy(pem, folder / "0a1b2c3d.0")
    (folder / "0a1b2c3d.1").symlink_to(folder / "gone")
    (folder / "ffffffff.0").write_text("no certificate\n")
    (folder / "README").write_text("-")
    return str(folder)


def _folders(pem: Path, folder: Path) -> str:
    return os.pathsep.join((str(folder / "none"), _folder(pem, folder)))


GOOD: list[tuple[str, Placed]] = [
    ("SSL_CERT_FILE", _file),
    ("SSL_CERT_DIR", _folder),
    ("SSL_CERT_DIR", _folders),
    ("REQUESTS_CA_BUNDLE", _file),
    ("REQUESTS_CA_BUNDLE", _folder),
    ("CURL_CA_BUNDLE", _file),
]


@pytest_asyncio.fixture(loop_scope="session")
async def secure(tmp_path: Path) -> AsyncIterator[tuple[ModelDouble, Path]]:
    """A server that proves itself by an authority of its own, and that authority's certificate."""
    pem, context = authority(tmp_path)
    double = ModelDouble([says("here")], pages={"/page": {"read": True}})
    double.tls = context
    async with double:
        yield double, pem


async def _answer(double: ModelDouble, way: Way) -> str:
    settings = ModelSettings("openai/double", api_base=double.base_url, api_key_env="KEY", timeout=30)
    return (await listen(ModelClient(settings, lane(settings, way), lambda _: "key"), asks("hi"))).text


@pytest.mark.parametrize(("variable", "place"), GOOD)
async def test_what_is_named_is_trusted(
    variable: str,
    place: Placed,
    secure: tuple[ModelDouble, Path],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    double, pem = secure
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, place(pem, tmp_path_factory.mktemp("named")))
    connections = Connections()
    try:
        assert await _answer(double, connections) == "here"
    finally:
        await connections.close()
    got = await Fetcher(allowed=lambda _: True).fetch(httpx.URL(f"{double.root}/page"))
    assert isinstance(got, Fetched) and b"read" in got.body


@pytest.mark.long
@pytest.mark.parametrize(("variable", "place"), GOOD)
async def test_litellm_trusts_the_same(
    variable: str, place: Placed, secure: tuple[ModelDouble, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    double, pem = secure
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    worker = ModelProcess(None, clean | {variable: place(pem, tmp_path_factory.mktemp("named"))})
    try:
        assert await _answer(double, worker) == "here"
    finally:
        await worker.close()


def _wrong(folder: Path) -> dict[str, str]:
    """What is none of a file of certificates."""
    empty, text, key, pipe = (folder / name for name in ("empty", "text", "key", "pipe"))
    empty.write_bytes(b"")
    text.write_text("no certificate\n")
    key.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    os.mkfifo(pipe)
    (folder / "bare").mkdir()
    (folder / "bare" / "authority.pem").write_text("not under a name that is looked for")
    return {path.name: str(path) for path in (empty, text, key, pipe, folder / "bare", folder / "missing")}


@pytest.mark.parametrize("variable", VARIABLES)
async def test_what_cannot_be_read_is_told_by_the_variable(
    variable: str, secure: tuple[ModelDouble, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double, pem = secure
    double.requests.clear()
    wrong = _wrong(tmp_path)
    if variable == "SSL_CERT_DIR":
        wrong["a file"] = str(pem)
    settings = ModelSettings("openai/double", api_base=double.base_url, api_key_env="KEY")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for value in wrong.values():
        with pytest.raises(ModelError, match=f"^{variable} names {value}") as raised:
            check_network_settings(settings, {variable: value})
        assert raised.value.kind == "settings" and raised.value.text.count(". ") == 0
        monkeypatch.setenv(variable, value)
        with pytest.raises(ToolError, match=f"^{variable} names"):
            await Fetcher(allowed=lambda _: True).fetch(httpx.URL(f"{double.root}/page"))
        check_network_settings(
            ModelSettings("openai/double", api_base="http://localhost:1"), {variable: value}
        )  # no TLS: not looked at
    assert not double.requests


@pytest.mark.parametrize("variable", ["SSL_VERIFY", "SSL_CERTIFICATE", "AWS_CA_BUNDLE"])
async def test_what_litellm_alone_reads_is_looked_at_before_a_call_too(variable: str, tmp_path: Path) -> None:
    pem, _ = authority(tmp_path)
    bedrock = ModelSettings("bedrock/anthropic.claude-haiku-4-5")
    without_key = [str(pem)] if variable == "SSL_CERTIFICATE" else []
    for value in (*_wrong(tmp_path).values(), *without_key):
        with pytest.raises(ModelError, match=f"^{variable} names {value}"):
            check_network_settings(bedrock, {variable: value})
    own = str(tmp_path / "server.pem")
    good = {"SSL_VERIFY": ("True", "false", str(pem)), "SSL_CERTIFICATE": (own,), "AWS_CA_BUNDLE": (str(pem),)}
    for value in good[variable]:
        check_network_settings(bedrock, {variable: value})
    if variable == "AWS_CA_BUNDLE":  # nobody else's concern
        check_network_settings(ModelSettings("openai/gpt-5"), {variable: "/none"})


async def test_the_first_that_is_set_counts_and_an_empty_one_is_none(tmp_path: Path) -> None:
    pem, _ = authority(tmp_path)
    assert named_context(dict.fromkeys(VARIABLES, "")) is None is named_context({})
    assert named_context({"SSL_CERT_FILE": str(pem), "REQUESTS_CA_BUNDLE": "/none"})
    assert named_context({"SSL_CERT_FILE": " ", "CURL_CA_BUNDLE": str(pem)})
    with pytest.raises(UsageError, match="SSL_CERT_FILE"):
        named_context({"SSL_CERT_FILE": "/none", "REQUESTS_CA_BUNDLE": str(pem)})
