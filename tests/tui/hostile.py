"""A session, its doors and its settings in which every name and text wants to be more than text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from textual.geometry import Offset
from textual.screen import Screen
from textual.theme import Theme

from ctxchat.agent.compaction.preview import Preview
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.config.effective import Loaded, load_settings
from ctxchat.config.keys import ACTIONS
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.errors import CtxchatError
from ctxchat.core.file_changes import Checkpoint, FileChange, FileState, Mine, Restoring
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.jobs import JobRow
from ctxchat.core.journal import AgentChosen, Named, Partial, Sealed, SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.memos import Memo
from ctxchat.core.messages import Group, Message, Reasoning, ToolCall
from ctxchat.core.permissions import Rule
from ctxchat.core.search import Hit, Scope
from ctxchat.core.secrets import Masking
from ctxchat.models.discovery import FoundModel
from ctxchat.storage.archive import LastSaid
from ctxchat.storage.loading import JournalNews
from ctxchat.storage.sessions import SessionRow
from ctxchat.tools.mcp.host import ShowLogin
from ctxchat.tools.mcp.server import ServerRow
from ctxchat.tui.chat.banner import ShownNotice
from ctxchat.tui.commands import default_keys
from ctxchat.tui.panels.agents import AgentsScreen
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.aside import AsideScreen
from ctxchat.tui.panels.file_changes import DiffScreen, MineScreen, RewindScreen
from ctxchat.tui.panels.flight import FlightScreen
from ctxchat.tui.panels.handoff import HandoffScreen
from ctxchat.tui.panels.help import HelpScreen
from ctxchat.tui.panels.jobs import JobsScreen, Leaving
from ctxchat.tui.panels.jump import JumpScreen, Target
from ctxchat.tui.panels.keys import AskKey, KeysScreen
from ctxchat.tui.panels.memos import MemoEditor, MemosScreen
from ctxchat.tui.panels.models import ModelsScreen
from ctxchat.tui.panels.notices import NoticesScreen
from ctxchat.tui.panels.panel import AskText, Confirm
from ctxchat.tui.panels.permissions import PermissionsScreen, RuleScreen
from ctxchat.tui.panels.preview import PreviewScreen
from ctxchat.tui.panels.reader import ReaderScreen, TextScreen, whole_messages
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.secrets import OriginalScreen, SecretsScreen
from ctxchat.tui.panels.servers import ServersScreen
from ctxchat.tui.panels.sessions import SessionsScreen
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.panels.sub_agent import SubAgentScreen
from ctxchat.tui.panels.summary import SummaryScreen
from ctxchat.tui.panels.themes import ThemesScreen
from ctxchat.tui.panels.trust import TrustScreen
from ctxchat.tui.panels.undoing import UndoScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.style.themed_app import textual_theme
from tests.tui.chatting import HOSTILE
from tests.tui.fakes import FakeServices
from tests.tui.harbour import ROW, HarbourSession, at, digest, recorded

SIGHT = "[/tmp/x]"
"""What is to be seen of it wherever it is shown."""
NASTY = f"gone\r{SIGHT} {HOSTILE}\u200b\u2066\u202e\ud800\x00\x1b"
LONG = NASTY + "x" * 1_000_000
WHOLE = NASTY.replace("\ud800", "")
"""In what a session holds there are no halves of characters: they are left out where it comes in."""


def encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def groups(text: str) -> tuple[Group, ...]:
    """Six turns with a call each."""
    text = text.replace("\ud800", "")
    made: list[Message] = []
    for turn in range(6):
        seq, call = 5 * turn + 1, ToolCall(f"c{turn}", WHOLE, encoded({"path": WHOLE}))
        memo = ToolCall(f"memo{turn}", "memo", encoded({"name": WHOLE, "text": text}))
        made += [
            Message(seq, "user", text, at=at(turn)),
            Message(seq + 1, "assistant", text, calls=(call, memo), reasoning=Reasoning(text), at=at(turn)),
            Message(seq + 2, "tool", text + "word " * 900, call_id=call.id, name=call.name, at=at(turn)),
            Message(seq + 3, "tool", "Kept.", call_id=memo.id, name=memo.name, at=at(turn)),
            Message(seq + 4, "assistant", text, at=at(turn)),
        ]
    return group_messages(made)


def checkpoints() -> tuple[Checkpoint, ...]:
    before, after = FileState("file", 0o644, "a", 3), FileState("file", 0o644, "b", 5)
    changes = (FileChange(NASTY, before, after, 3, 2), FileChange(f"new {NASTY}", None, before, 3))
    return (Checkpoint("f1", 2, changes, "c1", seq=6, at=at(2)),)


def state(text: str) -> SessionState:
    """Its session, with a compaction and one that failed."""
    ledger = Ledger(groups=groups(text))
    text = text.replace("\ud800", "")
    words: dict[str, Any] = {"evidence": text, "model": WHOLE, "strategy": WHOLE, "detail": text, "lost": (text, WHOLE)}
    change = digest(ledger, "k1", [g.id for g in ledger.groups[:6]], text, minute=30, **words)
    failed = msgspec.structs.replace(recorded(change), id="k2", outcome="failed", detail=text)
    return SessionState(
        ledger=ledger.apply(change),
        title=text,
        model=NASTY,
        fills=(4_000, 9_000, 12_000),
        compactions=(recorded(change), failed),
        checkpoints=checkpoints(),
    )


class Files:
    """Of the session: every difference is one line after another of it."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def diff(self, change: FileChange) -> str:
        return f"--- {NASTY}\n+++ {NASTY}\n@@ {NASTY}\n-{self._text}\n+{self._text}\n"


