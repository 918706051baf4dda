"""From the project's themes to Textual's. Knows colours, no widget."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme as TextualTheme

from ctxchat.config.themes import Theme
from ctxchat.tui.widgets.gauge import GAUGE_COLOURS

DEFAULTS: Mapping[str, str] = {**GAUGE_COLOURS, "rule": "#4a5160", "gauge-ghost": "#3b4252"}
"""Our own variables where a theme (one of Textual's, say) does not set them."""


def textual_theme(theme: Theme) -> TextualTheme:
    """The same colours under Textual's names; ours go in as variables."""
    gauge = {f"gauge-{name.replace('_', '-')}": colour for name, colour in theme.gauge.items()}
    inks = {f"gauge-ink-{name.replace('_', '-')}": colour for name, colour in theme.gauge_ink.items()}
    signs = {f"gauge-sign-{name.replace('_', '-')}": str(ord(sign)) for name, sign in theme.patterns.items()}
    return TextualTheme(
        name=theme.name,
        dark=theme.dark,
        primary=theme.primary,
        secondary=theme.secondary,
        accent=theme.accent,
        foreground=theme.foreground,
        background=theme.background,
        surface=theme.surface,
        panel=theme.panel,
        success=theme.success,
        warning=theme.warning,
        error=theme.error,
        variables={
            **gauge,
            **inks,
            **signs,
            "gauge-ghost": theme.ghost,
            "gauge-target": theme.target,
            "gauge-trigger": theme.trigger,
            "rule": theme.border,
            "border": theme.border,
            "border-blurred": theme.border,
            "text-muted": theme.muted,
            "text-disabled": theme.muted,
            "text-accent": theme.accent,
            "text-warning": theme.warning,
            "text-error": theme.error,
            "text-success": theme.success,
            "link-color": theme.accent,
            "block-cursor-background": theme.accent,
            "block-cursor-foreground": theme.background,
            "input-cursor-background": theme.foreground,
            "input-cursor-foreground": theme.background,
            "scrollbar": theme.panel,
            "scrollbar-hover": theme.border,
            "scrollbar-active": theme.muted,
            "scrollbar-background": theme.background,
            "scrollbar-background-hover": theme.background,
            "scrollbar-background-active": theme.background,
            "scrollbar-corner-color": theme.background,
        },
    )
