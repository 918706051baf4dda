"""Draws the pictures of the documentation: the real interface over a fixed conversation, in `docs/pictures/`.

Run it from a checkout: `uv run python docs/make_pictures.py [NAME ...]`; with `uv run --group pictures` and `--png` also as PNG.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import cast

os.environ["TZ"] = "UTC"

from demo_session import DemoServices, demo_session, moment
from textual.pilot import Pilot

from ctxchat.agent.session import Session
from ctxchat.config.files import load
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.events import ApprovalRequested
from ctxchat.core.figures import Counting, measure
from ctxchat.core.view import View
from ctxchat.models.discovery import FoundModel, Offer
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.screens.agents import AgentsScreen
from ctxchat.tui.screens.archive import ArchiveScreen
from ctxchat.tui.screens.flight import FlightScreen
from ctxchat.tui.screens.keys import KeysScreen
from ctxchat.tui.screens.models import ModelsScreen
from ctxchat.tui.screens.preview import PreviewScreen
from ctxchat.tui.screens.search import SearchScreen
from ctxchat.tui.screens.sessions import SessionsScreen
from ctxchat.tui.screens.settings import SettingsScreen
from ctxchat.tui.screens.undoing import UndoScreen
from ctxchat.tui.screens.xray import XrayScreen
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.first_choice import FirstChoice
from ctxchat.tui.widgets.header import HeaderState

FOLDER = Path(__file__).parent / "pictures"
FONTS = "'Fira Code', 'DejaVu Sans Mono', monospace"
CELL = 12.2
"""Width of a cell in the SVG, in its own units."""

Steps = Callable[[Pilot[int], Session], Awaitable[None]]


async def chat(pilot: Pilot[int], session: Session) -> None:
    """The chat as it opens; where it is wide, with the context panel beside it."""


async def hero(pilot: Pilot[int], session: Session) -> None:
    """A chat a little after a compaction, with the next message half written."""
    prompt = pilot.app.query_one(Composer).prompt
    prompt.insert("And how often did it fail since the first of November?")


async def approval(pilot: Pilot[int], session: Session) -> None:
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
    await pilot.press("tab")


async def preview(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(PreviewScreen(session, await session.compaction.preview()))


async def archive(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(ArchiveScreen(session, DemoServices(session)))


async def messages(pilot: Pilot[int], session: Session) -> None:
    await archive(pilot, session)
    await pilot.pause()
    await pilot.press("3", "enter", "down")


async def diff(pilot: Pilot[int], session: Session) -> None:
    await archive(pilot, session)
    await pilot.pause()
    await pilot.press("4")


async def undo(pilot: Pilot[int], session: Session) -> None:
    """The question before an undo that would fill the window too far."""
    pilot.app.push_screen(UndoScreen(await session.changes.undoing()))


async def undone(pilot: Pilot[int], session: Session) -> None:
    """What is left in the archive of a pass that was undone."""
    await session.changes.undo()
    await archive(pilot, session)


async def xray(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(XrayScreen(session))


async def sessions(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(SessionsScreen(DemoServices(session), session, datetime.fromisoformat(moment(330))))


async def search(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(SearchScreen(DemoServices(session), session, "serial hub busy"))
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause(0.5)
    await pilot.press("down")


async def flight(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(FlightScreen(session, DemoServices(session)))


async def models(pilot: Pilot[int], session: Session) -> None:
    pilot.app.push_screen(ModelsScreen(DemoServices(session), session))


async def first_start(pilot: Pilot[int], session: Session) -> None:
    found = (
        FoundModel("ollama_chat/qwen3:8b", "Ollama", True, 40_960, "loaded", 0.0, 0.0, "running at 127.0.0.1:11434"),
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
    budget = make_budget(Window(32_768, "loaded"), 4096, 0.75, 0.5)
    empty = measure(View((), (), (), 0, "", 0), budget, Counting("offline/assistant"))
    chat.transcript.show([], {})
    chat.header.show(HeaderState(model=empty.model, mode="ask"))
    chat.gauge.show(empty)
    await chat.questions.choose_model(FirstChoice([Offer(model, 2 - place) for place, model in enumerate(found)]))
    await pilot.press("tab")


async def settings(pilot: Pilot[int], session: Session) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        file.write_text("[context]\nkeep_recent = 8\n")
        read = partial(load, config=file, environ={}, known=lambda _: ())
        pilot.app.push_screen(SettingsScreen(read, Path("config.toml"), session))
        await pilot.pause()
        await pilot.press(*["down"] * 7)


async def keys(pilot: Pilot[int], session: Session) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        file.write_text('[keys]\nsearch = ["ctrl+r"]\n')
        read = partial(load, config=file, environ={}, known=lambda _: ())
        pilot.app.push_screen(KeysScreen(read, Path("config.toml"), "keys"))
        await pilot.pause()


async def agents(pilot: Pilot[int], session: Session) -> None:
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


PICTURES: dict[str, tuple[tuple[int, int], Steps]] = {
    "hero": ((120, 34), hero),
    "chat-narrow": ((40, 20), chat),
    "approval": ((100, 20), approval),
    "first-start": ((100, 20), first_start),
    "context": ((120, 34), chat),
    "preview": ((112, 20), preview),
    "archive": ((120, 30), archive),
    "messages": ((120, 30), messages),
    "diff": ((120, 30), diff),
    "undo": ((112, 12), undo),
    "undone": ((80, 24), undone),
    "xray": ((112, 30), xray),
    "sessions": ((112, 20), sessions),
    "search": ((112, 30), search),
    "flight": ((112, 26), flight),
    "models": ((112, 14), models),
    "settings": ((120, 34), settings),
    "keys": ((112, 30), keys),
    "agents": ((100, 12), agents),
}


async def drawn(size: tuple[int, int], steps: Steps, theme: str = "dark", title: str = " ") -> str:
    """One picture as SVG."""
    session = await (demo_session(64_000, 36) if steps is hero else demo_session())
    themes = load_themes().themes
    app = CtxchatApp(DemoServices(session), Settings(theme=theme), themes)
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        await steps(pilot, session)
        await pilot.pause()
        await app.screen.workers.wait_for_complete()
        await pilot.pause(0.2)
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
        drawings.append(await drawn(size, chat, name, name))
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
    ("u: and takes it back, exactly", ("u",)),
    ("Everything is as it was", ("escape",)),
)
"""What the moving picture shows one after another: a caption, and the keys that lead there from the scene before."""

SCENE_SECONDS = 4


async def moving(size: tuple[int, int] = (112, 30)) -> str:
    """One run of the real interface as an SVG that moves by itself; still where people asked for less motion."""
    session = await demo_session(64_000, 36)
    frames: list[str] = []
    app = CtxchatApp(DemoServices(session), Settings(theme="dark"), load_themes().themes)
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


def keep(name: str, svg: str, png: bool) -> None:
    """Write one picture."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
    if not png:
        return
    import cairosvg  # in the group `pictures`: who draws SVG alone needs neither it nor libcairo

    # cairosvg takes the first font that is there, whatever it lacks, and rounds letters to whole pixels: 20 a cell fit exactly.
    plain = svg.replace(FONTS, "'DejaVu Sans Mono'").replace("font-size: 20px", f"font-size: {CELL / 0.60205:g}px")
    drawing = cairosvg.svg2png(bytestring=plain.encode(), scale=20 / CELL)
    (FOLDER / f"{name}.png").write_bytes(drawing)


async def main(wanted: list[str], png: bool) -> None:
    others = {"themes": all_themes, "tour": moving}
    for name in wanted or [*PICTURES, *others]:
        if name not in others and name not in PICTURES:
            raise SystemExit(f"There is no picture {name}. There are: {', '.join([*PICTURES, *others])}.")
        keep(name, await (others[name]() if name in others else drawn(*PICTURES[name])), png)


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--png"]
    asyncio.run(main(names, "--png" in sys.argv))
