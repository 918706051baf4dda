"""The application: owns the session and the work under way, starts commands, and hands events to the chat screen.

What commands do is in `actions`, what is on screen in `screens`. Started by the composition root with everything it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import App
from textual.screen import Screen
from textual.worker import Worker, WorkerError, WorkerState

from ctxchat.config.files import Loaded, load
from ctxchat.config.paths import config_dir, user_file
from ctxchat.config.schema import Settings
from ctxchat.config.theme import Theme
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Stamped
from ctxchat.tui import commands
from ctxchat.tui.input_history import InputHistory
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.text import clean, one_line
from ctxchat.tui.theming import DEFAULTS, textual_theme
from ctxchat.tui.widgets.blocks import CompactionMark
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.gauge import Gauge

if TYPE_CHECKING:
    from textual.widgets import Markdown

PATIENCE = 5.0
"""Seconds that work under way is given to end when the app is left."""

LONG_WORK = 10.0
"""Seconds from which the end of a turn is announced to a person who is elsewhere."""


class CtxchatApp(App[int]):
    """Thin: session, worker, commands."""

    TITLE = "ctxchat"
    CSS_PATH = [Path(__file__).with_name(name) for name in ("ctxchat.tcss", "panels.tcss")]
    COMMANDS = {commands.CommandSource}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    PAUSE_GC_ON_SCROLL = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (9, "-short"), (18, "-tall")]

    def __init__(
        self,
        services: Services,
        settings: Settings,
        themes: Mapping[str, Theme],
        *,
        session_id: str = "",
        keys: commands.Keys | None = None,
        history_file: Path | None = None,
        notices: Sequence[str] = (),
        load_settings: Callable[[], Loaded] | None = None,
        settings_file: Path | None = None,
    ) -> None:
        super().__init__()
        self.services, self.settings = services, settings
        self.keys: commands.Keys = keys if keys is not None else commands.default_keys()
        self.session: ChatSession | None = None
        self.load_settings = load_settings or partial(load, services.workspace)
        self.settings_file = settings_file or user_file(config_dir())
        self._session_id = session_id
        self._notices = tuple(notices)
        self._queue: list[str] = []
        self._work: Worker[None] | None = None
        self._opened = ""
        self.chat = ChatScreen(
            services.workspace.name,
            self.keys,
            InputHistory(history_file),
            sandboxed=services.sandboxed,
            show_reasoning=settings.interface.show_reasoning,
        )
        for theme in themes.values():
            self.register_theme(textual_theme(theme))
        if settings.theme in themes:  # before anything is painted: setting it later parses all style sheets once more
            self.set_reactive(App.theme, settings.theme)
            self.stylesheet.set_variables(self.get_css_variables())
        self._plain = self._bindings.copy()
        self._bind()

    def _bind(self) -> None:
        self._bindings = self._plain.copy()
        for binding in commands.bindings(self.keys):
            for key in binding.key.split(","):
                self._bindings.bind(key, binding.action, binding.description, show=False, priority=True)
        for key in self.keys.get("interrupt", ()):
            self._bindings.bind(key, "esc", show=False)

    # ── start and end ──

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DEFAULTS)

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def apply_settings(self, loaded: Loaded) -> None:
        """Edited settings, without a new start: theme and keys (those of the composer wait for the next start)."""
        self.settings, self.keys = loaded.settings, loaded.keys.keys
        self._bind()
        self._wear(loaded.settings.theme)
        for text in loaded.notices:
            self.chat.notice("warning", text)

    def _wear(self, theme: str) -> None:
        if theme in self.available_themes:
            self.theme = theme
        elif theme:
            self.chat.announce(f"There is no theme {one_line(theme, 40)}. /theme shows those there are.")

    def on_mount(self) -> None:
        self.call_after_refresh(self._wear, self.settings.theme)
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        self.run_worker(self._open_first(), group="start", exit_on_error=False)
        self.run_worker(self._list_files, group="files", thread=True, exit_on_error=False)

    async def _open_first(self) -> None:
        """After the first paint: the session first, then what is slow."""
        for text in (*self._notices, *self.services.notices):
            self.chat.announce(text)
        try:
            await self.switch_session(self._session_id)
        except CtxchatError as problem:
            self.chat.announce(str(problem))
            if self._session_id:
                await self.switch_session("")
        await self.services.warm_up()
        if self.session:
            self.chat.show_figures(await self.session.measure())
            self.chat.show_header()

    def _list_files(self) -> None:
        from ctxchat.tui.workspace_files import examples, files_of

        files = files_of(self.services.workspace)
        self.call_from_thread(self._take_files, files, examples(files))

    def _take_files(self, files: tuple[str, ...], questions: list[str]) -> None:
        self.chat.composer.prompt.files = files
        self.chat.empty.offer(questions)

    async def action_quit(self) -> None:
        self.run_command(commands.BY_NAME["quit"])

    async def leave(self) -> None:
        """Stop what runs, give the session free, go."""
        self._queue.clear()
        self.interrupt()
        if self._work and self._busy:
            with suppress(WorkerError, TimeoutError):  # it was cancelled, or failed: either way it is over
                await asyncio.wait_for(self._work.wait(), PATIENCE)
        if self.session:
            await self.session.close()
        await self.services.close()
        self.exit(0)

    # ── the session ──

    def open_session(self) -> ChatSession:
        """The session on screen. Raises CtxchatError before there is one."""
        if self.session is None:
            raise CtxchatError("The session is still being opened.", "Try again in a moment.")
        return self.session

    def idle_session(self) -> ChatSession:
        """The session, for what cannot be done beside a turn."""
        if self._busy:
            raise CtxchatError("This has to wait for the end of the turn.", "Esc stops it.")
        return self.open_session()

    async def switch_session(self, session_id: str) -> None:
        """Open another session (a new one without an id). The draft stays; the one before stays open when this fails."""
        if self._busy:
            raise CtxchatError("A turn is under way in this session.", "Esc stops it; then open the other one.")
        session = await self.services.open(session_id)
        before, self.session = self.session, session
        await self.chat.show_session(session)
        if before is not None:
            await before.close()
        self._next()

    # ── messages and work ──

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Enter in the composer: a command, or a message for now or for later."""
        event.stop()
        said = commands.parse(event.text)
        if isinstance(said, commands.Unknown):
            near = f" Did you mean /{said.nearest}?" if said.nearest else " /help lists them."
            self.chat.notice("warning", f"There is no command /{one_line(said.name, 40)}.{near}")
            return
        if self.session and self.session.read_only and said is None:
            self.chat.notice("warning", f"{self.session.read_only} Nothing was sent; your message is still here.")
            return
        self.chat.composer.sent()
        if said is None:
            self._queue.append(event.text)
            self._next()
        else:
            self.run_command(said.command, said.argument)

    def on_composer_unqueued(self, event: Composer.Unqueued) -> None:
        event.stop()
        if event.place < len(self._queue):
            del self._queue[event.place]
        self.chat.show_queue(self._queue)

    @property
    def _busy(self) -> bool:
        return self._work is not None and not self._work.is_finished

    def _next(self) -> None:
        """The next queued message, when nothing runs."""
        if not self.chat.is_running or not self.chat.is_attached:
            return  # on the way out
        if self._queue and self.session and not self._busy:
            self._work = self._run(self.session.send(self._queue.pop(0)), "waiting for the model")
        self.chat.show_queue(self._queue)

    def run_pass(self, events: AsyncGenerator[Stamped, None]) -> None:
        """Run a compaction a person asked for."""
        if not self._busy:
            self._work = self._run(events, "making room: what is here stays as it is until that is done")

    @work(group="turn", exclusive=True, exit_on_error=False)
    async def _run(self, events: AsyncGenerator[Stamped, None], what: str) -> None:
        self.add_class("-busy")
        interrupted = True
        began = self._loop_time()
        try:
            await self.chat.begin(what)
            async with aclosing(events):
                async for stamped in events:
                    await self.chat.take(stamped)
            interrupted = False
        except CtxchatError as problem:
            interrupted = False
            await self.chat.failed(problem.text, problem.hint)
        finally:
            self.remove_class("-busy")
            await self.chat.end(interrupted)
            self._announce(self._loop_time() - began)

    def _loop_time(self) -> float:
        return self._loop.time() if self._loop else 0.0

    def _announce(self, seconds: float) -> None:
        if seconds >= LONG_WORK and not self.app_focus and self.settings.interface.bell:
            self.bell()

    async def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Work that ended: what failed is said, what waits goes out."""
        if not self.is_running:
            return
        if event.state is WorkerState.ERROR and (error := event.worker.error):
            if isinstance(error, CtxchatError):
                await self.chat.failed(error.text, error.hint)
            else:
                words = f"{type(error).__name__}: {one_line(str(error), 300)}"
                await self.chat.failed(words, "This is a fault in ctxchat. The session is kept; you can go on.")
        if event.worker is self._work and event.worker.is_finished:
            self.call_next(self._next)

    def interrupt(self) -> None:
        """Stop the turn or the pass; what exists is kept."""
        if self._work and not self._work.is_finished:
            self._work.cancel()

    # ── actions ──

    def run_command(self, command: commands.Command, argument: str = "") -> None:
        """Start a command in a worker of its own."""
        self._opened = command.name if command.screen else ""
        self.run_worker(command.run(self, argument), group="command", exit_on_error=False, name=command.name)

    def action_command(self, name: str) -> None:
        """A key or the palette. On a screen over the chat the key of that screen closes it; another one takes its place."""
        command = commands.BY_NAME[name]
        top = self.screen
        if top is not self.chat:
            top.dismiss(None)
            if self._opened == name:
                self._opened = ""
                return
        self.run_command(command)

    def action_esc(self) -> None:
        """Close the panel on top, else stop the work."""
        if not self.chat.close_panel():
            self.interrupt()

    def notify(self, message: str, *, title: str = "", markup: bool = False, **more: Any) -> None:
        """As Textual's, but text is text."""
        super().notify(clean(message), title=clean(title), markup=markup, **more)

    def editor_command(self) -> str:
        """The editor of the settings; empty for the environment's."""
        return self.settings.interface.editor

    # ── what is clicked ──

    def on_breakdown_free_up_pressed(self) -> None:
        self.run_command(commands.BY_NAME["free"])

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        """The messages of that part."""
        if self.screen is self.chat:
            self.run_command(commands.BY_NAME["xray"], event.name)

    def on_compaction_mark_chosen(self, event: CompactionMark.Chosen) -> None:
        """View, undo, or branch from a compaction."""
        event.stop()
        if event.what == "view":
            self.run_command(commands.BY_NAME["archive"], event.change.id)
        elif event.what == "undo":
            self.run_command(commands.BY_NAME["undo"], event.change.id)
        else:
            self.run_command(commands.BY_NAME["branch"])

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Only web addresses are opened."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.open_url(event.href)
        else:
            self.notify(f"Not opened: {one_line(event.href, 80)}", markup=False)
