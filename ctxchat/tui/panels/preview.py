"""The preview of a compaction: what each step would free, what stays, and which model would read the text, before anything is
sent anywhere."""

from __future__ import annotations

import asyncio
from functools import partial
from time import time
from typing import TYPE_CHECKING

import msgspec
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from ctxchat.agent.compaction.preview import Preview, PreviewStep
from ctxchat.core.quantities import percent
from ctxchat.core.strategies.base import DEFERRED
from ctxchat.core.strategies.oversize import KEPT
from ctxchat.core.summaries import MIN_GAIN_SHARE, too_little
from ctxchat.presentation.cache_text import compacted_words
from ctxchat.presentation.inventory import Row, inventory
from ctxchat.presentation.text import clean, one_line, short
from ctxchat.presentation.usage_text import count, gain, money, tilde
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.panels.reader import TextScreen, whole_messages
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.gauge import Gauge, component, signs_of
from ctxchat.tui.widgets.line import Line
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


class PreviewResult(msgspec.Struct, frozen=True):
    """The compaction that a person agreed to: the preview, with the instructions for the summary, and the names of the ticked
    steps. `edit`: the person wants to edit the summary first."""

    preview: Preview
    steps: tuple[str, ...]
    edit: bool = False


TYPING_PAUSE_S = 0.15
"""Seconds without a change before a new preview is made, so that a key held down causes only one."""

COLUMNS = (
    Column("", 3),
    Column("step", least=46),
    Column("frees", 7, right=True),
    Column("by", 28, right=True, rank=1),
)
GOES = (Column("", 1), Column("turn", 4, right=True), Column("what", least=20), Column("tokens", 6, right=True))

MAX_NAMED_MESSAGES = 3
"""Messages that are named in the line below the steps, for windows with no room for the list."""


class Steps(Rows[PreviewStep]):
    """The list of steps, each with its tick."""

    class Toggled(Message):
        """A step was clicked."""

    def on_click(self, event: events.Click) -> None:
        if 0 <= event.y < len(self.items):
            self.post_message(self.Toggled())


