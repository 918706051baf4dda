"""The application: its start and end, keys and commands, and which screen is on top.

Its looks are in `style`, the functions behind commands in `actions`, the running turn in `session_controller`, the widgets of the
chat in `chat`, the screens over the chat in `panels`. The composition root creates it with everything it needs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from rich.segment import Segment, Segments
from rich.text import Text
from textual import work
from textual._context import active_message_pump
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.events import Event, Key, Paste
from textual.screen import Screen
from textual.worker import Worker, WorkerFailed, WorkerState, get_current_worker

from ctxchat.config import effective
from ctxchat.config.effective import Loaded
from ctxchat.config.keys import Action
from ctxchat.config.paths import config_dir, user_file
from ctxchat.config.schema import Settings
from ctxchat.config.themes import Theme
from ctxchat.core.errors import CtxchatError
from ctxchat.core.prompt_files import called_prompt
from ctxchat.importing.outcome import FOLLOW_INTERVAL_S
from ctxchat.presentation.text import clean, one_line
from ctxchat.tui import commands, starting
from ctxchat.tui.actions import Handler, handler, importing, models, views
from ctxchat.tui.actions.compaction import reinsert
from ctxchat.tui.actions.program import keep_line, open_place
from ctxchat.tui.browser import open_in_browser
from ctxchat.tui.chat.banner import AllNotices, BranchOffer
from ctxchat.tui.chat.composer import Composer
from ctxchat.tui.chat.offers import FirstChoice, ImportOffer, LimitPanel, SuggestionPanel, UnreachedPanel
from ctxchat.tui.chat.prompt import Prompt
from ctxchat.tui.chat.screen import ChatScreen
from ctxchat.tui.edits import POLL_INTERVAL_S, Edits, soft_mark
from ctxchat.tui.panels.panel import Confirm, Over, Panel
from ctxchat.tui.services import Services
from ctxchat.tui.session_controller import NotYetOpen, SessionController
from ctxchat.tui.style.themed_app import textual_theme
from ctxchat.tui.terminal.first_frame import UNSENT, in_browser
from ctxchat.tui.terminal.input_queue import InOrder
from ctxchat.tui.transcript.blocks import CompactionMark
from ctxchat.tui.transcript.tool_block import ToolBlock
from ctxchat.tui.transcript.transcript import Transcript
from ctxchat.tui.unsent.draft import Draft, Drafts
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.unsent.resources import MentionedResources
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.line import Line

if TYPE_CHECKING:
    from textual.widgets import Markdown

    from ctxchat.agent.session import Session

Result = TypeVar("Result")

SAVED = "Saved. Go on with: ctxchat --session {} (or ctxchat -c, the last of this folder)"
"""Printed in the terminal when the chat ends; `{}` is the session's id."""

MARK_QUESTIONS = {
    "undo": "Undo this compaction?",
    "branch": "Branch here, and go on in the copy?",
    "re-insert": "Put the facts back that it lost, at the end?",
}

_MEMORY_LINE = re.compile(r"#(me)? +\S.*")
"""A line that is saved in the memory file instead of being sent: `# text` or `#me text`."""

_OWN_COMMAND = re.compile(r"!!?\s*[^!\s].*", re.DOTALL)
"""A shell command that is run instead of being sent: `!command` or `!!command`."""

FOLLOW_PAUSE_FACTOR = 10
"""The pause between two imports of other agents' sessions, as a multiple of how long the last import took."""

CTRL_C_AGAIN_S = 3.0
"""Seconds within which a second ctrl+c leaves."""

MAX_FAULTS = 20
"""Unexpected exceptions in one run after which the interface ends: code that fails with every frame would go on failing."""


class AppFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that the app itself reads and writes.

    `loaded` are the settings with their files (None: edits of them are not followed), `load_settings` reads them again, dialogs
    write to `settings_file`, themes of the person's own are in `settings_folder`; None for the usual ones. `history_file` stores
    earlier inputs, `data_folder` drafts; None keeps none. `problems` are sentences on what is wrong with themes.
    """

    loaded: Loaded | None = None
    load_settings: Callable[[], Loaded] | None = None
    settings_file: Path | None = None
    settings_folder: Path | None = None
    history_file: Path | None = None
    data_folder: Path | None = None
    problems: tuple[str, ...] = ()


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What the app runs on.

    `driver` speaks to the terminal (None: Textual's own), `now` is a steadily rising count of seconds. `write_down` logs an
    unexpected exception and returns a sentence that says where; without it such an exception ends the app with a traceback.
    `follow_interval` are the seconds between two imports of other agents' sessions, at least; `follow_pause_factor` is how many
    times as long as the last import the pause lasts, at least.
    """

    driver: Any = None
    now: Callable[[], float] = monotonic
    write_down: Callable[[Exception], str] | None = None
    follow_interval: float = FOLLOW_INTERVAL_S
    follow_pause_factor: float = FOLLOW_PAUSE_FACTOR


class CtxchatApp(InOrder):
    """The Textual application: routes keys, commands and messages of widgets to the code that handles them."""

    TITLE = "ctxchat"
    COMMANDS = {commands.CommandSource}
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(
        self,
        services: Services,
        settings: Settings,
        themes: Mapping[str, Theme],
        *,
        session_id: str = "",
        files: AppFiles | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        files, self._runtime = files or AppFiles(), runtime or Runtime()
        super().__init__([textual_theme(theme) for theme in themes.values()], settings.theme, self._runtime.driver)
        self.services, self.settings, self.now = services, settings, self._runtime.now
        loaded = files.loaded
        self.keys: commands.Keys = loaded.keys.keys if loaded else commands.default_keys()
        self.load_settings = files.load_settings or partial(effective.load_settings, services.workspace)
        self.edits = Edits(self, self.load_settings, loaded, files.settings_folder or config_dir()) if loaded else None
        self.settings_file = files.settings_file or user_file(config_dir())
        self._session_id = session_id
        self._problems = files.problems
        self._opened = ""  # name of the command whose screen is over the chat, or is being opened
        self._opener: Worker[Any] | None = None
        self._waiting: set[Worker[Any]] = set()  # commands that wait until the session is open
        self._left: asyncio.Task[None] | None = None
        self._others = importing.FollowedSessions(self)
        self._faults = 0
        self._ctrl_c_until = 0.0  # until then ctrl+c leaves, in seconds of `now`
        self.chat = ChatScreen(
            services.workspace.name,
            self.keys,
            InputHistory(files.history_file),
            sandboxed=services.sandboxed,
            now=self.now,
        )
        self.chat.follow(settings.interface, soft_mark(settings))
        self.chat.composer.workspace = services.workspace
        self.chat.composer.resources = MentionedResources(services)
        self.chat.composer.submit = self.submit
        self.controller = SessionController(
            self.chat,
            services,
            self._alert,
            Drafts(files.data_folder),
            lambda: self.settings.interface.titles == "model",
        )
        self.chat.composer.take_back = self.controller.take_back
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

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def use_keys(self, keys: commands.Keys) -> None:
        """Use this key table from now on."""
        self.keys = keys
        self._bind()
        self.chat.use_keys(keys)

    def get_key_display(self, binding: Binding) -> str:
        """Keys with a modifier are written as everywhere else in the app; for the others Textual has symbols."""
        plain = binding.key_display or "+" not in binding.key
        return super().get_key_display(binding) if plain else commands.shown_key(binding.key)

    def on_mount(self) -> None:
        self.call_after_refresh(self._start)
        if self.edits:
            self.set_interval(POLL_INTERVAL_S, self._check_edits)

    def on_app_focus(self) -> None:
        self._check_edits()

    def _check_edits(self) -> None:
        """Start a check for edited settings, unless the app is closing."""
        if self.edits and self._left is None:
            self.run_worker(self.edits.glance, group="edits", exit_on_error=False)

    def _start(self) -> None:
        self.run_worker(self._open_first, group="start", exit_on_error=False)

    async def _open_first(self) -> None:
        """After the first paint: open the session, then start the slow parts."""
        opened = await starting.open_first(self, self._session_id, (*self._problems, *self.services.notices))
        self.run_worker(partial(starting.list_files, self), group="files", exit_on_error=False)
        if opened:
            await starting.get_ready(self)
            self._bring_in()

    def _bring_in(self) -> None:
        """Import what is new in other agents' sessions, in the background; `_follow_others` schedules the next time."""
        self.run_worker(self._follow_others, group="follow", exit_on_error=False)

    async def _follow_others(self) -> None:
        seconds = await self._others.look()
        pause = max(self._runtime.follow_interval, self._runtime.follow_pause_factor * seconds)
        self.set_timer(pause, self._bring_in)

    async def action_quit(self) -> None:
        self.run_command(commands.BY_NAME["quit"])

    async def leave(self, code: int = 0) -> None:
        """Stop the work under way, release the session and exit with `code`. A draft that could not be saved is printed in the
        terminal."""
        if self._left is None:
            self._inputs.clear()
            self._left = asyncio.create_task(self._leave(code))
        await asyncio.shield(self._left)

    async def _leave(self, code: int) -> None:
        session = self.session if not self.is_web else None
        notices: Sequence[str] = ()
        lost, saved_id = "", session.id if session and session.state.ledger.groups else ""
        try:
            lost, notices = await self.controller.close(self.workers)
            await self.services.close()
        finally:
            last_line = UNSENT.format(clean(lost)) if lost else SAVED.format(saved_id) if saved_id and not code else ""
            message = "\n".join(filter(None, (*map(clean, notices), last_line)))
            self.exit(code, return_code=code, message=Text(message) if message else None)

    def give_back_terminal(self) -> None:
        """Reset the terminal's modes when the program ends abnormally. Waits for nothing; may be called from any thread."""
        if give_back := getattr(self._driver, "give_back", None):
            give_back()

    def accepts(self, event: Event) -> bool:
        """Whether input is still accepted: none is once the app is closing. Questions are told of each key before any widget gets
        it."""
        if self._left is None and isinstance(event, Key | Paste) and not event.is_forwarded:
            self.chat.questions.typed(event.key if isinstance(event, Key) else "")
        return self._left is None

    def leaves(self, event: Event) -> bool:
        return isinstance(event, Key) and event.key in self.keys.get("quit", ())

    # ── messages and work ──

    @property
    def session(self) -> Session | None:
        """The session on screen, None before there is one."""
        return self.controller.session

    def _alert(self, what: str) -> None:
        """Send a desktop notification or a bell through the terminal, when its window does not have the focus."""
        if self.app_focus:
            return
        if self.settings.interface.notifications:
            self.write_to_terminal(f"\x1b]9;{one_line(what, 80)}\x07")
        if self.settings.interface.bell:
            self.bell()

    def write_to_terminal(self, sequence: str) -> None:
        """Write a control sequence of the app's own directly to the terminal, past the screen."""
        if self._driver:
            self._driver.write(sequence)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """When a worker ends: show its error, if it failed, and send the next queued message, if it was the turn."""
        if not self.is_running or not self.chat.transcript.is_attached:
            return  # the app is closing: there is nowhere to show an error
        if event.state is WorkerState.ERROR and (error := event.worker.error):
            if isinstance(error, CtxchatError):
                self.chat.failed(error.text, error.hint)
            else:
                written = self._runtime.write_down and isinstance(error, Exception) and self._runtime.write_down(error)
                where_logged = written or "This is a fault in ctxchat."
                text = f"{type(error).__name__}: {one_line(str(error), 300)}"
                self.chat.failed(text, f"{where_logged} The session is kept; you can go on.")
        if self.controller.is_of(event.worker) and event.worker.is_finished:
            self.call_next(self.controller.send_next)

    # ── unexpected exceptions ──

    def _handle_exception(self, error: Exception) -> None:
        """Log and show an unexpected exception of a handler, a timer or a worker, and go on where that is possible. Without
        `write_down` (in tests) the app ends with a traceback, which is Textual's default."""
        if self._runtime.write_down is None:
            super()._handle_exception(error)
            return
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        if self._exit and isinstance(error, NoMatches):
            return  # a screen that was still opening when the program ended is empty by now
        self._faults += 1
        where_logged = self._runtime.write_down(error)
        exit_text = Segments([Segment(clean(f"ctxchat: {where_logged}\n"))])
        self._return_code = 1
        self._exit_renderables.append(exit_text)  # printed only if the app ends because of this
        if self._faults > MAX_FAULTS:
            self.run_worker(partial(self.leave, 1))
        else:
            pump = active_message_pump.get(
                self
            )  # read now: the widget that failed is removed from the screen in a moment
            ancestors = pump.ancestors_with_self if isinstance(pump, DOMNode) else []
            self.call_later(self._after_fault, ancestors, where_logged, exit_text)

    def _after_fault(self, ancestors: Sequence[DOMNode], where_logged: str, exit_text: Segments) -> None:
        """Go on after an exception, with the screen closed that it came from; end the app where the editor, the transcript or the
        questions are among what stopped. Textual stops the widget whose handler failed. `ancestors` are that widget and all it
        is in."""
        needed = [*self.chat.composer.prompt.ancestors_with_self, self.chat.transcript, self.chat.questions]
        if not all(each.is_running for each in needed):
            self.run_worker(partial(self.leave, 1))
            return
        self._return_code = None
        self._exit_renderables.remove(exit_text)
        if screen := next((each for each in self.screen_stack[1:] if each in ancestors), None):
            screen.dismiss(None)
        self.notify(f"{where_logged} The session is kept; you can go on.", severity="error", timeout=12)

    # ── actions ──

    def run_command(self, command: Action, argument: str = "") -> None:
        """Start a command in a worker of its own. A command that opens a screen replaces an earlier one whose screen is not open
        yet; with a name as its argument it opens no screen."""
        if not command.screen or (argument and command.argument == "[name]"):
            self.start_action(handler(command), argument)
            return
        if self._opener and self._on_its_way:
            self._opener.cancel()
        self._opened, self._expected = command.name, self.expect_screen()
        self._opener = self.start_action(handler(command), argument, self._expected)

    @property
    def _on_its_way(self) -> bool:
        """The screen of the last command is still being opened."""
        return not self._expected.done() or self._opener in self._waiting

    @work(group="command", exit_on_error=False, description="a command")  # not its arguments, which may be long
    async def start_action(self, action: Handler, argument: str, expected: asyncio.Future[None] | None = None) -> None:
        """Run an action in a worker of its own; one that needs a session runs again once that is open. Input waits for the screen
        that is `expected` to open, but not for the session."""
        try:
            await action(self, argument)
        except NotYetOpen:
            _stop_expecting(expected)
            worker = get_current_worker()
            self._waiting.add(worker)
            try:
                await self.controller.settled.wait()
            finally:
                self._waiting.discard(worker)
            if expected:
                expected = self._expected = self.expect_screen()
            await action(self, argument)
        finally:
            _stop_expecting(expected)

    def action_command(self, name: str) -> None:
        """Run the command `name`, started by a key or from the palette. The key of the open screen closes that screen (or agrees
        to it); the key of another screen opens that one instead, but the help opens over the screen, which stays."""
        from ctxchat.tui.panels.help import HelpScreen

        over = self.screen_stack[1:]
        if not over and self._opened == name and self._on_its_way:
            return  # its screen is being opened already
        if len(over) > 1 and isinstance(self.screen, HelpScreen) and name in ("help", self._opened):
            self.screen.dismiss(None)  # it lies over another screen
            return
        if name == "help" != self._opened and isinstance(self.screen, Over):
            self.push_screen(HelpScreen(self.keys))
            return
        if over and self._opened == name:
            if len(over) == 1 and isinstance(over[0], Panel):
                over[0].opened_again()
            else:
                self.close_screens()
            return
        self.close_screens()
        self.run_command(commands.BY_NAME[name])

    def action_tour(self) -> None:
        """Start the tour from the empty chat; it uses the terminal until it ends."""
        from ctxchat.tui.actions.program import tour

        self.start_action(tour, "")

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, commands.Palette):
            self.push_screen(commands.Palette(id="--command-palette"))

    def pop_screen(self) -> AwaitComplete:
        popped = super().pop_screen()
        if len(self.screen_stack) == 1:
            self._opened = ""
        return popped

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Turn actions off that would take keys from a screen over the chat: shift+tab moves through its fields there and does
        not change the permission mode, and a screen that asks for a key is given every one."""
        if getattr(self.screen, "TAKES_EVERY_KEY", False):
            return action not in {"command", "command_palette", "esc"}
        if (action, parameters) == ("command", ("mode",)):
            return self.screen is self.chat
        return super().check_action(action, parameters)

    def notify(self, message: str, **more: Any) -> None:
        """Show a notification, unless the banner above the conversation shows the same text already."""
        if self.screen is not self.chat or not self.chat.banner.says(message):
            super().notify(message, **more)

    async def ask(self, screen: Screen[Result]) -> Result | None:
        """Open a screen over the chat; the value it is dismissed with."""
        return await self.push_screen_wait(screen)

    def action_esc(self) -> None:
        """Escape. Does the first of these that applies: cancel a command that waits for the session, close the context panel, put
        off an offer, stop a shell command of the person's own, interrupt the turn."""
        if self._opener and self._opener in self._waiting:
            self._opener.cancel()
        elif not (
            self.chat.side.close_if_over_chat() or self.chat.questions.put_off() or self.controller.own_commands.stop()
        ):
            self.controller.interrupt()

    def action_help_quit(self) -> None:
        """ctrl+c with nothing to copy: show the keys that interrupt the turn and quit; a second time, while no turn is running,
        quit."""
        now, busy = self.now(), self.controller.busy
        again, self._ctrl_c_until = now < self._ctrl_c_until, now + CTRL_C_AGAIN_S
        if busy:
            actions = [("interrupt", "stops"), ("quit", "leaves")]
            hints = [f"{commands.shown_key(self.keys[key][0])} {does}" for key, does in actions if self.keys.get(key)]
            self.say_briefly(", ".join(hints) or "/quit leaves")
        elif again:
            self.run_command(commands.BY_NAME["quit"])
        else:
            self.say_briefly("ctrl+c again leaves")

    def editor_command(self) -> str:
        """The command of the editor in the settings; empty for the one of the environment."""
        return self.settings.interface.editor

    # ── the composer ──

    def submit(self, draft: Draft) -> None:
        """Handle a draft that was entered: run it as a command, or send it now or later. Synchronous, so that keys typed after
        Enter do not end up in the same draft."""
        parsed = commands.parse(draft.text)
        session = self.controller.session
        if _MEMORY_LINE.fullmatch(draft.text) and not draft.along:
            self.chat.composer.sent()
            self.start_action(keep_line, draft.text)
            return
        if _OWN_COMMAND.fullmatch(draft.text):
            self._run_own_command(draft.text)
            return
        if isinstance(parsed, commands.Unknown) and session and called_prompt(draft.text, session.setup.prompts):
            parsed = None  # a stored prompt: sent as a message, and filled in by the session
        if isinstance(parsed, commands.Unknown):
            near = f" Did you mean /{parsed.nearest}?" if parsed.nearest else " /help lists them."
            self.chat.notice("warning", f"There is no command /{one_line(parsed.name, 40)}.{near}")
        elif parsed is not None:
            self.chat.composer.sent(keep_attached=True)
            self.run_command(parsed.command, parsed.argument)
        elif session and session.read_only:
            self._not_sent(session.read_only, "/branch goes on in a copy.")
        elif self.controller.trouble:
            self._not_sent(self.controller.trouble, starting.NEW_TRIES_AGAIN)
        elif not draft.along and self.chat.questions.reply(draft.text):
            self.chat.composer.sent()
        else:
            self.chat.composer.sent()
            self.controller.send_draft(draft)

    def _run_own_command(self, typed: str) -> None:
        try:
            self.controller.own_commands.start(self.controller.open_session(), typed)
        except CtxchatError as problem:
            self.chat.failed(problem.text, problem.hint)
        else:
            self.chat.composer.sent(keep_attached=True)

    def _not_sent(self, why: str, way_out: str) -> None:
        self.chat.notice("warning", f"{why} Nothing was sent; your message is still here. {way_out}")

    def on_composer_rested(self, event: Composer.Rested) -> None:
        """Save the unsent draft in the background."""
        event.stop()
        self.run_worker(self.controller.keep_draft, group="draft", exit_on_error=False)

    # ── clicks and answers ──

    def on_breakdown_free_up_pressed(self) -> None:
        self.run_command(commands.BY_NAME["free"])

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        """Open the X-ray at the messages of the clicked segment."""
        if self.screen is self.chat:
            self.run_command(commands.BY_NAME["xray"], event.name)

    def on_compaction_mark_chosen(self, event: CompactionMark.Chosen) -> None:
        """View a compaction, undo it, branch from it, or put back the facts it lost; all but viewing ask for confirmation
        first."""
        event.stop()
        if event.what == "view":
            self.run_command(commands.BY_NAME["archive"], event.change.id)
            return
        self.expect_screen()
        self.start_action(partial(self._after_asking, event.what), event.change.id)

    @staticmethod
    async def _after_asking(what: str, app: CtxchatApp, change: str) -> None:
        if not await app.ask(Confirm(MARK_QUESTIONS[what])):
            return
        if what == "re-insert":
            await reinsert(app, change)
        else:
            app.run_command(commands.BY_NAME[what], change)

    def on_tool_block_sub_agent_chosen(self, event: ToolBlock.SubAgentChosen) -> None:
        event.stop()
        self.expect_screen()
        self.start_action(views.sub_agent, event.session_id)

    def on_branch_offer_pressed(self, event: BranchOffer.Pressed) -> None:
        event.stop()
        self.run_command(commands.BY_NAME["branch"])

    def on_all_notices_pressed(self, event: AllNotices.Pressed) -> None:
        event.stop()
        self.run_command(commands.BY_NAME["notices"])

    def on_first_choice_chosen(self, event: FirstChoice.Chosen) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        self.start_action(models.first_choice, event.name)

    def on_prompt_path_pasted(self, event: Prompt.PathPasted) -> None:
        """Offer to import sessions from a pasted path; nothing is imported without an answer."""
        event.stop()
        self.start_action(importing.offer_path, event.path)

    def on_import_offer_answered(self, event: ImportOffer.Answered) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        if event.follow is not None:
            self.start_action(partial(importing.follow_from_now, event.follow), "")
        if event.agreed:
            if (
                event.path and event.path in self.chat.composer.draft
            ):  # the path was pasted to be imported, not to be sent
                self.chat.composer.set_draft(self.chat.composer.draft.replace(event.path, "", 1).strip(" '\""))
            self.start_action(importing.import_from, event.path)

    def on_unreached_panel_answered(self, event: UnreachedPanel.Answered) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        if event.way:
            self.start_action(partial(models.go_on_with, event.way, event.waiting), "")

    def on_limit_panel_answered(self, event: LimitPanel.Answered) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        if event.text or event.most is not None:
            self.start_action(partial(views.go_on_beyond, event.limit, event.most), event.text)

    def on_suggestion_panel_replied(self, event: SuggestionPanel.Replied) -> None:
        event.stop()
        self.controller.agree(event.reply, event.instructions)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        event.stop()
        self._follow(event.href)

    def on_line_target_pressed(self, event: Line.TargetPressed) -> None:
        """Do what the clicked text stands for: press a key, scroll to a group of the conversation, or run a command."""
        event.stop()
        match event.what:
            case "key":
                self.post_message(Key(event.about, event.about if len(event.about) == 1 else None))
            case "group":
                self.chat.transcript.go_to(event.about)
            case command:
                self.run_command(commands.BY_NAME[command], event.about)

    def on_transcript_place_clicked(self, event: Transcript.PlaceClicked) -> None:
        event.stop()
        self.start_action(open_place, event.place)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        event.stop()
        self._follow(event.href)

    def _follow(self, href: str) -> None:
        """Open a web address; any other link is refused with a notification."""
        if href.startswith(("http://", "https://")):
            self.open_url(href)
        else:
            self.notify(f"Not opened, only web addresses are: {one_line(href, 80)}", markup=False)

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        """Open an address in a graphical browser; where there is none, show and copy it."""
        if in_browser():
            super().open_url(url, new_tab=new_tab)
        else:
            self.run_worker(partial(self._open_or_copy, url), group="browser", exit_on_error=False)

    async def _open_or_copy(self, url: str) -> None:
        if why := await asyncio.to_thread(open_in_browser, url):
            self.copy_to_clipboard(url)
            self.notify(f"Copied, as {why}: {one_line(url, 300)}", markup=False)


def _stop_expecting(screen: asyncio.Future[None] | None) -> None:
    """Let input go on where the expected screen was not opened."""
    if screen and not screen.done():
        screen.set_result(None)
