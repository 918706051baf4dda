"""Draws the pictures of the documentation: the real interface over a fixed conversation, in `docs/pictures/`.

Run it from a checkout: `uv run python docs/make_pictures.py [NAME ...]`. With `uv run --group pictures` before it, `--png` draws
PNG as well, and `--look FOLDER` every screen as PNG in three sizes, dark and light, to be looked at.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

os.environ["TZ"] = "UTC"

import msgspec
from demo_session import MODEL, DemoServices, demo_desk, empty_desk, moment, writing_desk
from textual.pilot import Pilot

from ctxchat.agent.prompts import prompt
from ctxchat.config.effective import load_settings
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import ApprovalRequested, QuestionAsked, TextDelta
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.permissions import Mode, parse_rule
from ctxchat.models.discovery import FoundModel, Offer
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.mcp.server import ServerRow
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.chat.composer import Composer
from ctxchat.tui.chat.edges import HeaderState
from ctxchat.tui.chat.offers import FirstChoice
from ctxchat.tui.guide import Guide
from ctxchat.tui.panels.agents import AgentsScreen
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.flight import FlightScreen
from ctxchat.tui.panels.keys import KeysScreen
from ctxchat.tui.panels.models import ModelsScreen
from ctxchat.tui.panels.preview import PreviewScreen
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.sessions import SessionsScreen
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.panels.undoing import UndoScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.transcript.blocks import CompactionMark
from tests.agent.desk import Desk
from tests.doubles.planted import planted
from tests.doubles.scripted import Reply, ScriptedModel, Wait, calls, fails, says

FOLDER = Path(__file__).parent / "pictures"
FONTS = "'Fira Code', 'DejaVu Sans Mono', monospace"
CELL = 12.2
"""Width of a cell in the SVG, in its own units."""

Steps = Callable[[Pilot[int], Desk], Awaitable[None]]

Opened = Callable[[Path], Awaitable[Desk]]
"""The session that is drawn; the folder is empty and its own."""


async def long(folder: Path) -> Desk:
    """Most of a day's work."""
    return await demo_desk()


async def shorter(folder: Path) -> Desk:
    """Some of it, in a smaller window."""
    return await demo_desk(64_000, 36)


async def empty(folder: Path) -> Desk:
    """Nothing was said yet."""
    return await empty_desk()


def in_window(window: int) -> Opened:
    """Most of a day's work in a window of so many tokens."""

    async def opened(folder: Path) -> Desk:
        return await demo_desk(window)

    return opened


def press(*keys: str) -> Steps:
    """What these keys open."""

    async def pressed(pilot: Pilot[int], desk: Desk) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.2)

    return pressed


async def chat(pilot: Pilot[int], desk: Desk) -> None:
    """The chat as it opens; where it is wide, with the context panel beside it."""


async def hero(pilot: Pilot[int], desk: Desk) -> None:
    """A chat a little after a compaction, with the next message half written."""
    prompt = pilot.app.query_one(Composer).prompt
    prompt.insert("And how often did it fail since the first of November?")


async def approval(pilot: Pilot[int], desk: Desk) -> None:
    """A command that waits for its answer."""
    request = ApprovalRequested(
        "c1",
        "shell",
        "run systemctl restart cormorant",
        "run",
        "systemctl restart cormorant",
        ("shell: systemctl restart cormorant", "shell: systemctl restart *", "shell: systemctl *"),
    )
    await cast(CtxchatApp, pilot.app).chat.questions.ask(request)


async def question(pilot: Pilot[int], desk: Desk) -> None:
    """The agent asks which of three ways to go."""
    options = ("Close the port and open it again", "Wait a minute", "Ask the harbour office to move its backup")
    asked = QuestionAsked("c1", "Three timeouts in a row: what should the logger do then?", options)
    await cast(CtxchatApp, pilot.app).chat.questions.ask(asked)


async def danger(pilot: Pilot[int], desk: Desk) -> None:
    """A command that is allowed once or not at all."""
    request = ApprovalRequested(
        "c1",
        "shell",
        "run git push",
        "run",
        "git push --force origin main && rm -rf build",
        harms=("overwrites what was pushed", "deletes files"),
    )
    await cast(CtxchatApp, pilot.app).chat.questions.ask(request)