class Stepper(Line):
    """Shows how many messages stay as they are, and changes it by clicks: `leave the newest ◂ 6 ▸ messages`."""

    class Stepped(Message):
        """An arrow was clicked: `by` is -1 or 1."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, messages: int) -> None:
        super().__init__(id="keep")
        self.messages = messages
        self._cuts_results = False

    def draw_line(self, width: int) -> Content:
        number, noun = count(self.messages, "message").split(" ")
        but = ", but cut long results among them" if self._cuts_results else ""
        arrow = "$text-accent"
        line = Content.assemble(
            (self._lead(width), MUTED), ("◂ ", arrow), (number, "bold"), (" ▸ ", arrow), (noun, MUTED)
        )
        whole = Content.assemble(line, (but, MUTED))
        return whole if whole.cell_length <= width else line

    def _lead(self, width: int) -> str:
        return "leave the newest " if width >= 36 else "leave "

    def show_kept(self, *, cuts_results: bool) -> None:
        """Say whether a ticked step shortens long results among the messages that stay."""
        self._cuts_results = cuts_results
        self.refresh()

    def stand_at(self, messages: int) -> None:
        """Show this number."""
        self.messages = messages
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        start = len(self._lead(self.size.width))
        if event.x < start + 2:
            self.post_message(self.Stepped(-1))
        elif start + 2 + len(f"{self.messages:,}") <= event.x < start + len(f"{self.messages:,}") + 5:
            self.post_message(self.Stepped(1))


class PreviewScreen(Panel[PreviewResult]):
    """The screen of the preview. Its result is what was agreed to, or None, and then nothing was changed."""

    TITLE = "Free up context"
    BINDINGS = [
        Binding("enter", "agree(False)", "apply", key_display="enter"),
        Binding("space", "tick", "tick", key_display="space"),
        Binding("e", "agree(True)", "edit summary"),
        Binding("v", "read", "what goes"),
        Binding("left,minus", "step(-1)", "less", key_display="◂"),
        Binding("right,plus", "step(1)", "more", key_display="▸"),
    ]

    def __init__(self, session: Session, preview: Preview) -> None:
        super().__init__()
        self._session = session
        self._preview = self._with_ticked = preview  # as planned with all suggested steps, and with the ticked ones
        self._ticks_by_hand: dict[str, bool] = {}  # steps that the person ticked or unticked
        self._rows: tuple[Row, ...] = ()
        self._keep = preview.keep_recent  # messages that stay in the preview shown; the stepper may be ahead of it
        self._pending_agreement: bool | None = None  # Enter (False) or `e` (True), pressed while a new preview was made
        self._was_replanned = False

    def body(self) -> ComposeResult:
        with Horizontal(classes="panel-body"):
            with VerticalScroll(id="plan", can_focus=False):
                yield Static(id="calm", markup=False)
                yield Steps(COLUMNS, self._cells, titles=False, id="steps")
                yield Static(id="goes", markup=False)
                yield Stepper(self._preview.keep_recent)
                yield Static(id="stays", markup=False)
                yield Field(
                    self._preview.instructions,
                    placeholder="tell the summary what to keep",
                    id="instruction",
                    compact=True,
                )
                for name in ("before", "after"):
                    with Horizontal(classes=f"bar -{name}"):
                        yield Label(name, markup=False)
                        yield Gauge(id=name)
                yield Static(id="sent", markup=False)
            with Vertical(id="beside"):
                yield Label(id="about", markup=False)
                yield Rows(GOES, self._message_cells, titles=False, id="messages")
                with VerticalScroll(id="facts"):
                    yield Static(markup=False)

    def on_mount(self) -> None:
        self._show_preview()
        self._list_messages()

    @property
    def home(self) -> Widget | None:
        return self.query_one(Steps) if self._preview.all_steps else None

    @property
    def ticked(self) -> tuple[str, ...]:
        """Names of the steps that would be run."""
        suggested = {step.name for step in self._preview.steps}
        offered = (step.name for step in self._preview.all_steps if not step.why_nothing)
        return tuple(name for name in offered if self._ticks_by_hand.get(name, name in suggested))

    @property
    def _offered(self) -> list[PreviewStep]:
        """Every step in its first order, with what it frees together with the ticked ones."""
        by_name = {step.name: step for step in self._with_ticked.all_steps}
        return [by_name.get(step.name, step) for step in self._preview.all_steps]

    @property
    def _writes_summary(self) -> bool:
        return any(step.needs_model for step in self._offered if step.name in self.ticked)

    # ── what it shows ──

    def _show_preview(self) -> None:
        preview = self._preview
        some = preview.plan is not None
        context_usage = self._with_ticked.after if self.ticked else preview.before
        offered = self._offered
        self.query_one(Steps).show_items(offered)
        self.query_one(Steps).display = bool(offered)
        self._show_words("calm", clean(self._with_ticked.missed if some else preview.reason or "Nothing to free."))
        self.set_class(not some, "-empty")
        self._show_step()
        self._show_words("stays", self._kept_text() if some else "")
        self.query_one(Field).display = any(step.needs_model for step in offered)
        both = (preview.before, context_usage)
        self.query_one("#before", Gauge).show_usage(preview.before, among=both)
        self.query_one("#after", Gauge).show_usage(context_usage, among=both)
        self.query_one(Stepper).display = some or self._was_replanned
        self.query_one(Stepper).show_kept(cuts_results=KEPT in self.ticked)
        self.query_one(".-after").display = some
        self.query_one(".-before Label", Label).update("before" if some else "now")
        self._show_words("sent", self._sending_text() if some else "")
        self._show_heading()

    @property
    def _freed(self) -> int:
        return self._with_ticked.freed if self.ticked else 0

    def _show_heading(self) -> None:
        before = self._preview.before
        start = before.used - before.tokens("draft")
        least, most = self._with_ticked.after_range if self.ticked else (0, 0)
        apart = most > least and short(most) != short(least)
        left = f"{short(least)}–{short(most)}" if apart else f"~{short(start - self._freed)}"
        change = Content(f"{tilde(before)}{short(start)} → {left}")
        freed = Content.styled(gain(self._freed), "bold $text-success")
        whole = Content.assemble(change, (f" of {short(before.limit)}   ", MUTED), freed)
        self.head(*((whole, change, freed) if self._preview.plan else ()))

    def _show_words(self, which: str, words: str) -> None:
        static = self.query_one(f"#{which}", Static)
        static.display = bool(words)
        static.update(Content(words))

    def _cells(self, step: PreviewStep) -> tuple[Cell, ...]:
        if step.why_nothing:
            return (" –", "dim"), (one_line(step.why_nothing, 120), "dim"), ("–", "dim"), ""
        on = step.name in self.ticked
        style = "" if on else "dim"
        return (
            ("[x]" if on else "[ ]", "good" if on else "dim"),
            (one_line(step.label, 120), style),
            (gain(step.tokens_freed), style),
            (self._price(step), "dim"),
        )

    def _price(self, step: PreviewStep) -> str:
        asks = step.needs_model and self._preview.model
        return f"by {one_line(self._preview.model, 60).rsplit('/', 1)[-1]}" if asks else "no model needed"

    @work(group="goes", exclusive=True, exit_on_error=False)
    async def _list_messages(self) -> None:
        """List the messages of the view with their sizes, the largest first, and show those of the step under the cursor."""
        rows = await asyncio.to_thread(inventory, self._session.view, self._preview.before)
        self._rows = tuple(sorted(rows, key=lambda row: -row.tokens))
        self._show_step()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows.id == "steps":
            self._show_step()

    def _show_step(self) -> None:
        """Show which messages the step under the cursor affects, the largest first, and the facts that its summary carries over:
        beside the plan if the window is wide, else in one line."""
        step = self.query_one(Steps).current
        if step is None:
            return
        self.query_one("#beside").set_class(bool(step.why_nothing), "-nothing")
        if step.why_nothing:
            words = f"nothing goes: {one_line(step.why_nothing, 120)}"
            self.query_one("#goes", Static).update(words)
            self.query_one("#about", Label).update(words)
            return
        affected = self._affected(step)
        first, last = step.turns
        where = f"turn {first}" if first == last else f"turns {first}–{last}"
        named: dict[str, int] = {}
        for row in affected:
            named.setdefault(one_line(row.what, 40), row.tokens)
        largest = ", ".join(f"{what} {short(tokens)}" for what, tokens in list(named.items())[:MAX_NAMED_MESSAGES])
        self.query_one("#goes", Static).update(f"{where}; largest: {largest}" if largest else where)
        self.query_one("#about", Label).update(f"{where}, {count(len(affected), 'message')}")
        self.query_one("#messages", Rows).show_items(affected, at=0)
        facts = self.query_one("#facts")
        facts.display = step.needs_model and bool(self._with_ticked.facts_text)
        facts.query_one(Static).update(Content(clean(self._with_ticked.facts_text)))

    def _affected(self, step: PreviewStep) -> list[Row]:
        """The messages that a step takes away or shortens, the largest first."""
        return [r for r in self._rows if r.group in step.affected_groups and r.message not in step.unchanged]

    def _message_cells(self, row: Row) -> tuple[Cell, ...]:
        sign = signs_of(self.app)[row.section]
        return (sign, component(row.section)), (str(row.turn or ""), "dim"), row.what, (short(row.tokens), "dim")

    def _kept_text(self) -> str:
        preview = self._with_ticked
        words = [f"{count(preview.pinned, 'pinned message')} kept"] if preview.pinned else []
        words += [f"{count(preview.facts.kept, 'fact')} carried over"] if preview.facts.kept else []
        words += [f"as on disk now: {', '.join(one_line(f, 60) for f in preview.files)}"] if preview.files else []
        return "   ".join(words)

    def _sending_text(self) -> str:
        preview = self._with_ticked
        asks = self._writes_summary
        price = f"~{max(1, round(preview.seconds))} s" + (f", {money(preview.cost_usd)}" if preview.cost_usd else "")
        to = one_line(preview.model)
        if not asks or not preview.model:
            words = ["Nothing is sent anywhere.", *self._gain_warning()]
        elif preview.other_provider:
            words = [f"! {price}: sent to {to}, not the provider in use."]
        else:
            words = [f"{price}: sent to {to}, the provider in use."]
        if not asks and self.query_one(Field).text.strip():
            words.append("! What you tell the summary is not used: no summary is ticked.")
        return "\n".join([*words, *self._cache_lines()])

    def _gain_warning(self) -> list[str]:
        """A warning if the compaction would be refused because it frees too little. Only if no summary is written, as the length
        of a summary is not known before."""
        before = self._preview.before
        start = before.used - before.tokens("draft")
        if set(self.ticked) <= {DEFERRED} or not too_little(start, start - self._freed):
            return []
        return [
            f"! It frees less than {percent(MIN_GAIN_SHARE)}: too little for a compaction, nothing would be changed."
        ]

    def _cache_lines(self) -> list[str]:
        """Lines on the cost of the next message with and without the compaction, by what the provider has cached, and on the
        reasoning that is lost."""
        preview = self._with_ticked
        if preview.plan is None or not self.ticked:
            return []
        words = compacted_words(preview.before, preview.after.used, preview.rewrite, time())
        return [words] if words else []

    # ── what is done ──

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if (action, parameters) == ("agree", (True,)):
            return self._writes_summary
        if action == "read":
            return bool(self._preview.all_steps)
        if action == "step":
            return self._preview.plan is not None or self._was_replanned
        return self._preview.plan is not None if action in ("agree", "tick") else True

    def action_tick(self) -> None:
        step = self.query_one(Steps).current
        if step is not None and step.why_nothing:
            self.notify_here(f"This step frees nothing: {step.why_nothing}.")
        elif step is not None:
            self._toggle(step)

    def _toggle(self, step: PreviewStep) -> None:
        self._ticks_by_hand[step.name] = step.name not in self.ticked
        if self._as_suggested:
            self._with_ticked = self._preview
        self._show_preview()
        self.refresh_bindings()
        self.run_worker(self._plan_ticked, group="preview", exclusive=True, exit_on_error=False)

    @property
    def _as_suggested(self) -> bool:
        return set(self.ticked) == {step.name for step in self._preview.steps}

    async def _plan_ticked(self) -> None:
        """Plan with the ticked steps, after a pause, and show that; until then the former figures stay."""
        if self.ticked and not self._as_suggested:
            await asyncio.sleep(TYPING_PAUSE_S)
            planned = await self.attempt(self._session.planner.with_steps(self._preview, self.ticked))
            self._with_ticked = planned or self._preview
            self._show_preview()

    def on_steps_toggled(self) -> None:
        self.action_tick()

    def action_read(self) -> None:
        """Show whole what the step under the cursor takes: the message under the cursor if the focus is on the messages, else all
        of them."""
        step, messages = self.query_one(Steps).current, self.query_one("#messages", Rows)
        if step is None:
            return
        if step.why_nothing:
            self.notify_here(f"Nothing goes by this step: {step.why_nothing}.")
            return
        chosen = [messages.current] if self.focused is messages and messages.current else self._affected(step)
        places = {(row.group, row.message) for row in chosen}
        taken = [i.message for i in self._session.view.items if i.group and (i.group, i.message.seq) in places]
        self.app.push_screen(TextScreen(whole_messages(taken), step.label, count(len(taken), "message")))

    def on_stepper_stepped(self, event: Stepper.Stepped) -> None:
        event.stop()
        self.action_step(event.by)

    def action_step(self, by: int) -> None:
        """Leave one message more or less as it is, and plan anew."""
        stepper = self.query_one(Stepper)
        if stepper.messages + by < 1:
            self.notify_here("The newest message always stays.")
            return
        stepper.stand_at(stepper.messages + by)
        self._pending_agreement = None
        self.run_worker(partial(self._replan, stepper.messages), group="preview", exclusive=True, exit_on_error=False)

    async def _replan(self, keep: int) -> None:
        """Make and show a preview that keeps so many messages, after a pause; then agree to it if that was asked for
        meanwhile."""
        await asyncio.sleep(TYPING_PAUSE_S)
        preview = await self.attempt(self._session.preview(self.query_one(Field).text, keep))
        edit, self._pending_agreement = self._pending_agreement, None
        if preview is None:
            self.query_one(Stepper).stand_at(self._keep)
            return
        self._was_replanned, self._keep = True, keep
        self._preview = self._with_ticked = preview
        self._show_preview()
        self._list_messages()
        self.refresh_bindings()
        if edit is not None and preview.plan:
            self.action_agree(edit)
        else:
            await self._plan_ticked()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tick the step that writes a summary when an instruction for it is typed."""
        event.stop()
        if event.value.strip() and event.input.has_focus and not self._writes_summary:
            for step in self._offered:
                if step.needs_model:
                    self._toggle(step)
        elif self._preview.plan is not None:
            self._show_words("sent", self._sending_text())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_agree(False)

    def opened_again(self) -> None:
        """Agree to what is shown, if there is a plan: the key that opened the preview was pressed once more."""
        self.action_agree(False) if self._preview.plan else self.dismiss(None)

    def action_agree(self, edit: bool) -> None:
        """Close the screen with the ticked steps, or remember to do so while a new preview is made. `edit`: the person wants to
        edit the summary first."""
        if self.query_one(Stepper).messages != self._keep:
            self._pending_agreement = edit
        elif not self.ticked:
            self.notify("No step is ticked. Space ticks one, Esc leaves everything as it is.", markup=False)
        else:
            instruction = self.query_one(Field).text.strip()
            self.dismiss(
                PreviewResult(msgspec.structs.replace(self._preview, instructions=instruction), self.ticked, edit)
            )
