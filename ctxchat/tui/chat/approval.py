"""The approval of a tool call that may change something: shows in full what the call would do, and the possible answers.

A panel over the composer, not a screen over everything: the draft stays in place, and so does the focus while somebody types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import get_args

import msgspec
from rich.cells import cell_len
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.events import ApprovalRequested
from ctxchat.core.permissions import SHELL_FOLDER, Answer, Grant, Rule, Verdict, parse_rules
from ctxchat.core.tool_names import SHELL
from ctxchat.presentation.text import MAX_LAID_OUT_CHARS, MAX_SHOWN_CHARS, clean, one_line, visible
from ctxchat.tui.chat.asked import KEY_PAUSE_S, MOVING, AnswerButton, KeyedAnswer, Keys, Offered
from ctxchat.tui.transcript.source_lines import UNBOUNDED, diff_lines
from ctxchat.tui.widgets.field import PasteLimitedEditor

MAX_SHOWN_LINES = 2_000
EDITING = "editing: enter takes it, esc cancels"
"""Shown while a rule is edited: without colours nothing else would tell it from a rule that is only shown."""

EXACTLY = "just this"
"""Shown for a rule that is exactly the command above it."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class RuleEditor(PasteLimitedEditor):
    """The editor for a rule, or several, one a line: Enter accepts the text, Escape discards it."""

    BINDINGS = [
        Binding("enter", "done(True)", show=False, priority=True),
        Binding("escape", "done(False)", show=False, priority=True),
    ]

    class Done(Message):
        """Editing has ended; `taken` says whether the text is accepted."""

        def __init__(self, taken: bool) -> None:
            super().__init__()
            self.taken = taken

    def __init__(self, text: str) -> None:
        super().__init__(text, soft_wrap=True, compact=True, highlight_cursor_line=False, classes="edited")
        self.move_cursor(self.document.end)

    def action_done(self, taken: bool) -> None:
        self.post_message(self.Done(taken))


class LastLine(Widget):
    """The last line of a call's preview, in one row: cut at its beginning, so that its end is visible."""

    def __init__(self, text: str) -> None:
        super().__init__(classes="end")
        self._text = text

    def render(self) -> Content:
        label = "last  "
        return Content.assemble((label, "$text-warning"), _ending(self._text, self.size.width - len(label)))