class HostileJobs:
    """Commands in the background that a hostile model began."""

    def __init__(self, text: str) -> None:
        self.rows = [
            JobRow("j1", text, NASTY, True, 3.0, 12, f"/{NASTY}"),
            JobRow(NASTY, text, NASTY, False, 3.0, 1 << 40, text),
        ]

    def keep(self, id: str, *, going_on: bool) -> None:
        pass

    async def stop(self, id: str) -> None:
        raise CtxchatError(NASTY, NASTY)


class HostileAsides:
    """What a hostile model answers beside the conversation."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def ask(self, question: str, earlier: Sequence[object] = ()) -> AsyncGenerator[str, None]:
        yield self.text
        raise CtxchatError(NASTY, NASTY)


class HostileDesk(HarbourSession):
    """The session."""

    def __init__(self, text: str) -> None:
        whole = text.replace("\ud800", "")
        tool = ToolSpec(WHOLE, whole, {"type": "object", "properties": {WHOLE: {"type": "string"}}})
        insert = (ContextBlock(WHOLE, whole),)
        super().__init__(
            state(text), window=40_000, frame=Head(system=whole, tools=(tool,), memory=insert, context=insert)
        )
        self.text, self.notices, self.agent = text, (text,), NASTY
        self.files = Files(text)  # type: ignore[assignment]
        self.background = HostileJobs(text)  # type: ignore[assignment]
        self.asides = HostileAsides(text)

    async def preview(self, instructions: str = "", keep_recent: int | None = None) -> Preview:
        made = await super().preview(instructions, keep_recent)
        steps = tuple(msgspec.structs.replace(s, label=NASTY) for s in made.steps)
        return msgspec.structs.replace(made, steps=steps, model=NASTY, instructions=self.text[:2_000])


class HostileDoors(FakeServices):
    """What stands beside the session."""

    def __init__(self, workspace: Path, text: str) -> None:
        row: SessionRow = msgspec.structs.replace(ROW, title=text, model=NASTY, folder=f"/tmp/{NASTY}")
        models = (
            FoundModel(NASTY, NASTY, True, 200_000, "catalogue", 3, 15, text, NASTY),
            FoundModel(f"a/{NASTY}", NASTY, False, 0, "assumed", note=text),
        )
        super().__init__(workspace, rows=[row, msgspec.structs.replace(row, id="s2", parent="s1")], models=models)
        self.text, self.notices = text, (text,)
        self.rows_of_servers = (
            ServerRow(NASTY, "failed", (), text, NASTY),
            ServerRow(NASTY, "ready", (NASTY,), "", text, (text,)),
        )

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        return [LastSaid("user", self.text, at(0)), LastSaid("assistant", self.text, at(1))]

    async def journal_news(self, session_id: str, since: int = 0) -> JournalNews:
        whole = self.text.replace("\ud800", "")
        call = ToolCall("c1", whole, whole)
        asked = Group("g1", "user", (Message(1, "user", whole),), 1)
        said = Message(2, "assistant", whole, calls=(call,))
        records = () if since else (Sealed((asked,)), Named(whole), AgentChosen(whole))
        return JournalNews(records, 3, Partial(said, (Message(3, "tool", whole, call_id="c1"),), 1))

    async def mcp_servers(self) -> Sequence[ServerRow]:
        return self.rows_of_servers

    async def switch_server(self, name: str) -> ServerRow:
        raise CtxchatError(self.text, self.text)

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        show(self.text, lambda _: None)
        raise CtxchatError(self.text, self.text)

    async def indexed(self) -> float:
        return 0.5

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        hit = Hit("s1", "m1", "tool", self.text, 9, "k1", 1, at(1), "g1", self.text, NASTY, self.text)
        return [hit, msgspec.structs.replace(hit, session="s2", role="user", compaction="")]

    async def group(self, session_id: str, message_id: str) -> Group:
        return groups(self.text)[0]


def settings_of(folder: Path) -> Callable[[], Loaded]:
    """A person's settings with such names and values; TOML cannot hold half a character."""
    value = NASTY.replace("\ud800", "").encode("unicode_escape").decode().replace("\\x", "\\u00")
    value = value.replace('"', "")
    file = folder / "config.toml"
    file.write_text(
        f'theme = "{value}"\nunknown = "{value}"\n"{value}" = 1\n[context]\nkeep_recent = "{value}"\n'
        f'[mcp."{value}"]\ncommand = "{value}"\n[agents."{value}"]\ndescription = "{value}"\nmodel = "{value}"\n'
        f'[[hooks]]\nevent = "error"\naction = "notify"\nname = "{value}"\ntext = "{value}"\n'
        f'[keys]\nhelp = "{value}"\n[tools]\nshell_environment = ["{value}"]\n'
    )
    return partial(load_settings, config=file, environ={}, known=lambda _: ())


