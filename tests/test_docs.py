"""The documentation as a reader takes it: links lead somewhere, code runs, settings are valid, commands are there."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import ctxchat.core
from ctxchat.cli.commands import ctxchat as root_command
from ctxchat.config.effective import load_settings
from ctxchat.core import Item, Message
from ctxchat.core.ports import ToolContext
from tests.core.test_chat_lists import conversation

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, *kinds: str) -> Iterator[str]:
    return (code for kind, code in BLOCK.findall(page.read_text()) if kind in kinds)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@every_page
def test_data_can_be_read(page: Path) -> None:
    for code in blocks(page, "json"):
        json.loads(code)
    for code in blocks(page, "toml"):
        tomllib.loads(code)


@every_page
def test_settings_are_valid(page: Path, tmp_path: Path) -> None:
    for place, code in enumerate(blocks(page, "toml")):
        if page.name == "themes.md" or "[project" in code:
            continue
        file = tmp_path / f"{place}.toml"
        file.write_text(code)
        assert load_settings(config=file, environ={}, known=lambda _: ()).problems == (), code


@every_page
def test_commands_are_there_with_their_options(page: Path) -> None:
    for line in (line for code in blocks(page, "sh", "bash", "console") for line in code.splitlines()):
        for part in re.split(r"&&|\|\||[|;]", line.split(" #")[0]):
            words = shlex.split(part) if part.count('"') % 2 == 0 and part.count("'") % 2 == 0 else []
            if "ctxchat" in words:
                parsed(words[words.index("ctxchat") + 1 :])


def parsed(words: list[str]) -> None:
    """Fails for a command or an option that ctxchat does not have."""
    words = [word for word in words if not re.match(r"\d?[<>]", word)]
    command: click.Command = root_command
    ctx = click.Context(command, info_name="ctxchat")
    while isinstance(command, click.Group):
        _, left, _ = command.make_parser(ctx).parse_args(list(words))
        if not left:
            return
        name = left[0]
        below = command.get_command(ctx, name)
        if below is None:
            assert name in {"…", "COMMAND"}, f"there is no command {name}"
            return
        words = words[words.index(name) + 1 :]
        command, ctx = below, click.Context(below, ctx, info_name=name)
    command.make_parser(ctx).parse_args(words)


class Client:
    """Answers in OpenAI's form, first with a call where tools are offered."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, model: str, messages: list[Any], tools: Any = None) -> Any:
        called = tools and messages[-1]["role"] != "tool"
        function = SimpleNamespace(name="read_file", arguments="{}")
        calls = [SimpleNamespace(id="c1", type="function", function=function)] if called else None
        wire = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        dumped = {"role": "assistant", "content": "Cormorant."} | ({"tool_calls": [wire]} if called else {})
        reply = SimpleNamespace(content="Cormorant.", tool_calls=calls, model_dump=lambda exclude_none: dumped)
        return SimpleNamespace(choices=[SimpleNamespace(message=reply)])


LIBRARY = "\n".join(blocks(ROOT / "docs" / "library.md", "python"))


def test_the_library_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    encoding = SimpleNamespace(encode_ordinary=str.split)
    names: dict[str, Any] = {"client": Client(), "long_conversation": conversation(12), "encoding": encoding}
    sdk = re.findall(r"^from openai\S* import (\w+)$", LIBRARY, re.MULTILINE)  # only types; loading it takes a second
    names |= dict.fromkeys(sdk, Any)
    exec(compile(re.sub(r"^from openai.*", "", LIBRARY, flags=re.MULTILINE), "docs/library.md", "exec"), names)
    assert names["stored"] == names["messages"]
    assert [m["role"] for m in names["messages"]] == ["system", "user", "assistant"]
    done = names["turn"](
        [*conversation(2), {"role": "user", "content": "go"}], [{"name": "read_file"}], lambda *_: "text"
    )
    assert [m["role"] for m in done[-3:]] == ["assistant", "tool", "assistant"]
    assert names["answer"](conversation(2)).choices
    system, turned = names["to_anthropic"](conversation(2))
    assert system == "You are helpful."
    assert [m["role"] for m in turned] == ["user", "assistant", "user", "assistant"] * 2


@pytest.mark.long  # ten seconds of processor time
def test_the_library_page_is_typed_as_strictly_as_its_readers_may_be(tmp_path: Path) -> None:
    checker = pytest.importorskip("basedpyright", reason="comes with the group `check`")
    given = """\
from collections.abc import Mapping
from typing import Protocol, assert_type
from openai import OpenAI
class Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...
def anything() -> Any: ...  # of the page's own import
client: OpenAI = anything()
encoding: Encoding = anything()
long_conversation: list[Mapping[str, Any]] = anything()
"""
    plain = """
from ctxchat.core import originals
plain: list[dict[str, Any]] = []
assert_type(compact(plain, window=1000), list[dict[str, Any]])
assert_type(originals(plain), list[dict[str, Any]])
"""
    (tmp_path / "page.py").write_text(given + LIBRARY + plain)
    config = {"typeCheckingMode": "strict", "reportMissingModuleSource": False, "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", checker.__name__, "-p", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


async def test_the_plug_ins_page_runs(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for code in blocks(ROOT / "docs" / "plugins.md", "python"):
        exec(compile(code, "docs/plugins.md", "exec", dont_inherit=True), names)
    dice, context = names["Dice"](), ToolContext(call_id="c1", workspace=str(tmp_path))
    assert "sides" in str(dice.spec.parameters)
    assert dice.access_request({"sides": 4}, context).access == "none"
    assert [int(piece.text) in range(1, 5) async for piece in dice.run({"sides": 4}, context)] == [True]
    (tmp_path / "weather.txt").write_text("rain")
    assert await names["Weather"](tmp_path).provide() == "rain"
    item = Item(Message(1, "user", "LOUD"), "user", 1, "user")
    assert [i.message.text for i in names["quiet"]()((item,))] == ["loud"]


def test_every_benchmark_can_be_loaded() -> None:
    """What the pages tell to run: it goes by names of the program, which may have become others."""
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        importlib.import_module(f"benchmarks.{script.stem}")


def test_every_page_is_in_the_sites_navigation() -> None:
    named = set(re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert named == {page.name for page in (ROOT / "docs").rglob("*.md")}


def test_the_first_page_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = {link.partition("#")[0] for link in LINK.findall((docs / "index.md").read_text())}
    assert {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - linked == {"index.md"}


def test_the_library_page_names_what_stays() -> None:
    named = (ROOT / "docs" / "library.md").read_text().split("<!-- stable -->")[1]
    assert re.findall(r"`(\w+)`", named) == ctxchat.core.STABLE.split()
    assert set(ctxchat.core.STABLE.split()) <= set(ctxchat.core.__all__)