class ApprovalPanel(Offered):
    """The panel of one call that waits for approval. `objection` returns why an edited rule cannot be used for it, empty where it
    can."""

    BINDINGS = [
        Binding("left", "answer('less')", "A narrower rule", show=False),
        Binding("right", "answer('more')", "A wider rule", show=False),
        Binding("up", "scroll_text(-1)", show=False),
        Binding("down", "scroll_text(1)", show=False),
    ]
    ON_ESCAPE = "deny"
    IN_WORDS = "reason"
    PLACEHOLDER = "why not; enter denies"
    AT_ONCE = frozenset({"reason"})
    CONFIRMED = {"session": "allow it in this session", "always": "allow it from now on"}

    class Answered(Message):
        """The person's answer to the request."""

        def __init__(self, request: ApprovalRequested, answer: Answer) -> None:
            super().__init__()
            self.request = request
            self.answer = answer

    def __init__(self, request: ApprovalRequested, objection: Callable[[str], str] = lambda rule: "") -> None:
        super().__init__(id="approval")
        self.request = request
        self._objection = objection
        self._rules = list(request.rules)
        self._place = 0
        self._edited = False
        self._editing = False  # kept apart, as a closed editor stays in the tree for a moment
        self._extras = extras(request.allowance)
        self._ticked: set[int] = set()

    @property
    def rule(self) -> str:
        """The rule that `session` and `always` store: the chosen one with the ticked grants, or the text that the person made of
        it; empty for none."""
        text = self._rules[self._place] if self._rules else ""
        rules = parse_rules(text)
        if self._edited or rules is None:
            return text
        allowed = self._allowance()
        mine = [msgspec.structs.replace(r, network=r.network or (allowed.network and r.tool == SHELL)) for r in rules]
        also = [Rule(SHELL_FOLDER, folder) for folder in allowed.folders]
        return "\n".join(dict.fromkeys(rule.text for rule in (*mine, *also)))

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        rule = (("session", "s", "session", True), ("always", "a", "always", True)) if self._rules else ()
        return (("once", "y", "once", False), *rule, ("deny", "n", "deny", False), ("reason", "r", "say why", True))

    @property
    def own_keys(self) -> Keys:
        if self._editing:
            return MOVING[1:]  # it says its keys above it
        long = any(box.max_scroll_y for box in self.query(VerticalScroll))
        return (*super().own_keys, *((("=↓", "read on"),) if long else ()))

    def body(self) -> Iterable[Widget]:
        request = self.request
        sign, name = ("? ", "bold $text-warning"), (_first_lines(request.name, 1), "bold")
        above = "question above" if request.preview.strip() else "question"
        yield Static(
            Content.assemble(sign, name, "  ", _first_lines(summary_beside(request), 2)), markup=False, classes=above
        )
        if request.harms:
            harms = f"✗ {', '.join(request.harms)}: this once, or not at all"
            yield Static(Content.styled(harms, "bold $text-error"), markup=False, classes="harms")
        if request.preview.strip():
            brief = Content.assemble(sign, name, "  ", _first_lines(request.summary, 1))
            yield Static(brief, markup=False, classes="question brief")
            if request.access == "run":
                yield from self._what_it_does()

    def below(self) -> Iterable[Widget]:
        if self.request.preview.strip() and self.request.access != "run":
            yield from self._what_it_does()
        if self._rules:
            with Widget(classes="breadth"):
                yield Static(self._breadth(), markup=False, classes="which")
                if len(self._rules) > 1:
                    yield AnswerButton("less", "←", "less")
                    yield AnswerButton("more", "→", "more")
                yield AnswerButton("edit", "e", "edit")
            rule = Static(Content(visible(self.rule)), markup=False)
            yield VerticalScroll(rule, classes=f"rule {'-same' * self._rule_is_the_command}", can_focus=False)
        ticks = [
            AnswerButton(f"tick {place}", str(place), _ticked(words, False), classes="tick")
            for place, (words, _) in enumerate(self._extras, 1)
        ]
        if ticks:
            yield VerticalScroll(*ticks, classes="ticks", can_focus=False)

    def _what_it_does(self) -> Iterable[Widget]:
        preview = Static(_preview(self.request.preview, self.request.access), markup=False)
        yield VerticalScroll(preview, classes="preview", can_focus=False)
        yield LastLine(_last_line(self.request.preview))

    @property
    def letters(self) -> Mapping[str, str]:
        ticks = {str(place): f"tick {place}" for place, _ in enumerate(self._extras, 1)}
        return {**super().letters, **({"e": "edit"} if self._rules else {}), **ticks}

    def _press(self, letter: str) -> bool:
        """Handle a key as for every question, but let a digit tick its grant at once: that alone allows nothing, and is undone if
        the digit turns out to begin a sentence."""
        if not letter.isdigit() or self._chosen or letter not in self.letters:
            return super()._press(letter)
        self.confirm("")
        self._tick(int(letter))
        self._letters += letter
        self._acts_at = self.now() + KEY_PAUSE_S
        self.post_message(self.KeyTaken())
        return True

    def take_back(self) -> str:
        letters = super().take_back()
        for letter in filter(str.isdigit, letters):
            self._tick(int(letter))
        return letters

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        """Show the preview's last line separately where the box cannot show all lines, so that nobody approves a call half
        seen."""
        for box in self.query(".preview").results(VerticalScroll):
            line, cut = self.query_one(LastLine), box.max_scroll_y > 0 or not box.size.height
            if cut and not line.display:
                self.post_message(self.Grew())
            line.display = cut

    def answer(self, what: str) -> None:
        """Answer with this verdict; an unknown one denies."""
        verdict = VERDICTS[VERDICTS.index(what)] if what in VERDICTS else "deny"
        if verdict == "deny":
            self.post_answer(self.Answered(self.request, Answer("deny")))
            return
        rule = self.rule if verdict in {"session", "always"} else ""
        self.post_answer(self.Answered(self.request, Answer(verdict, rule=rule, allowance=self._allowance())))

    def worded(self, text: str) -> None:
        self.post_answer(self.Answered(self.request, Answer("deny", text)))

    def action_answer(self, what: str) -> None:
        tick = what.removeprefix("tick ")
        if what in self.CONFIRMED and not self._rule_is_seen():
            return
        super().action_answer(what)
        if what != tick:
            self._tick(int(tick))
        elif what in {"less", "more"}:
            self._walk(-1 if what == "less" else 1)
        elif what == "edit":
            self._edit()

    def _rule_is_seen(self) -> bool:
        """Whether the rule is visible, as only a visible rule may be stored: not one being edited, nor one the window has no room
        for."""
        if self._editing:
            self._accept_rule()
        elif self.query_one(".breadth" if self._rule_is_the_command else ".rule").size.height:
            return True
        else:
            self.app.notify("The window has no room to show the rule. y allows this call.", markup=False)
        return False

    # ── the rule ──

    def _walk(self, by: int) -> None:
        place = self._place + by
        if self._rules and 0 <= place < len(self._rules) and not self._editing:
            self._place, self._edited = place, False
            self._show_rule()
        elif self._rules:
            self.app.notify("There is no narrower rule." if by < 0 else "There is no wider rule.", markup=False)

    def _edit(self) -> None:
        if len(self.rule) > MAX_LAID_OUT_CHARS:
            self.app.notify("The rule is too long to be edited here. y allows this call.", markup=False)
        elif self._rules and not self._editing:
            box = self.query_one(".rule")
            box.add_class("-editing")
            self._editing = True
            editor = RuleEditor(self.rule)
            self.mount(editor, after=box)
            editor.focus()
            self.call_after_refresh(self._show_rule)

    def on_rule_editor_done(self, event: RuleEditor.Done) -> None:
        event.stop()
        if event.taken:
            self._accept_rule()
        else:
            self._close_editor()

    def _accept_rule(self) -> None:
        """Use the edited text as the rule; a text that cannot be one stays in the editor, with the reason."""
        written = "\n".join(line.strip() for line in self.query_one(RuleEditor).text.splitlines() if line.strip())
        self.query(".objection").remove()
        if why := self._objection(written):
            line = Static(Content.styled(clean(why), "$text-warning"), markup=False, classes="objection")
            self.mount(line, after=self.query_one(RuleEditor))
            return
        self._edited = self._edited or written != self.rule
        self._rules[self._place] = written
        self._close_editor()

    def _close_editor(self) -> None:
        self._editing = False
        self.query(RuleEditor).remove()
        self.query(".objection").remove()
        self.query_one(".rule").remove_class("-editing")
        self.call_after_refresh(self._show_rule)
        self.focus()

    def _show_rule(self) -> None:
        self.query_one(".which", Static).update(self._breadth())
        box = self.query_one(".rule", VerticalScroll)
        box.query_one(Static).update(Content(visible(self.rule)))
        box.set_class(self._rule_is_the_command, "-same")

    def _breadth(self) -> Content:
        if self._editing:
            return Content.styled(EDITING, "$text-warning")
        count = len(self._rules)
        which = "as you wrote it" if self._edited else f"{self._place + 1} of {count}" if count > 1 else ""
        what = f"{EXACTLY}  " if self._rule_is_the_command else ""
        return Content.assemble(("s and a allow  ", "$text-muted"), (what, "$text-accent"), (which, "$text-muted"))

    @property
    def _rule_is_the_command(self) -> bool:
        """Whether the rule is word for word the command shown above, so that it need not be shown again."""
        return self.request.access == "run" and self.rule == f"{self.request.name}: {self.request.preview.strip()}"

    # ── what is allowed besides ──

    def _tick(self, place: int) -> None:
        if place <= len(self._extras):
            self._ticked ^= {place}
            words = _ticked(self._extras[place - 1][0], place in self._ticked)
            next(each for each in self.query(AnswerButton) if each.what == f"tick {place}").reword(words)
            if self._rules:
                self._show_rule()

    def _allowance(self) -> Grant:
        allowed = Grant()
        for place in self._ticked:
            allowed |= self._extras[place - 1][1]
        return allowed

    def action_scroll_text(self, lines: int) -> None:
        """Scroll a long preview, else a long rule. Immediate, because keys that come faster than frames would count only once."""
        for box in self.query(VerticalScroll):
            if box.scroll_y < box.max_scroll_y if lines > 0 else box.scroll_y > 0:
                box.scroll_relative(y=lines, animate=False, immediate=True)
                return