async def pieces(text: str) -> AsyncGenerator[str, None]:
    yield text
    raise CtxchatError(text, text)


class Hostile:
    """All of it, around one text."""

    def __init__(self, folder: Path, text: str) -> None:
        self.text, self.folder = text, folder
        self.desk, self.doors = HostileDesk(text), HostileDoors(folder, text)
        self.load = settings_of(folder)
        self.file = folder / "config.toml"
        agent = AgentSettings(description=text, model=NASTY, prompt=text, tools=(NASTY,), context={"strategy": NASTY})
        self.settings = Settings(agents={NASTY: agent})

    def theme(self) -> Theme:
        """One that is called so."""
        return textual_theme(msgspec.structs.replace(load_themes().named("dark"), name=NASTY))

    def approvals(self) -> Approvals:
        """With rules about such tools, commands and folders."""
        rule = Rule(NASTY, self.text, str(self.folder))
        return Approvals(rules=[rule, Rule("shell", self.text, denies=True)], folder=str(self.folder))

    def restoring(self) -> Restoring:
        now = FileState("file", 0o644, "c", 3)
        return Restoring(("f1",), 1, 2, checkpoints()[0].changes, (Mine(NASTY, now), Mine(NASTY, None)), (NASTY,))


async def _undo(of: Hostile) -> Screen[Any]:
    return UndoScreen(await of.desk.preview_undo("k1"), of.desk.state)


async def _preview(of: Hostile) -> Screen[Any]:
    return PreviewScreen(of.desk, await of.desk.preview())


async def _summary(of: Hostile) -> Screen[Any]:
    return SummaryScreen(pieces(of.text), await of.desk.preview())


async def _setting(of: Hostile) -> Screen[Any]:
    from ctxchat.config.explain import rows
    from ctxchat.tui.panels.settings import ChangeScreen

    row = msgspec.structs.replace(next(r for r in rows(of.load()) if r.key == "model"), value=of.text)
    return ChangeScreen(row, lambda _: of.text, lambda value: of.text if "no" in str(value) else "")


def _at_once(make: Callable[[Hostile], Screen[Any]]) -> Callable[[Hostile], Any]:
    async def made(of: Hostile) -> Screen[Any]:
        return make(of)

    return made


