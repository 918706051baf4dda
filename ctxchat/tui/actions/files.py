"""Commands for changed files: show what turns changed, and rewind to before a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.core.messages import Group, Text, spoken
from ctxchat.tui.actions.compaction import free_up
from ctxchat.tui.unsent.draft import Draft, Paste

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp


async def diff(app: CtxchatApp, argument: str = "") -> None:
    """Show what the last turn, or all turns, changed in files."""
    from ctxchat.tui.panels.file_changes import DiffScreen

    session = app.controller.open_session()
    if session.files is None:
        raise CtxchatError("This session's files are not kept here.", "They are where it is open for writing.")
    await app.ask(DiffScreen(session))


async def rewind(app: CtxchatApp, argument: str = "") -> None:
    """Go back to before a message: the conversation, the files or both. The message is put into the editor again."""
    from ctxchat.tui.panels.file_changes import RewindScreen
    from ctxchat.tui.panels.undoing import agreed, files_told

    session = app.controller.idle_session()
    if session.files is None:
        raise CtxchatError("This session cannot be rewound here.", session.read_only)
    back = await app.ask(RewindScreen(session))
    if back is None:
        return
    if not (back.conversation or back.files):
        await free_up(app, up_to=back.group.id)
        return
    wanted = await session.files.rewinding(back.group.id) if back.files else None
    keep = await agreed(app.ask, wanted) if wanted else "mine"
    if keep is None:
        return
    if not back.conversation and wanted:
        told = files_told(await session.files.restore(wanted, keep), wanted, keep) if wanted.undoes else ""
        words = f"Files are as before turn {back.group.turn}: {told}. /redo files brings that back." if told else ""
        app.chat.changed(await session.measure(), words or "No file was changed since then.")
        return
    done, context_usage = await session.files.rewind(back.group.id, wanted, keep)
    told = files_told(done, wanted, keep) if wanted else ""
    app.chat.composer.put_back(draft_of(back.group))
    app.chat.changed(
        context_usage, f"Back to before turn {back.group.turn}{f': {told}' if told else ''}. /undo takes that back."
    )


def draft_of(group: Group) -> Draft:
    """A sent message as a draft again, with its pastes; the files it mentions are read again when it is sent."""
    content = group.first.content
    texts = [part for part in content if isinstance(part, Text)] if isinstance(content, tuple) else []
    pastes = [part for part in texts if part.name.startswith("paste-")]
    return Draft(spoken(group.first), tuple(Paste(number, part.text) for number, part in enumerate(pastes, 1)))