_CUT = re.compile(r"\[… [\d,]+ characters\]")
"""Where the end of a long line is left out of a summary."""


def extras(allowance: Grant) -> tuple[tuple[str, Grant], ...]:
    """The grants that can be given to a command in addition, each with its label; nine at most, as digits choose them."""
    network = (("the network", Grant(network=True)),) if allowance.network else ()
    folders = tuple((f"writing in {one_line(name, 400)}", Grant(folders=(name,))) for name in allowance.folders)
    outside = (("outside the sandbox, once", Grant(outside=True)),) if allowance.outside else ()
    return (*network, *folders, *outside)[:9]


def summary_beside(request: ApprovalRequested) -> str:
    """The part of the summary that the command shown below it does not repeat."""
    first = "run " + request.preview.partition("\n")[0]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(request.summary, first, strict=False)))
    cut = _CUT.match(request.summary, same)
    if request.access != "run" or first == "run " or not (cut or same == len(first)):
        return request.summary
    return request.summary[cut.end() if cut else same :].removeprefix(" …").strip() or "wants to run"


def _ticked(words: str, ticked: bool) -> str:
    return f"[{'x' if ticked else ' '}] {words}"


def _first_lines(text: str, lines: int) -> str:
    return "\n".join(visible(text).split("\n")[:lines])


