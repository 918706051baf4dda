"""Settings put in force on the screen and in the session on it, at the start and whenever they were edited.

Knows which part each option belongs to, and nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ctxchat.config.consistency import for_agent
from ctxchat.config.files import Loaded
from ctxchat.config.schema import Settings
from ctxchat.config.themes import Theme
from ctxchat.core.errors import CtxchatError
from ctxchat.tui import servers
from ctxchat.tui.host import Host
from ctxchat.tui.screens.panel import Panel
from ctxchat.tui.starting import spoken
from ctxchat.tui.style.theming import textual_theme


class InForce:
    """Fulfils `edits.Listener` for an app."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def put_in_force(self, loaded: Loaded) -> None:
        """Keys, theme, what is shown, and the session by its own `setup`: at once, or with its next message."""
        host, settings = self._host, loaded.settings
        host.use_keys(loaded.keys.keys)
        if settings.theme != host.settings.theme:
            host.wear(settings.theme)
        host.settings = settings
        host.services.adopt(loaded)
        for screen in host.screen_stack:
            if isinstance(screen, Panel):
                screen.reread(loaded)
        session = host.work.session
        agent = session.setup.agent if session else None
        host.chat.follow(show_reasoning=settings.interface.show_reasoning, soft_mark=soft_mark(settings, agent))
        if session is None:
            return
        before = session.setup.notices
        try:
            figures = await session.setup.adapt()
        except CtxchatError as problem:
            self.say(str(problem), warning=True)
            return
        for notice in session.setup.notices:
            if notice not in before:
                self.say(notice, warning=True)
        host.chat.show_figures(figures)
        host.chat.show_header()
        # Beside the rest: a slow one must not hold up what is told of this edit, nor the next edit.
        host.chat.run_worker(partial(servers.arrive, host), group="servers", exclusive=True, exit_on_error=False)

    def learn_themes(self, themes: dict[str, Theme]) -> None:
        """These are the themes there are; the one worn is put on anew in its own colours."""
        self._host.learn_themes([textual_theme(theme) for theme in themes.values()])

    def still(self, about: str, notices: Sequence[str]) -> None:
        """Of what was said at the start about this, only these are still true."""
        self._host.chat.banner.only(about, [spoken(self._host, text) for text in notices])

    def say(self, text: str, warning: bool = False) -> None:
        """In a corner, for as long as it takes to read; what was said before goes."""
        self._host.clear_notifications()
        severity = "warning" if warning else "information"
        self._host.notify(text, severity=severity, timeout=12 if warning else 6)


def soft_mark(settings: Settings, agent: str | None = None) -> float:
    """From which share of the limit a summary is made ahead, 0 for never; as the agent has it."""
    try:
        prepare = for_agent(settings, agent)[0].context.prepare
    except CtxchatError:
        prepare = settings.context.prepare
    return prepare.soft_mark if prepare.enabled else 0.0