async def tour(pilot: Pilot[int], desk: Desk) -> None:
    """The chat with the tour's guide over the composer."""
    chat = cast(CtxchatApp, pilot.app).chat
    chat.guide = guide = Guide()
    await chat.query_one("#composer").parent.mount(guide, before="#composer")  # type: ignore[union-attr]
    guide.advance()


def working(*steps: Reply, mode: Mode = "all") -> Opened:
    """A session whose model does these one after another; by default it asks nobody."""

    async def opened(folder: Path) -> Desk:
        model = ScriptedModel(list(steps), name=MODEL, window=Window(96_000, "catalogue"))
        tools = standard_tools(sandbox=Sandbox(), environ=os.environ)
        return Desk(model, tools=tools, system=prompt("system"), mode=mode, workspace=folder)

    return opened


PLAN = ("todo", {"items": [
    {"text": "find where the port is opened", "status": "done"},
    {"text": "open it again after three timeouts", "status": "in_progress"},
    {"text": "run the tests of the port", "status": "pending"},
]})  # fmt: skip
TESTS = "for n in 1 2 3 4 5 6 7; do echo tests/test_port.py::test_night_$n PASSED; done; sleep 60"


READ = """The port stays open while nothing answers, so `read` waits for ever; the backup of the harbour office takes the same hub
at two. Closing it after three timeouts is enough, as nothing else holds the port:

```diff
--- a/src/cormorant/port.py
+++ b/src/cormorant/port.py
@@ -41,4 +41,6 @@ def read(self):
     except TimeoutError:
-        return None
+        self.missed += 1
+        if self.missed >= LIMIT:
+            self.reopen()
```

The whole of it then, with a line that is longer than the window:

```python
def reopen(self) -> None:
    # closed and opened again, as nothing else holds it
    self.serial.close()
    self.serial = Serial(self.settings.device, self.settings.baud, timeout=self.settings.timeout, exclusive=True, rtscts=False)
    self.missed = 0
```
"""


async def mark(pilot: Pilot[int], desk: Desk) -> None:
    """The line of a compaction with the focus on it: its keys work there. What stands above it is no longer seen as it was."""
    transcript = cast(CtxchatApp, pilot.app).chat.transcript
    for _ in range(MAX_LOOKS):
        await pilot.press("tab")
        await pilot.pause(0.1)
        if isinstance(transcript._focused, CompactionMark):
            return


async def reading(pilot: Pilot[int], desk: Desk) -> None:
    """An answer with prose, a diff and code."""
    await ask("Make the port open again after three timeouts.")(pilot, desk)
    await pilot.pause(1)


