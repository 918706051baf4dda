"""`ctxchat mcp`: servers are added, tried and removed by command."""

from __future__ import annotations

import sys
import tomllib

import pytest

from tests.cli.conftest import Cli, Home
from tests.tools.test_mcp import SCRIPT


def test_a_server_is_added_tried_and_removed(cli: Cli, home: Home) -> None:
    file = home.settings / "config.toml"
    assert cli("mcp", "add", "harbour", "--", sys.executable, SCRIPT, "--root", ".").code == 0
    assert cli("mcp", "add", "far", "http://127.0.0.1:9/mcp", "--header", "Authorization=Bearer ${TOKEN}").code == 0
    servers = tomllib.loads(file.read_text())["mcp"]
    assert servers["harbour"] == {"command": sys.executable, "args": [SCRIPT, "--root", "."]}
    assert servers["far"] == {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    known = ("--client-id", "ctx", "--client-secret-env", "SECRET", "--callback-port", "8123")
    assert cli("mcp", "add", "known", "http://127.0.0.1:9/mcp", *known).code == 0
    assert tomllib.loads(file.read_text())["mcp"]["known"] == {
        "url": "http://127.0.0.1:9/mcp",
        "client_id": "ctx",
        "client_secret_env": "SECRET",
        "callback_port": 8123,
    }
    tried = cli("mcp", "test", "far", "--json")
    assert tried.code == 1 and '"state": "failed"' in tried.out
    assert cli("mcp", "remove", "far").code == 0
    assert "far" not in tomllib.loads(file.read_text())["mcp"]


def test_trying_one_server_starts_no_other(cli: Cli, home: Home) -> None:
    started = home.work / "started"
    cli("mcp", "add", "harbour", "--", sys.executable, SCRIPT)
    cli("mcp", "add", "other", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    tried = cli("mcp", "test", "harbour", "--json")
    assert tried.json["state"] == "ready" and not started.exists()
    assert cli("mcp", "test", "other").code == 1 and started.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "--env", "A=b", "far", "http://127.0.0.1:9/mcp"), "no variables"),
        (("add", "--header", "A=b", "near", "server"), "at an address"),
        (("add", "--client-id", "ctx", "near", "server"), "at an address"),
        (("add", "--callback-port", "99999", "far", "http://127.0.0.1:9/mcp"), "callback_port"),
        (("add", "--env", "A", "near", "server"), "NAME=VALUE"),
        (("add", "harbour", "other"), "already"),
        (("remove", "nobody"), "no server nobody"),
        (("test", "nobody"), "no MCP server nobody"),
        (("login", "nobody"), "no MCP server 'nobody'"),
        (("login", "harbour"), "takes no login"),
        (("logout", "nobody"), "no MCP server 'nobody'"),
        (("logout", "harbour"), "No login to harbour"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(cli: Cli, home: Home, arguments: tuple[str, ...], said: str) -> None:
    file = home.settings / "config.toml"
    cli("mcp", "add", "harbour", "server")
    before = file.read_text()
    done = cli("mcp", *arguments)
    assert done.code == 2 and said in done.err and file.read_text() == before
