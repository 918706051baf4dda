"""What a theme is: plain colours as `#rrggbb` and letters, ready for any screen. Knows no file and no widget."""

from __future__ import annotations

import msgspec

from ctxchat.core.sections import SectionName

PATTERNS: dict[SectionName, str] = {
    "system": "S",
    "tools": "T",
    "memory": "M",
    "injected": "I",
    "summary": "Σ",
    "pinned": "P",
    "user": "U",
    "assistant": "A",
    "tool_results": "R",
    "draft": "~",
    "reserved": "▒",
    "free": "·",
}
"""One sign a section, so that colour is never the only signal."""


class Theme(msgspec.Struct, frozen=True):
    """Every colour is `#rrggbb` in small letters, every section has a colour, a readable ink on it and a sign.

    `surface` and `panel` are raised backgrounds; `muted` is quiet text, readable on all three; `border` is for lines
    only. `target` and `trigger` are the inks of the two ticks and `ghost` the colour of a prepared compaction on the
    bar. `file` is where it was read from, empty for one made in code.
    """

    name: str
    dark: bool
    primary: str
    secondary: str
    accent: str
    foreground: str
    background: str
    surface: str
    panel: str
    muted: str
    border: str
    success: str
    warning: str
    error: str
    target: str
    trigger: str
    ghost: str
    gauge: dict[SectionName, str]
    gauge_ink: dict[SectionName, str]
    patterns: dict[SectionName, str]
    file: str = ""
