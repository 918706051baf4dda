"""What each command does. Plain functions over the `Host`, so that the app stays thin; screens are imported when they are opened.

A function may wait for a screen (they run in workers) and raises CtxchatError for what a person can mend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ctxchat.tui.actions import compaction, files, models, program, sessions, views
from ctxchat.tui.host import Host

Action = Callable[[Host, str], Awaitable[None]]
"""What follows the slash command is its second argument; keys and the palette give an empty one."""


ACTIONS: Mapping[str, Action] = {
    "free": compaction.free_up,
    "compact": compaction.compact,
    "undo": compaction.undo,
    "redo": compaction.redo,
    "reinsert": compaction.reinsert,
    "rewind": files.rewind,
    "diff": files.diff,
    "context": views.context,
    "archive": views.archive,
    "xray": views.xray,
    "search": views.search,
    "flight": views.flight,
    "sessions": sessions.sessions,
    "new": sessions.new_session,
    "branch": sessions.branch,
    "rename": sessions.rename,
    "model": models.models,
    "continue": models.resume,
    "agent": sessions.agents,
    "mcp": views.servers,
    "notices": program.notices,
    "secrets": program.secrets,
    "permissions": sessions.permissions,
    "mode": sessions.mode,
    "settings": program.settings,
    "keys": program.keys,
    "trust": program.trust,
    "theme": program.theme,
    "details": program.details,
    "copy": program.copy,
    "export": sessions.export,
    "paste-image": program.paste_image,
    "editor": program.editor,
    "stop": program.stop,
    "help": program.help_,
    "quit": program.quit_,
}
"""One for each name of the table in `commands`."""
