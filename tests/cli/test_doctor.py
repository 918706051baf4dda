"""`ctxchat doctor` asks every model in use for a word, and says what to do about one that gives none."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.conftest import Cli, Home
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import refuses, says
from tests.tools.test_mcp import RAW


@contextmanager
def running(double: ModelDouble) -> Iterator[ModelDouble]:
    """The double in a loop of its own: the command has its own, too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(double.start(), loop).result()
    try:
        yield double
    finally:
        asyncio.run_coroutine_threadsafe(double.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def checks(cli: Cli) -> dict[str, dict[str, object]]:
    ran = cli("doctor", "--json")
    return {check["name"]: check for check in json.loads(ran.out)["checks"]}


def test_each_model_in_use_is_asked_and_each_fault_has_its_remedy(cli: Cli, home: Home) -> None:
    with (
        running(ModelDouble([says("ok")])) as good,
        running(ModelDouble([refuses(401, "Incorrect API key provided")])) as locked,
    ):
        home.settings.joinpath("config.toml").write_text(
            'model = "openai/good"\n'
            f'[models."openai/good"]\napi_base = "{good.base_url}"\nfallback = "openai/locked"\n'
            f'[models."openai/locked"]\napi_base = "{locked.base_url}"\n'
            '[context.summary_model]\nname = "ollama_chat/llama3"\napi_base = "http://127.0.0.1:9"\n'
        )
        found = checks(cli)
    assert found["model"]["ok"] and "answered after" in str(found["model"]["detail"])
    assert len(good.requests) == 1 and good.requests[0].body["max_tokens"] == 16
    assert not found["fallback model"]["ok"] and "api_key_env" in str(found["fallback model"]["remedy"])
    assert not found["summary model"]["ok"] and "ollama serve" in str(found["summary model"]["remedy"])


THREE_SERVERS = (
    f"[mcp.harbour]\ncommand = {sys.executable!r}\nargs = [{RAW!r}, 'harbour']\n"
    '[mcp.gone]\ncommand = "no-such-program-here"\n[mcp.off]\nurl = "http://127.0.0.1:9/mcp"\nenabled = false\n'
)


def test_each_mcp_server_is_started_once_to_see(cli: Cli, home: Home) -> None:
    home.settings.joinpath("config.toml").write_text(THREE_SERVERS)
    found = checks(cli)
    assert found["mcp harbour"]["ok"]
    assert str(found["mcp harbour"]["detail"]).startswith("2 tools, ~")
    assert (found["mcp off"]["ok"], found["mcp off"]["detail"]) == (True, "off")
    assert not found["mcp gone"]["ok"] and "[mcp.gone]" in str(found["mcp gone"]["remedy"])


def test_the_mcp_servers_are_listed_with_state_tools_and_trouble(cli: Cli, home: Home) -> None:
    assert cli("mcp", "--json").json == [] and "ctxchat mcp add NAME" in cli("mcp").err
    home.settings.joinpath("config.toml").write_text(THREE_SERVERS)
    rows = {row["name"]: row for row in cli("mcp", "--json").json}
    assert [(name, row["state"]) for name, row in rows.items()] == [
        ("gone", "failed"),
        ("harbour", "ready"),
        ("off", "off"),
    ]
    assert "no-such-program-here" in rows["gone"]["trouble"] and rows["off"]["where"] == "http://127.0.0.1:9/mcp"
    tools = {tool["name"]: tool["tokens"] for tool in rows["harbour"]["tools"]}
    assert len(tools) == 2 and tools["harbour__add"] > 0
    said = cli("mcp")
    assert said.code == 0
    assert all(words in said.out for words in ("harbour__add", "no-such-program-here", f"~{sum(tools.values()):,}"))
