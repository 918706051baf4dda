"""Resources of real MCP servers mentioned by `@server:uri`: completed, weighed, sent, and what goes wrong with them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ctxchat.bootstrap.servers import Servers
from ctxchat.config.schema import McpSettings
from ctxchat.core.errors import CtxchatError
from ctxchat.tools.mcp.connection import MAX_LISTED
from ctxchat.tools.mcp.host import ToolReply
from ctxchat.tools.mcp.protocol import OfferedResource
from ctxchat.tools.mentions import MentionRules, mention
from ctxchat.tui.chat.chips import Mentioned
from ctxchat.tui.chat.completion import mention_choices
from ctxchat.tui.unsent.resources import MentionedResources
from tests.tools.test_mcp import RAW
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeServices, FakeSession

FREE = MentionRules()


class WithServers(FakeServices):
    """Services with real servers, kept for the test."""

    servers: Servers

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        return self.servers.resources

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        return await self.servers.read_resource(server, uri)


@asynccontextmanager
async def serving(folder: Path, *modes: str) -> AsyncIterator[WithServers]:
    services = WithServers(folder, FakeSession())
    services.servers = Servers(folder, folder / "logs")
    services.servers.start({mode: McpSettings(command=sys.executable, args=(RAW, mode)) for mode in modes})
    try:
        await services.servers.settled(60, all=True)
        yield services
    finally:
        await services.servers.close()


async def loaded(resources: MentionedResources, text: str, longest: int = 32_000) -> list[tuple[str, str, str]]:
    await resources.refresh()
    return [(n.name, n.kind, n.text or n.why) for n in await resources.load(text, longest, FREE)]


async def test_text_and_images_go_along_and_of_all_else_the_name_with_why(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf") as services:
        resources = MentionedResources(services)
        said = "see (@shelf:book://tides), @shelf:book://cover, @shelf:book://scan @shelf:book://long and @a.txt"
        tides, cover, scan, long = await loaded(resources, said)
        assert tides == ("shelf:book://tides", "text", "high water at six\n")
        assert cover[:2] == ("shelf:book://cover", "image")
        assert scan[1:] == ("nothing", "nothing that can be shown: only named")
        assert long[1] == "nothing" and "the agent reads what it needs" in long[2]


@pytest.mark.parametrize(
    ("name", "why"),
    [("nobody:book://tides", "no MCP server"), ("shelf:book://none", "unknown"), ("shelf:book://death", "ended")],
)
async def test_what_cannot_be_read_is_said_and_nothing_is_sent(tmp_path: Path, name: str, why: str) -> None:
    async with serving(tmp_path, "shelf") as services:
        resources = MentionedResources(services)
        with pytest.raises(CtxchatError, match=why) as problem:
            await loaded(resources, f"see @{name}")
        assert name in problem.value.text
        assert (await loaded(resources, "@shelf:book://tides"))[0][1] == "text"  # it goes on


async def test_one_of_fifty_megabytes_costs_itself(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf") as services:
        resources = MentionedResources(services)
        with pytest.raises(CtxchatError, match=r"longer than 32\.0 MB"):
            await loaded(resources, "@shelf:book://huge")
        assert (await loaded(resources, "@shelf:book://tides"))[0][1] == "text"


async def test_a_list_without_an_end_is_cut_and_names_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf", "pager") as services:
        resources = MentionedResources(services)
        await resources.refresh()
        assert 0 < len(resources.listed["pager"]) <= MAX_LISTED
        choices = mention_choices("shelf:", ["shelf.py"], resources.listed)
        assert not any("\x1b" in c.insert + c.label + c.note for c in choices)
        (odd,) = [c for c in choices if "red" in c.label]
        (found,) = await resources.load(f"see {odd.insert}", 1000, FREE)
        assert found.text == "odd" and odd.insert.strip() == mention(found.name)


async def test_a_name_that_was_pasted_is_not_read_before_the_person_agrees(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf") as services:
        resources, name = MentionedResources(services), "shelf:book://tides"
        await resources.refresh()
        (asks,), _ = resources.look(f"@{name}", 1000, MentionRules(pasted=(name,)), "")
        assert asks.asks and await resources.load(f"@{name}", 1000, MentionRules(pasted=(name,))) == []
        agreed = MentionRules(pasted=(name,), agreed=(name,))
        assert [n.kind for n in await resources.load(f"@{name}", 1000, agreed)] == ["text"]


async def test_it_is_completed_and_weighed_before_it_is_sent(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf") as services:
        session = services.first
        async with chatting(tmp_path, session, services=services) as (app, pilot):
            composer = app.chat.composer
            await pilot.press("s", "e", "e", "space", "@", "t", "i", "d", "e", "s")
            await until(pilot, lambda: any("shelf:book://tides" in c.label for c in composer._completion.choices))
            await pilot.press("tab")
            assert composer.draft == "see @shelf:book://tides"
            await until(pilot, lambda: any("tides" in m.label for m in app.screen.query(Mentioned)))
            await until(pilot, lambda: [p.name for p in composer.parts] == ["shelf:book://tides"])
            await pilot.press("enter")
            await until(pilot, lambda: session.sent == ["see @shelf:book://tides"])


async def test_a_message_whose_resource_is_gone_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path, "shelf") as services:
        session = services.first
        async with chatting(tmp_path, session, services=services) as (app, pilot):
            app.chat.composer.set_draft("see @shelf:book://death now")
            await pilot.press("enter")
            await until(pilot, lambda: not app.controller.busy and app.chat.composer.draft)
            assert app.chat.composer.draft == "see @shelf:book://death now" and not session.sent
