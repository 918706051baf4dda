"""The application: keys, themes, settings, which screen is on top, and what a click or a command starts.

What commands do is in `actions`, what runs in `work`, what is on screen in `screens`. Started by the composition root with
everything it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import App
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from ctxchat.config.files import Loaded, load
from ctxchat.config.paths import config_dir, user_file
from ctxchat.config.schema import Settings
from ctxchat.config.theme import Theme
from ctxchat.core.errors import CtxchatError
from ctxchat.tui import commands
from ctxchat.tui.actions import ACTIONS, reinsert
from ctxchat.tui.input_history import InputHistory
from ctxchat.tui.palette import CommandSource, bindings
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.screens.panel import Panel
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.text import clean, one_line
from ctxchat.tui.theming import DEFAULTS, textual_theme
from ctxchat.tui.widgets.banner import BranchOffer
from ctxchat.tui.widgets.blocks import CompactionMark
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.suggestion import SuggestionPanel
from ctxchat.tui.work import Work

if TYPE_CHECKING:
    from textual.widgets import Markdown

Result = TypeVar("Result")


class CtxchatApp(App[int]):
    """Thin: keys, themes, screens, clicks. Fulfils `host.Host`."""

    TITLE = "ctxchat"
    CSS_PATH = [Path(__file__).with_name(name) for name in ("ctxchat.tcss", "panels.tcss")]
    COMMANDS = {CommandSource}
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
        self.load_settings = load_settings or partial(load, services.workspace)
        self.settings_file = settings_file or user_file(config_dir())
        self._session_id = session_id
        self._notices = tuple(notices)
        self._opened = ""
        self.chat = ChatScreen(
            services.workspace.name,
            self.keys,
            InputHistory(history_file),
            sandboxed=services.sandboxed,
            show_reasoning=settings.interface.show_reasoning,
            soft_mark=settings.context.prepare.soft_mark if settings.context.prepare.enabled else 0.0,
        )
        self.work = Work(self.chat, services, self._start_turn, self._alert)
        for theme in themes.values():
            self.register_theme(textual_theme(theme))
        if settings.theme in themes:  # before anything is painted: setting it later parses all style sheets once more
            self.set_reactive(App.theme, settings.theme)
            self.stylesheet.set_variables(self.get_css_variables())
        self._plain = self._bindings.copy()
        self._bind()

    def _bind(self) -> None:
        self._bindings = self._plain.copy()
        for binding in bindings(self.keys):
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
        self.wear(loaded.settings.theme)
        for text in loaded.notices:
            self.chat.notice("warning", text)

    def wear(self, theme: str) -> None:
        """Another theme, where there is one of that name."""
        if theme in self.available_themes:
            self.theme = theme
        elif theme:
            self.chat.announce(f"There is no theme {one_line(theme, 40)}. /theme shows those there are.")

    def on_mount(self) -> None:
        self.call_after_refresh(self.wear, self.settings.theme)
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        self.run_worker(self._open_first(), group="start", exit_on_error=False)

    async def _open_first(self) -> None:
        """After the first paint: the session first, then what is slow."""
        for text in (*self._notices, *self.services.notices):
            self.chat.announce(text)
        try:
            await self.work.switch(self._session_id)
        except CtxchatError as problem:
            self.chat.announce(str(problem))
            if self._session_id:
                await self.work.switch("")
        finally:
            self.run_worker(self._list_files, group="files", thread=True, exit_on_error=False)
        await self.services.warm_up()
        if session := self.session:
            self.chat.show_figures(await session.measure())
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
        await self.work.close()
        await self.services.close()
        self.exit(0)

    # ── messages and work ──

    @property
    def session(self) -> ChatSession | None:
        """The session on screen, None before there is one."""
        return self.work.session

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Enter in the composer: a command, or a message for now or for later."""
        event.stop()
        said = commands.parse(event.text)
        if isinstance(said, commands.Unknown):
            near = f" Did you mean /{said.nearest}?" if said.nearest else " /help lists them."
            self.chat.notice("warning", f"There is no command /{one_line(said.name, 40)}.{near}")
        elif said is None and self.session and self.session.read_only:
            way_out = "Nothing was sent; your message is still here. /branch goes on in a copy."
            self.chat.notice("warning", f"{self.session.read_only} {way_out}")
        else:
            self.chat.composer.sent()
            if said is None:
                self.work.say(event.text)
            else:
                self.run_command(said.command, said.argument)

    def on_composer_unqueued(self, event: Composer.Unqueued) -> None:
        event.stop()
        self.work.take_back(event.place)

    def _start_turn(self, turn: Coroutine[None, None, None]) -> Worker[None]:
        return self.run_worker(turn, group="turn", exclusive=True, exit_on_error=False)

    def _alert(self, what: str) -> None:
        """Tell the terminal, for someone who looks elsewhere."""
        if self.app_focus:
            return
        if self.settings.interface.notifications:
            self.write_to_terminal(f"\x1b]9;{one_line(what, 80)}\x07")
        if self.settings.interface.bell:
            self.bell()

    def write_to_terminal(self, sequence: str) -> None:
        """A control sequence of ours, past the screen."""
        if self._driver:
            self._driver.write(sequence)

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
        if self.work.is_of(event.worker) and event.worker.is_finished:
            self.call_next(self.work.go_on)

    # ── actions ──

    def run_command(self, command: commands.Command, argument: str = "") -> None:
        """Start a command in a worker of its own."""
        self._opened = command.name if command.screen else ""
        self.run_worker(ACTIONS[command.name](self, argument), group="command", exit_on_error=False, name=command.name)

    def action_command(self, name: str) -> None:
        """A key or the palette. Over the chat a screen's own key closes it (or agrees to it); another one takes its place."""
        top = self.screen
        if top is not self.chat and self._opened == name:
            self._opened = ""
            if isinstance(top, Panel):
                top.again()
            else:
                top.dismiss(None)
            return
        if top is not self.chat:
            top.dismiss(None)
        self.run_command(commands.BY_NAME[name])

    async def ask(self, screen: Screen[Result]) -> Result | None:
        """Open a screen over the chat; what it comes back with."""
        return await self.push_screen_wait(screen)

    def action_esc(self) -> None:
        """Close the panel on top, else stop the work."""
        if not self.chat.close_panel():
            self.work.interrupt()

    @property
    def theme_names(self) -> Collection[str]:
        """The themes there are."""
        return self.available_themes

    def say_briefly(self, text: str) -> None:
        """A sentence that goes by itself."""
        self.notify(text, timeout=3)

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
        """View, undo, branch from a compaction, or put back what it lost."""
        event.stop()
        change = event.change.id
        if event.what == "re-insert":
            self.run_worker(reinsert(self, change), group="command", exit_on_error=False)
        else:
            name = {"view": "archive", "undo": "undo", "branch": "branch"}[event.what]
            self.run_command(commands.BY_NAME[name], change)

    def on_branch_offer_pressed(self, event: BranchOffer.Pressed) -> None:
        event.stop()
        self.run_command(commands.BY_NAME["branch"])

    def on_suggestion_panel_replied(self, event: SuggestionPanel.Replied) -> None:
        event.stop()
        self.work.agree(event.reply, event.instructions)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Only web addresses are opened."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.open_url(event.href)
        else:
            self.notify(f"Not opened: {one_line(event.href, 80)}", markup=False)
