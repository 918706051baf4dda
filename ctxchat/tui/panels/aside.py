"""Questions beside the conversation, with their answers: what is asked here stays out of the window and of the record."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input

from ctxchat.agent.asides import Aside
from ctxchat.agent.session import Session
from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.text import one_line
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.transcript.blocks import ErrorBlock, NoticeBlock, ReplyBlock, UserBlock, Waiting
from ctxchat.tui.transcript.transcript import Transcript
from ctxchat.tui.widgets.field import Field

NOTHING_STAYS = (
    "What you ask here sees the conversation. Nothing of it, nor of the answers, stays in the window or the record."
)


class AsideField(Field):
    """The field of the next question: the footer says that enter asks it."""

    BINDINGS = [Binding("enter", "submit", "ask", key_display="enter")]


class AsideScreen(Panel[None]):
    """Asks the `question`, where there is one, and what is typed below; each sees those before it."""

    TITLE = "Beside the conversation"
    HOME = Input

    BINDINGS = [
        Binding("pageup", "scroll(-1)", "up", show=False),
        Binding("pagedown", "scroll(1)", "down", show=False),
    ]

    def __init__(self, session: Session, question: str) -> None:
        super().__init__()
        self._session, self._question = session, question
        self._answered: list[Aside] = []
        self._asking = False

    def body(self) -> ComposeResult:
        yield Transcript()
        yield AsideField(placeholder="ask about what was said so far", compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.head(one_line(self._session.context_usage.model, 40))
        self.query_one(Transcript).add_block(NoticeBlock("info", NOTHING_STAYS))
        self._ask(self._question)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._asking:
            self.notify_here("One question at a time: esc stops this one.")
            return
        if not event.value.strip():
            self.notify_here("Type a question first.")
            return
        event.input.clear()
        self._ask(event.value.strip())

    def _ask(self, question: str) -> None:
        if question:
            self._asking = True
            self.run_worker(partial(self._receive, question), group="aside", exit_on_error=False)

    async def _receive(self, question: str) -> None:
        """The answer, drawn as it comes."""
        shown, waiting, reply = self.query_one(Transcript), Waiting("asking"), ReplyBlock(streaming=True)
        shown.add_block(UserBlock(question))
        shown.add_block(waiting)
        try:
            async with aclosing(self._session.asides.ask(question, self._answered)) as pieces:
                async for piece in pieces:
                    if not reply.text:
                        shown.discard(waiting)
                        shown.add_block(reply)
                    reply.append_text(piece)
            reply.finish()
            self._answered.append(Aside(question, reply.text))
        except CtxchatError as problem:
            reply.finish()
            shown.add_block(ErrorBlock(problem.text, problem.hint))
        finally:
            shown.discard(waiting)
            self._asking = False

    def action_scroll(self, pages: int) -> None:
        """A page up or down in the answers."""
        shown = self.query_one(Transcript)
        (shown.scroll_page_up if pages < 0 else shown.scroll_page_down)(animate=False)

    def action_back(self) -> None:
        """Out of it; an answer under way is stopped."""
        self.dismiss(None)
