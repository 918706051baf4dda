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
from textual.filter import LineFilter, Monochrome
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from ctxchat.config.files import Loaded, load
from ctxchat.config.paths import config_dir, user_file
from ctxchat.config.schema import Settings
from ctxchat.config.theme import Theme
from ctxchat.core.errors import CtxchatError
from ctxchat.tui import commands, starting
from ctxchat.tui.actions import ACTIONS, Action
from ctxchat.tui.clicks import Clicks
from ctxchat.tui.edits import EVERY, Edits
from ctxchat.tui.in_force import FALLBACK, InForce, soft_mark
from ctxchat.tui.palette import CommandSource, bindings
from ctxchat.tui.reading.text import clean, one_line
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.screens.panel import Panel
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.style import STYLE
from ctxchat.tui.style.no_colour import NoColour
from ctxchat.tui.style.theming import DEFAULTS, textual_theme
from ctxchat.tui.unsent.drafts import Drafts
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.work import Work

if TYPE_CHECKING:
    from textual.theme import Theme as TextualTheme

Result = TypeVar("Result")


class CtxchatApp(Clicks):
    """Thin: keys, themes, screens, clicks. Fulfils `host.Host`."""

    TITLE = "ctxchat"
    CSS_PATH = [STYLE / name for name in ("ctxchat.tcss", "panels.tcss")]
    COMMANDS = {CommandSource}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    PAUSE_GC_ON_SCROLL = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (9, "-short"), (18, "-tall"), (36, "-high")]

    def __init__(
        self,
        services: Services,
        settings: Settings,
        themes: Mapping[str, Theme],
        *,
        session_id: str = "",
        loaded: Loaded | None = None,
        history_file: Path | None = None,
        data_folder: Path | None = None,
        notices: Sequence[str] = (),
        load_settings: Callable[[], Loaded] | None = None,
        settings_file: Path | None = None,
        settings_folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.services, self.settings = services, settings
        self.keys: commands.Keys = loaded.keys.keys if loaded else commands.default_keys()
        self.load_settings = load_settings or partial(load, services.workspace)
        self.edits = (
            Edits(InForce(self), self.load_settings, loaded, settings_folder or config_dir()) if loaded else None
        )
        self.settings_file = settings_file or user_file(config_dir())
        self._session_id = session_id
        self._notices = tuple(notices)
        self._opened = ""
        self._uncoloured = NoColour(lambda: self.theme_variables["background"])
        self.chat = ChatScreen(
            services.workspace.name,
            self.keys,
            InputHistory(history_file),
            sandboxed=services.sandboxed,
            show_reasoning=settings.interface.show_reasoning,
            soft_mark=soft_mark(settings),
        )
        self.chat.composer.workspace = services.workspace
        self.work = Work(self.chat, services, self._start_turn, self._alert, Drafts(data_folder))
        self._themes = list(themes)
        for theme in themes.values():
            self.register_theme(textual_theme(theme))
        worn = settings.theme if settings.theme in themes else FALLBACK
        if worn in themes:  # before anything is painted: setting it later parses all style sheets once more
            self.set_reactive(App.theme, worn)
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

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, but without colour there is none, not greys."""
        filters = super().get_line_filters()
        return [*(f for f in filters if not isinstance(f, Monochrome)), self._uncoloured] if self.no_color else filters

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def use_keys(self, keys: commands.Keys) -> None:
        """These from now on."""
        self.keys = keys
        self._bind()
        self.chat.use_keys(keys)

    def learn_themes(self, themes: Sequence[TextualTheme]) -> None:
        """These themes are those there are; the one worn is put on anew."""
        for theme in themes:
            self.register_theme(theme)
        self._themes = [theme.name for theme in themes]
        self.mutate_reactive(App.theme)

    def wear(self, theme: str) -> None:
        """Another theme, where there is one of that name; else the usual one."""
        self.theme = theme if theme in self._themes else FALLBACK

    def on_mount(self) -> None:
        self.call_after_refresh(self._start)
        if self.edits:
            self.set_interval(EVERY, self._glance)

    def _glance(self) -> None:
        if self.edits:
            self.run_worker(self.edits.glance(), group="edits", exit_on_error=False)

    def _start(self) -> None:
        self.run_worker(self._open_first(), group="start", exit_on_error=False)

    async def _open_first(self) -> None:
        """After the first paint: the session first, then what is slow."""
        opened = await starting.open_first(self, self._session_id, (*self._notices, *self.services.notices))
        self.run_worker(self._list_files, group="files", thread=True, exit_on_error=False)
        if opened:
            await starting.get_ready(self)

    def _list_files(self) -> None:
        from ctxchat.tui.unsent.workspace_files import examples, files_of

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
        elif said is None and self.work.trouble:
            way_out = f"Nothing was sent; your message is still here. {starting.AGAIN}"
            self.chat.notice("warning", f"{self.work.trouble} {way_out}")
        else:
            self.chat.composer.sent(keep_attached=said is not None)
            if said is None:
                self.work.say(event.draft)
            else:
                self.run_command(said.command, said.argument)

    def on_composer_rested(self, event: Composer.Rested) -> None:
        """What is unsent is kept, beside the screen."""
        event.stop()
        self.run_worker(self.work.keep_draft(), group="draft", exit_on_error=False)

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
        self.begin(ACTIONS[command.name], argument)

    def begin(self, action: Action, argument: str) -> None:
        """Run it in a worker of its own."""
        self.run_worker(action(self, argument), group="command", exit_on_error=False)

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Over the chat shift+tab goes back through a screen's fields, and never changes what is permitted. A screen
        that asks for a key is given every one."""
        if getattr(self.screen, "TAKES_EVERY_KEY", False):
            return action not in {"command", "command_palette", "esc"}
        if (action, parameters) == ("command", ("mode",)):
            return self.screen is self.chat
        return super().check_action(action, parameters)

    async def ask(self, screen: Screen[Result]) -> Result | None:
        """Open a screen over the chat; what it comes back with."""
        return await self.push_screen_wait(screen)

    def action_esc(self) -> None:
        """Close the panel on top, else put off the question for a model, else stop the work."""
        if not self.chat.side.close() and not self.chat.questions.put_off():
            self.work.interrupt()

    @property
    def theme_names(self) -> Collection[str]:
        """The themes there are: ours and the person's, which are checked; not those that come with Textual."""
        return self._themes

    def say_briefly(self, text: str) -> None:
        """A sentence that goes by itself."""
        self.notify(text, timeout=3)

    def notify(self, message: str, *, title: str = "", markup: bool = False, **more: Any) -> None:
        """As Textual's, but text is text."""
        super().notify(clean(message), title=clean(title), markup=markup, **more)

    def editor_command(self) -> str:
        """The editor of the settings; empty for the environment's."""
        return self.settings.interface.editor