async def preview(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(PreviewScreen(desk.session, await desk.session.preview()))


async def archive(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(ArchiveScreen(desk.session, DemoServices(desk.session)))


async def messages(pilot: Pilot[int], desk: Desk) -> None:
    await archive(pilot, desk)
    await pilot.pause()
    await pilot.press("3", "down")


async def diff(pilot: Pilot[int], desk: Desk) -> None:
    await archive(pilot, desk)
    await pilot.pause()
    await pilot.press("4")


async def undo(pilot: Pilot[int], desk: Desk) -> None:
    """The question before an undo that would fill the window too far."""
    pilot.app.push_screen(UndoScreen(await desk.session.changes.preview_undo(), desk.session.state))


async def undone(pilot: Pilot[int], desk: Desk) -> None:
    """What is left in the archive of a pass that was undone."""
    await desk.session.changes.undo()
    await archive(pilot, desk)


async def xray(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(XrayScreen(desk.session))


async def sessions(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(SessionsScreen(DemoServices(desk.session), desk.session, datetime.fromisoformat(moment(330))))


async def search(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(SearchScreen(DemoServices(desk.session), desk.session, "serial hub busy"))
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause(0.5)
    await pilot.press("down")


async def flight(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(FlightScreen(desk.session, DemoServices(desk.session)))


async def models(pilot: Pilot[int], desk: Desk) -> None:
    pilot.app.push_screen(ModelsScreen(DemoServices(desk.session), desk.session))


async def first_start(pilot: Pilot[int], desk: Desk) -> None:
    found = (
        FoundModel("ollama_chat/qwen3:8b", "Ollama", True, 40_960, "loaded", 0.0, 0.0, "at 127.0.0.1:11434"),
        FoundModel(
            "anthropic/claude-sonnet-4-5",
            "Anthropic",
            True,
            200_000,
            "catalogue",
            3.0,
            15.0,
            "key in ANTHROPIC_API_KEY",
        ),
    )
    chat = cast(CtxchatApp, pilot.app).chat
    chat.header.show_state(HeaderState(model="offline/assistant"))
    await chat.questions.choose_model(FirstChoice([Offer(model, 2 - place) for place, model in enumerate(found)]))
    await pilot.press("tab")


async def settings(pilot: Pilot[int], desk: Desk) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        file.write_text("[context]\nkeep_recent = 8\n")
        read = partial(load_settings, config=file, environ={}, known=lambda _: ())
        pilot.app.push_screen(SettingsScreen(read(), read, Path("config.toml"), desk.session))
        await pilot.pause()
        await pilot.press(*["down"] * 7)


async def keys(pilot: Pilot[int], desk: Desk) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        file.write_text('[keys]\nsearch = ["ctrl+r"]\n')
        read = partial(load_settings, config=file, environ={}, known=lambda _: ())
        pilot.app.push_screen(KeysScreen(read(), read, Path("config.toml")))
        await pilot.pause()


async def agents(pilot: Pilot[int], desk: Desk) -> None:
    reviewer = AgentSettings(
        "Reads a change and says what is wrong with it.",
        prompt="Review the change.",
        tools=("read_file", "grep"),
        permissions="read-only",
        context={"keep_recent": 30},
    )
    scribe = AgentSettings(
        "Writes the documentation, on a small local model.", "ollama_chat/qwen3:8b", permissions="auto-edit"
    )
    pilot.app.push_screen(AgentsScreen(Settings(agents={"reviewer": reviewer, "scribe": scribe}), ""))
    await pilot.pause()
    await pilot.press("down")


async def secrets(pilot: Pilot[int], desk: Desk) -> None:
    """Keys that a file and a command brought."""
    app = cast(CtxchatApp, pilot.app)
    found = {each.kind: each.text for each in planted(5)}
    for number, (kind, name, arguments) in enumerate(
        (("Anthropic", "read_file", '{"path": ".env"}'), ("PEM", "shell", '{"command": "cat etc/cormorant.key"}'))
    ):
        seq, call = 9_000 + 10 * number, ToolCall(f"masked_{number}", name, arguments)
        said = [
            Message(seq, "user", "And what does it sign in with?", at=moment(325)),
            Message(seq + 1, "assistant", calls=(call,), at=moment(325)),
            Message(seq + 2, "tool", app.services.masking(found[kind]), call_id=call.id, at=moment(325)),
        ]
        await desk.conversation.write(Sealed(group_messages(said)))
    await desk.session.measure()
    await press("alt+s")(pilot, desk)


async def permissions(pilot: Pilot[int], desk: Desk) -> None:
    """Rules of the settings, and one of this session."""
    rules = ("shell: pytest **", "shell: git diff **", "write_file: src/**", "deny shell: systemctl **")
    cast(CtxchatApp, pilot.app).settings_file.write_text(f"[permissions]\nrules = {list(rules)}\n")
    desk.approvals.rules = [rule for text in rules if (rule := parse_rule(text))]
    await press("alt+m")(pilot, desk)


async def servers(pilot: Pilot[int], desk: Desk) -> None:
    """One that serves, one that failed, one that is off."""
    cast(DemoServices, cast(CtxchatApp, pilot.app).services).mcp = (
        ServerRow("weather", "ready", ("forecast", "warnings", "tides"), "", "weather-mcp --coast"),
        ServerRow("tickets", "failed", (), "The command tickets-mcp was not found.", "tickets-mcp"),
        ServerRow("papers", "off", (), "", "https://papers.example/mcp"),
    )
    await press("alt+v")(pilot, desk)


async def notices(pilot: Pilot[int], desk: Desk) -> None:
    """What is amiss, over the conversation."""
    chat = cast(CtxchatApp, pilot.app).chat
    chat.banner.add_notice(
        "config.toml:12: context.keep_recnt is unknown. Did you mean keep_recent? The last good settings hold."
    )
    chat.banner.add_notice("This folder has settings of its own that are not trusted: /trust shows them.")
    await press("alt+o")(pilot, desk)


def ask(text: str) -> Steps:
    """A question that is sent."""

    async def asked(pilot: Pilot[int], desk: Desk) -> None:
        pilot.app.query_one(Composer).prompt.insert(text)
        await pilot.press("enter")
        await pilot.pause(0.2)

    return asked


def failing(*errors: ModelError) -> Opened:
    """A model that cannot answer, for these reasons one after another."""

    async def opened(folder: Path) -> Desk:
        model = ScriptedModel([fails(error) for error in errors], name=MODEL, window=Window(96_000, "catalogue"))
        return Desk(model, tools=standard_tools(sandbox=Sandbox(), environ={}), system=prompt("system"))

    return opened


async def full_disk(pilot: Pilot[int], desk: Desk) -> None:
    """A message that the store cannot take."""
    desk.journal.full = True
    await ask("And how often does it fail?")(pilot, desk)


async def broken_settings(pilot: Pilot[int], desk: Desk) -> None:
    """Two mistakes in the settings file, while the chat is open."""
    app = cast(CtxchatApp, pilot.app)
    app.settings_file.write_text("[context]\nkeep_recnt = 8\ncompression_trigger = 7\n")
    if app.edits:
        await app.edits.glance()


class Picture(msgspec.Struct, frozen=True):
    """One screen: the size it has in the documentation (none: it is not there), how to come to it, and in which session."""

    size: tuple[int, int] | None
    steps: Steps
    opened: Opened = long


PICTURES: dict[str, Picture] = {
    "hero": Picture((120, 34), hero, shorter),
    "chat-narrow": Picture((40, 20), chat),
    "approval": Picture((100, 20), approval),
    "first-start": Picture((100, 20), first_start, empty),
    "context": Picture((120, 34), chat),
    "preview": Picture((112, 20), preview),
    "archive": Picture((120, 30), archive),
    "messages": Picture((120, 30), messages),
    "diff": Picture((120, 30), diff),
    "undo": Picture((112, 26), undo),
    "undone": Picture((80, 24), undone),
    "xray": Picture((112, 30), xray),
    "sessions": Picture((112, 20), sessions),
    "search": Picture((112, 30), search),
    "flight": Picture((112, 26), flight),
    "models": Picture((112, 14), models),
    "settings": Picture((120, 34), settings),
    "keys": Picture((112, 30), keys),
    "agents": Picture((100, 12), agents),
    "secrets": Picture((100, 14), secrets),
    "rewind": Picture((100, 14), press("ctrl+b"), writing_desk),
    "files": Picture((112, 16), press("ctrl+l", "t", "down"), writing_desk),
    "permissions": Picture((100, 16), permissions),
    "gauge-36": Picture(None, chat, in_window(150_000)),
    "gauge-72": Picture((112, 36), chat, in_window(76_500)),
    "gauge-90": Picture(None, chat, in_window(62_000)),
    "context-panel": Picture(None, press("f2")),
    "facts": Picture(None, press("f3", "2")),
    "record": Picture(None, press("f3", "5")),
    "summary": Picture(None, press("f8", "e")),
    "handoff": Picture(None, press("alt+w")),
    "servers": Picture(None, servers),
    "notices": Picture(None, notices),
    "help": Picture(None, press("f1")),
    "palette": Picture(None, press("ctrl+p")),
    "themes-list": Picture(None, press(*"/theme", "enter")),
    "completion": Picture(None, press("slash")),
    "rule": Picture(None, press("alt+m", "a")),
    "delete": Picture(None, press("f9", "down", "d")),
    "no-key": Picture(
        None,
        ask("Which logger does the tide gauge report to?"),
        failing(
            ModelError(
                f"No API key for {MODEL}: ANTHROPIC_API_KEY is not set.",
                "Set ANTHROPIC_API_KEY in the environment, put it into the system's keyring (`keyring set ctxchat "
                "ANTHROPIC_API_KEY`, with the keyring package), or name another variable with api_key_env.",
                kind="auth",
            )
        ),
    ),
    "no-server": Picture(
        None,
        ask("Which logger does the tide gauge report to?"),
        failing(
            *[
                ModelError(
                    "Cannot connect to 127.0.0.1:8080: nobody listens there.",
                    "Check that a server runs at http://127.0.0.1:8080/v1, and that the address is right.",
                    kind="connection",
                )
            ]
            * 9
        ),
    ),
    "full-disk": Picture(None, full_disk),
    "broken-settings": Picture(None, broken_settings),
    "running": Picture(
        (112, 24),
        ask("Open the port again after three timeouts."),
        working(calls(PLAN), calls(("shell", {"command": TESTS}))),
    ),
    "streaming": Picture(
        None,
        ask("Which logger does the tide gauge report to?"),
        working((TextDelta("The gauge at Pier 7 reports every 90 s to the logger **Cormorant**"), Wait(60))),
    ),
    "thinking": Picture(None, ask("Which logger does the tide gauge report to?"), working((Wait(60),))),
    "question": Picture(None, question),
    "danger": Picture((100, 16), danger),
    "tour-start": Picture(None, tour, empty),
    "mode-plan": Picture((100, 20), press(*["shift+tab"] * 2), empty),
    "mode-all": Picture(None, press(*["shift+tab"] * 4), empty),
    "mark": Picture((104, 46), mark, shorter),
    "reading": Picture((130, 34), reading, working(says(READ), mode="ask")),
    "aside": Picture(None, press(*"/btw", "enter"), empty),
    "cost": Picture(None, press("alt+h")),
    "memos": Picture(None, press("alt+d")),
    "jobs": Picture(None, press("ctrl+f5"), empty),
    "cache": Picture(None, press("alt+j")),
    "sub-sessions": Picture(None, press("f9", "/", *"lamp")),
    "empty-chat": Picture((112, 30), chat, empty),
    "empty-context": Picture(None, press("f2"), empty),
    "empty-preview": Picture(None, press("f8"), empty),
    "empty-archive": Picture(None, press("f3"), empty),
    "empty-xray": Picture(None, press("f4"), empty),
    "empty-search": Picture(None, press("ctrl+f", *"zebra"), empty),
    "empty-flight": Picture(None, press("alt+l"), empty),
    "empty-rewind": Picture(None, press("ctrl+b"), writing_desk),
    "empty-secrets": Picture(None, press("alt+s"), empty),
    "empty-permissions": Picture(None, press("alt+m"), empty),
    "empty-servers": Picture(None, press("alt+v"), empty),
    "empty-notices": Picture(None, press("alt+o"), empty),
    "empty-agents": Picture(None, press("alt+a"), empty),
}


MAX_LOOKS = 20
"""How often it is looked whether a screen stands."""


async def still(pilot: Pilot[int]) -> None:
    """Until the screen stands. What a key started may wait for the person, so its end is not waited for."""
    before, same = "", 0
    for _ in range(MAX_LOOKS):  # a spinner never stands
        await pilot.pause(0.1)
        now = pilot.app.export_screenshot(title=" ")
        before, same = now, same + 1 if now == before else 0
        if same == 3:
            return


async def drawn(picture: Picture, size: tuple[int, int] | None = None, theme: str = "dark", title: str = " ") -> str:
    """One picture as SVG."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        desk = await picture.opened(folder)
        file = folder / "config.toml"
        file.touch()
        read = partial(load_settings, config=file, environ={}, known=lambda _: ())
        app = CtxchatApp(
            DemoServices(desk.session),
            Settings(theme=theme),
            load_themes().themes,
            files=AppFiles(loaded=read(), load_settings=read, settings_file=file),
            runtime=Runtime(now=count().__next__),
        )
        async with app.run_test(size=size or picture.size or (120, 36), notifications=True) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await picture.steps(pilot, desk)
            await still(pilot)
            return portable(app.export_screenshot(title=title))


def portable(svg: str) -> str:
    """The SVG without fonts from elsewhere, and with every text where its first letter is."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family:[^;]*Fira Code[^;]*;", f"font-family: {FONTS};", svg)

    def moved(match: re.Match[str]) -> str:
        head, x, rest, spaces, text = match.groups()
        blank = len(spaces) // len("&#160;")
        width = re.search(r'textLength="([0-9.]+)"', rest)
        if width:
            rest = rest.replace(width[0], f'textLength="{float(width[1]) - blank * CELL:g}"')
        return f'{head}x="{float(x) + blank * CELL:g}"{rest}>{text}'

    return re.sub(r'(<text [^>]*?)\bx="([0-9.]+)"([^>]*)>((?:&#160;)+)([^<]+)', moved, svg)


async def all_themes(size: tuple[int, int] = (80, 15)) -> str:
    """The same chat in every theme, two beside each other."""
    drawings: list[str] = []
    for name in sorted(load_themes().themes):
        drawings.append(await drawn(Picture(size, chat), None, name, name))
    box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', drawings[0])
    if box is None:
        raise SystemExit("the drawing has no size")
    width, height = float(box[1]), float(box[2])
    placed = [
        re.sub(
            r"<svg ",
            f'<svg x="{i % 2 * width:g}" y="{i // 2 * height:g}" width="{width:g}" height="{height:g}" ',
            d,
            count=1,
        )
        for i, d in enumerate(drawings)
    ]
    rows = (len(drawings) + 1) // 2
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * width:g} {rows * height:g}">'
    return frame + "".join(placed) + "</svg>"


SCENES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The bar below: everything the model sees, and where compaction starts", ()),
    ("F8: a look before anything is sent or changed", ("f8",)),
    ("enter: room is made, and what was kept is said", ("enter",)),
    ("F3: the archive has every message that went", ("f3",)),
    ("u takes it back, once you say yes", ("u",)),
    ("enter: undone, exactly", ("enter",)),
    ("Everything is as it was", ("escape",)),
)
"""What the moving picture shows one after another: a caption, and the keys that lead there from the scene before."""

SCENE_SECONDS = 4


async def moving(size: tuple[int, int] = (112, 30)) -> str:
    """One run of the real interface as an SVG that moves by itself; still where people asked for less motion."""
    desk = await demo_desk(64_000, 36)
    frames: list[str] = []
    app = CtxchatApp(DemoServices(desk.session), Settings(theme="dark"), load_themes().themes)
    async with app.run_test(size=size) as pilot:
        for caption, keys in SCENES:
            await pilot.press(*keys)
            await pilot.pause(2)  # what a key started may wait for the person, so its end is not waited for
            frames.append(portable(app.export_screenshot(title=caption)))
    whole = len(frames) * SCENE_SECONDS
    shown = 100 / len(frames)
    style = (
        f"@keyframes scene {{ 0% {{ visibility: visible }} {shown:.3f}%, 100% {{ visibility: hidden }} }}"
        f".scene {{ visibility: hidden; animation: scene {whole}s step-end infinite }}"
        + "".join(f".s{n} {{ animation-delay: {n * SCENE_SECONDS}s }}" for n in range(len(frames)))
        + "@media (prefers-reduced-motion) { .scene { animation: none } .s2 { visibility: visible } }"
    )
    box = re.search(r'viewBox="([0-9. ]+)"', frames[0])
    if box is None:
        raise SystemExit("the drawing has no size")
    scenes = "".join(f'<g class="scene s{n}">{frame}</g>' for n, frame in enumerate(frames))
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box[1]}"><style>{style}</style>{scenes}</svg>'


def png(svg: str) -> bytes:
    """The picture as PNG."""
    import cairosvg  # in the group `pictures`: who draws SVG alone needs neither it nor libcairo

    # cairosvg takes the first font that is there, whatever it lacks, and rounds letters to whole pixels: 20 a cell fit exactly.
    plain = svg.replace(FONTS, "'DejaVu Sans Mono'").replace("font-size: 20px", f"font-size: {CELL / 0.60205:g}px")
    return cast(bytes, cairosvg.svg2png(bytestring=plain.encode(), scale=20 / CELL))


async def look(folder: Path, names: list[str]) -> None:
    """Every screen, or those that are named, in three sizes, dark and light."""
    for name in names or PICTURES:
        for size in ((120, 36), (80, 24), (40, 20)):
            for theme in ("dark", "light"):
                target = folder / f"{name}-{size[0]}-{theme}.png"
                target.write_bytes(png(await drawn(PICTURES[name], size, theme)))


async def main(wanted: list[str], with_png: bool) -> None:
    others = {"themes": all_themes, "tour": moving}
    there = [name for name, picture in PICTURES.items() if picture.size]
    FOLDER.mkdir(exist_ok=True)
    for name in wanted or [*there, *others]:
        if name not in others and name not in there:
            raise SystemExit(f"There is no picture {name}. There are: {', '.join([*there, *others])}.")
        svg = await (others[name]() if name in others else drawn(PICTURES[name]))
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
        if with_png:
            (FOLDER / f"{name}.png").write_bytes(png(svg))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--look"]:
        Path(arguments[1]).mkdir(parents=True, exist_ok=True)
        asyncio.run(look(Path(arguments[1]), arguments[2:]))
    else:
        asyncio.run(main([name for name in arguments if name != "--png"], "--png" in arguments))