def _preview(text: str, access: str) -> Content:
    """A command whole, for it is no longer than a system takes; the lines of a diff behind their numbers."""
    text = text.rstrip("\n")
    if access == "run":
        return Content("\n").join([_marked(line) for line in _folded(visible(text).split("\n"))])
    shown: list[Content] = []
    drawn = diff_lines(visible(text[:MAX_SHOWN_CHARS]), UNBOUNDED, MAX_SHOWN_LINES)
    for blank, run in groupby(drawn, key=lambda line: not line.words.plain.strip(" +-")):
        many = list(run)
        if blank and len(many) > MAX_BLANK_LINES:
            shown.append(_marked(f"{_MARK}{len(many)} blank lines"))
            continue
        shown += [
            line.gutter + (Content(_folded([said])[0]) if _BLANKS.search(said := line.words.plain) else line.words)
            for line in many
        ]
    if (more := len(text) - MAX_SHOWN_CHARS) > 0:
        shown.append(Content.styled(f"… {more:,} more characters", "$text-warning"))
    return Content("\n").join(shown)


def _marked(line: str) -> Content:
    return Content.styled(line, "$text-warning") if line.startswith(_MARK) else Content(line)


MAX_BLANK_LINES = 2
MAX_BLANKS = 60
"""Blank lines and blanks in a row that are shown as they are; text behind more of them would be overlooked."""

_BLANKS = re.compile(f" {{{MAX_BLANKS + 1},}}")
_MARK = "⋯ "


def _folded(lines: Sequence[str]) -> list[str]:
    """The lines, with long runs of blanks or blank lines replaced by their number."""
    folded: list[str] = []
    for blank, run in groupby(lines, key=lambda line: not line.strip(" +-")):
        run_lines = list(run)
        folded += [f"{_MARK}{len(run_lines)} blank lines"] if blank and len(run_lines) > MAX_BLANK_LINES else run_lines
    return [_BLANKS.sub(lambda blanks: f" {_MARK}{len(blanks[0])} blanks {_MARK}", line) for line in folded]


def _last_line(text: str) -> str:
    return _folded(visible(text.rstrip()).split("\n"))[-1]


def _ending(text: str, cells: int) -> str:
    """The end of a line that fits in `cells` columns, with `…` where its beginning was cut."""
    if cell_len(text) <= cells:
        return text
    shown = text[-max(1, cells) :]  # only characters that combine with another are narrower than a cell
    while shown and cell_len(shown) >= cells:
        shown = shown[1:]
    return f"…{shown}"
