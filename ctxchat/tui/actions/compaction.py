"""Making room: the preview, a compaction, its suggestion during a turn, facts put back, undo, redo."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ctxchat.agent.compaction.preview import Preview
from ctxchat.core.changes import restored_ids
from ctxchat.core.errors import LedgerError
from ctxchat.core.quantities import count

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tui.app import CtxchatApp
    from ctxchat.tui.panels.undoing import UndoDone

_MESSAGE = re.compile(r"m\d{1,12}")


async def free_up(app: CtxchatApp, argument: str = "", *, up_to: str = "") -> None:
    """The preview; what is ticked there is run, with the summary as edited where that was asked for. `m12`, or a group to go
    `up_to`, looks at a compaction for everything up to there; other words tell the summary what to keep."""
    from ctxchat.tui.panels.preview import PreviewScreen

    session = app.controller.idle_session()
    if _MESSAGE.fullmatch(argument):
        groups = session.state.ledger.groups
        up_to = next((g.id for g in groups if any(m.id == argument for m in g.messages)), "")
    preview = await _preview_up_to(session, up_to) if up_to else await session.preview(argument)
    if preview is None:
        app.notify("That message is in the archive already.")
        return
    agreed = await app.ask(PreviewScreen(session, preview))
    if agreed is None:
        return
    summary = await _edited(app, agreed.preview, agreed.steps) if agreed.edit else None
    if agreed.edit and summary is None:
        return
    app.controller.run_compaction(app.controller.idle_session().free_up(agreed.preview, agreed.steps, summary=summary))


async def _preview_up_to(session: Session, group: str) -> Preview | None:
    """The preview of a compaction for everything up to this group of the view, the group with it; None where it is not in it."""
    items = [item for item in (await session.seen_view()).items if item.group and item.section != "summary"]
    last = max((place for place, item in enumerate(items) if item.group == group), default=-1)
    return None if last < 0 else await session.preview("", max(1, len(items) - 1 - last), target=0.0)


async def _edited(app: CtxchatApp, preview: Preview, steps: tuple[str, ...]) -> str | None:
    from ctxchat.tui.panels.summary import SummaryScreen

    drafted = app.controller.idle_session().compaction.draft(preview, steps)
    return await app.ask(SummaryScreen(drafted, preview))


async def compact(app: CtxchatApp, argument: str = "") -> None:
    """Compact with all steps, without a preview; during a turn, as soon as no call is open."""
    if app.controller.busy:
        app.controller.agree("now", argument)
        return
    preview = await app.controller.idle_session().preview(argument)
    if preview.plan is None:
        app.notify(preview.reason or "Nothing to free.")
        return
    if argument and not any(step.needs_model for step in preview.steps):
        app.notify("No summary is written, for it would free nothing: what you said to keep stays as it is.")
    app.controller.run_compaction(app.controller.idle_session().free_up(preview))


async def reinsert(app: CtxchatApp, argument: str) -> None:
    """The facts that a compaction lost, back at the end; those of the newest that lost any, without an id."""
    session = app.controller.idle_session()
    back = restored_ids(session.state.ledger)
    losing = [c.id for c in session.state.ledger.compactions if c.record and c.record.lost and c.id not in back]
    if not argument and not losing:
        app.notify("Nothing to put back: the model still sees every fact that compactions found.")
        return
    lost = len(session.changes.lost_facts(argument or losing[-1]))
    context_usage = await session.changes.reinsert(argument or losing[-1])
    app.chat.changed(context_usage, f"{count(lost, 'fact')} put back at the end, as one note.")


async def undo(app: CtxchatApp, argument: str = "") -> None:
    """Take back what came last, or the change with that id, or what a turn did to `files`; where that would fill the window too
    far, or concerns files the person changed since, they are asked."""
    from ctxchat.tui.panels.undoing import undo

    await _report_change(app, undo(app.controller.idle_session(), app.ask, argument))


async def redo(app: CtxchatApp, argument: str = "") -> None:
    """Make again what was undone, what was undone last without an id."""
    from ctxchat.tui.panels.undoing import redo

    await _report_change(app, redo(app.controller.idle_session(), app.ask, argument))


async def _report_change(app: CtxchatApp, change: Awaitable[UndoDone | None]) -> None:
    try:
        done = await change
    except LedgerError as nothing:  # not a failure: there is nothing to do
        app.chat.notice("info", str(nothing))
        return
    if done is not None:
        app.chat.changed(done.context_usage, done.words)