SCREENS: Mapping[str, tuple[Callable[[Hostile], Any], Sequence[str]]] = {
    "agents": (_at_once(lambda of: AgentsScreen(of.settings, NASTY)), ["down"]),
    "archive": (_at_once(lambda of: ArchiveScreen(of.desk, of.doors)), ["down", "2", "3", "enter", "down", "4", "5"]),
    "aside": (_at_once(lambda of: AsideScreen(of.desk, of.text)), ["down"]),
    "change a setting": (_setting, ["n", "o"]),
    "confirm": (_at_once(lambda of: Confirm(of.text)), []),
    "confirm, now or later": (_at_once(lambda of: Confirm(of.text, may_wait=True)), []),
    "ask for text": (_at_once(lambda of: AskText("New title", of.text)), ["end"]),
    "diff": (_at_once(lambda of: DiffScreen(of.desk)), ["t", "down", "enter"]),
    "files of mine": (_at_once(lambda of: MineScreen(of.restoring())), []),
    "flight": (_at_once(lambda of: FlightScreen(of.desk, of.doors)), ["down"]),
    "hand off": (
        _at_once(lambda of: HandoffScreen(cast("Any", SimpleNamespace(writer=NASTY)), of.text, of.text)),
        [],
    ),
    "help": (_at_once(lambda of: HelpScreen(default_keys())), []),
    "jump": (_at_once(lambda of: JumpScreen([Target(Offset(1, 1), of.text), Target(Offset(3, 2), NASTY)])), []),
    "keys": (_at_once(lambda of: KeysScreen(of.load(), of.load, of.file)), ["slash", "h", "e", "l", "p"]),
    "ask for a key": (_at_once(lambda of: AskKey(ACTIONS[0])), ["a"]),
    "models": (_at_once(lambda of: ModelsScreen(of.doors, of.desk, of.file, NASTY)), ["down", "enter"]),
    "notices": (_at_once(lambda of: NoticesScreen([ShownNotice(of.text), ShownNotice(NASTY, "error")])), []),
    "jobs": (_at_once(lambda of: JobsScreen(of.desk)), ["down"]),
    "leaving": (_at_once(lambda of: Leaving(HostileJobs(of.text).rows)), []),
    "memos": (_at_once(lambda of: MemosScreen(of.desk)), ["down"]),
    "a memo": (_at_once(lambda of: MemoEditor(Memo(NASTY, of.text, "m2", "g2"))), []),
    "free up": (_preview, ["down"]),
    "permissions": (_at_once(lambda of: PermissionsScreen(of.approvals(), of.load(), of.folder)), ["down"]),
    "a rule": (_at_once(lambda of: RuleScreen(of.text, NASTY)), ["end", "x"]),
    "reader": (_at_once(lambda of: ReaderScreen(of.desk.state.ledger.groups[1].messages[1])), ["down"]),
    "what goes": (
        _at_once(lambda of: TextScreen(whole_messages(of.desk.state.ledger.groups[1].messages), NASTY, NASTY)),
        ["down"],
    ),
    "rewind": (_at_once(lambda of: RewindScreen(of.desk)), ["up"]),
    "search": (_at_once(lambda of: SearchScreen(of.doors, of.desk, "x")), ["enter", "down"]),
    "secrets": (_at_once(lambda of: SecretsScreen(of.load(), of.load, of.file, of.desk, Masking(b"k" * 32))), ["down"]),
    "a secret": (_at_once(lambda of: OriginalScreen(NASTY, of.text)), []),
    "servers": (_at_once(lambda of: ServersScreen(of.doors, of.desk, lambda: None)), ["down", "space"]),
    "sessions": (_at_once(lambda of: SessionsScreen(of.doors, of.desk)), ["down"]),
    "settings": (_at_once(lambda of: SettingsScreen(of.load(), of.load, of.file, of.desk)), ["c", "down"]),
    "sub-agent": (_at_once(lambda of: SubAgentScreen(of.doors, "s2")), ["pageup"]),
    "summary": (_summary, []),
    "themes": (_at_once(lambda of: ThemesScreen([NASTY, "dark"], of.desk.context_usage)), ["down"]),
    "trust": (_at_once(lambda of: TrustScreen(Path("/tmp") / NASTY, [of.text], [NASTY])), []),
    "undo": (_undo, []),
    "x-ray": (_at_once(lambda of: XrayScreen(of.desk)), ["down", "p"]),
}
"""Every screen there is over the chat, and what is pressed there."""
OURS_ONLY = {"help", "jump", "secrets", "ask for a key", "undo", "keys"}
"""Screens that show no foreign text at all."""
