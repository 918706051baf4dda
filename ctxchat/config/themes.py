"""Reads themes from TOML files, shipped and the person's, checks them, and derives the colours they leave out. Invalid ones are
reported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config import paths
from ctxchat.config.colours import contrast, from_lch, ink_on, lch, luminance, mix, normal, readable
from ctxchat.config.problems import KeyPath, Problem, display_value, key_text, nearest
from ctxchat.config.toml_file import read_toml
from ctxchat.config.toml_positions import layout
from ctxchat.core.sections import SECTIONS, SectionName

REQUIRED = ("background", "foreground", "primary")
COLOURS = (
    *REQUIRED,
    *("secondary", "accent", "surface", "panel", "muted", "border", "success", "warning", "error"),
    *("target", "trigger", "ghost"),
)
_KNOWN = ("name", "dark", *COLOURS, "gauge", "patterns")


class _Tint(msgspec.Struct, frozen=True):
    """The colour of a section on the gauge, relative to the accent: `turn` of the hue in degrees, share of its `chroma`, and the
    lightness on a `dark` and on a `light` background."""

    turn: float
    chroma: float
    dark: float
    light: float


# Sections that are always there are nearly grey. Messages, which fill the window, have hues near the accent and stand out from
# the background; what replaces messages has other hues and is quieter. Neighbours differ in lightness, to be distinct without
# colour.
_TINTS: dict[SectionName, _Tint] = {
    "system": _Tint(0, 0.3, 0.42, 0.72),
    "tools": _Tint(0, 0.3, 0.54, 0.82),
    "memory": _Tint(-25, 0.4, 0.42, 0.72),
    "injected": _Tint(-25, 0.4, 0.54, 0.82),
    "summary": _Tint(65, 0.7, 0.66, 0.72),
    "pinned": _Tint(165, 0.7, 0.52, 0.82),
    "user": _Tint(0, 1.2, 0.78, 0.50),
    "assistant": _Tint(20, 1.2, 0.63, 0.62),
    "tool_results": _Tint(-45, 0.9, 0.74, 0.53),
    "draft": _Tint(0, 1.0, 0.84, 0.66),
}


class Themes(msgspec.Struct, frozen=True):
    """All valid themes by name, the shipped ones first, and the problems of the others."""

    themes: dict[str, Theme]
    problems: tuple[Problem, ...] = ()

    def named(self, name: str) -> Theme:
        """The theme with this name, else the shipped dark one. `unknown` has the problem to report then."""
        return self.themes.get(name) or self.themes.get("dark") or FALLBACK

    def unknown(self, name: str) -> Problem | None:
        """The problem with a name that no theme has, None for a known one."""
        if name in self.themes:
            return None
        return Problem(
            f"there is no theme {display_value(name)}",
            "theme",
            f"one of {', '.join(self.themes)}",
            nearest(name, self.themes),
        )


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
"""A character for each section, so that they can be told apart without colour."""


class Theme(msgspec.Struct, frozen=True):
    """A complete theme. Colours are `#rrggbb` in lower case; each section has a colour, a readable text colour on it and a
    character.

    `surface` and `panel` are raised backgrounds; `muted` is for quiet text, readable on all three backgrounds; `border` is for
    lines only. On the bar, `target` and `trigger` are the colours of the two ticks and `ghost` that of a prepared compaction.
    `file` is where it was read from, empty for one made in code.
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


def load_themes(config: Path | None = None) -> Themes:
    """Read the shipped themes and those in the `themes` folder of the person's settings folder, which replace shipped ones of the
    same name."""
    themes: dict[str, Theme] = {}
    problems: list[Problem] = []
    for folder in _folders(config):
        valid, folder_problems = _folder(folder)
        themes |= {theme.name: theme for theme in valid}
        problems += folder_problems
    return Themes(themes, tuple(problems))


def read_theme(path: Path) -> tuple[Theme | None, tuple[Problem, ...]]:
    """The theme of a file, None when it is invalid, and its problems."""
    content = read_toml(path)
    if content.tree is None:
        return None, (content.problem or Problem("is not there", file=str(path)),)
    faults = list(_faults(content.tree))
    if not faults:
        return make_theme(content.tree, path.stem, str(path)), ()
    positions = layout(content.text)
    problems = (
        Problem(p.what, key_text(at), p.allowed, p.nearest, str(path), positions.line_of(at)) for at, p in faults
    )
    return None, tuple(sorted(problems, key=lambda p: p.line))


def make_theme(tree: dict[str, Any], name: str, file: str = "") -> Theme:
    """A theme from a valid table; colours left out are derived from background, foreground and primary."""
    given = {key: normal(tree[key]) for key in COLOURS if key in tree}
    back, fore, primary = given["background"], given["foreground"], given["primary"]
    dark = tree.get("dark", luminance(back) < 0.18)
    lift = "#ffffff" if dark else "#000000"
    accent = given.get("accent", primary)
    surface = given.get("surface", mix(back, lift, 0.04))
    panel = given.get("panel", mix(back, lift, 0.08))
    grounds = (panel, surface, back)
    light = 0.78 if dark else 0.50
    derived = {
        "secondary": mix(primary, fore, 0.35),
        "accent": accent,
        "surface": surface,
        "panel": panel,
        "muted": readable(mix(back, fore, 0.55), *grounds),
        "border": mix(back, fore, 0.22),
        "success": readable(from_lch(light, 0.11, 150), *grounds),
        "warning": readable(from_lch(light, 0.12, 75), *grounds),
        "error": readable(from_lch(light, 0.15, 25), *grounds),
        "target": readable(given.get("muted", mix(back, fore, 0.6)), back),
        "trigger": readable(accent, back),
        "ghost": mix(back, accent, 0.22),
    }
    colours = {**derived, **given}
    gauge = _gauge(tree.get("gauge", {}), dark, colours)
    inks: dict[SectionName, str] = {s: _ink(s, ground, colours) for s, ground in gauge.items()}
    patterns = {**PATTERNS, **tree.get("patterns", {})}
    return Theme(
        name=tree.get("name", name), dark=dark, gauge=gauge, gauge_ink=inks, patterns=patterns, file=file, **colours
    )


def unreadable(theme: Theme) -> tuple[str, ...]:
    """The pairs of text and background whose contrast is below WCAG AA, with that contrast."""
    grounds = {"background": theme.background, "surface": theme.surface, "panel": theme.panel}
    inks = ("foreground", "muted", "primary", "secondary", "accent", "success", "warning", "error")
    pairs = [(f"{ink} on {name}", getattr(theme, ink), ground) for ink in inks for name, ground in grounds.items()]
    pairs += [(f"{s} letter on its segment", theme.gauge_ink[s], theme.gauge[s]) for s in SECTIONS]
    pairs += [(f"{tick} tick on free", getattr(theme, tick), theme.gauge["free"]) for tick in ("target", "trigger")]
    return tuple(f"{name}: {contrast(ink, ground):.2f}" for name, ink, ground in pairs if contrast(ink, ground) < 4.5)


def _gauge(given: dict[str, str], dark: bool, colours: dict[str, str]) -> dict[SectionName, str]:
    """The colours of the gauge's sections: those given, and for the others tints of the accent."""
    _, chroma, hue = lch(colours["accent"])
    strength = min(0.08, chroma)
    derived: dict[SectionName, str] = {
        section: from_lch(tint.dark if dark else tint.light, strength * tint.chroma, hue + tint.turn)
        for section, tint in _TINTS.items()
    }
    derived["reserved"] = colours["panel"]
    derived["free"] = colours["background"]
    return {s: normal(given[s]) if s in given else derived[s] for s in SECTIONS}


def _ink(section: SectionName, ground: str, colours: dict[str, str]) -> str:
    quiet = (colours["muted"],) if section in ("free", "reserved") else ()
    return ink_on(ground, *quiet, colours["foreground"], colours["background"])


def _faults(tree: dict[str, Any]) -> Iterable[tuple[KeyPath, Problem]]:
    """The mistakes in the tree of a theme's file, each with its key."""
    for key in REQUIRED:
        if key not in tree:
            yield (key,), Problem("is missing", allowed='a colour such as "#7aa2f7"')
    for key, value in tree.items():
        if key not in _KNOWN:
            yield (key,), Problem("is unknown", nearest=nearest(key, _KNOWN))
        elif key in COLOURS and not _is_colour(value):
            yield (key,), Problem(f"is {display_value(value)}", allowed='must be a colour such as "#7aa2f7"')
        elif key == "name" and not (
            isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= 40
        ):
            yield (key,), Problem(f"is {display_value(value)}", allowed="must be a name of 1 to 40 letters")
        elif key == "dark" and not isinstance(value, bool):
            yield (key,), Problem(f"is {display_value(value)}", allowed="must be true or false")
    for table, right, allowed in (
        ("gauge", _is_colour, "a colour"),
        ("patterns", _is_sign, "one narrow letter or sign"),
    ):
        part = tree.get(table, {})
        if not isinstance(part, dict):
            yield (table,), Problem(f"is {display_value(part)}", allowed="must be a table")
            continue
        for key, value in part.items():
            if key not in SECTIONS:
                yield (
                    (table, key),
                    Problem("is unknown", allowed=f"one of {', '.join(SECTIONS)}", nearest=nearest(key, SECTIONS)),
                )
            elif not right(value):
                yield (table, key), Problem(f"is {display_value(value)}", allowed=f"must be {allowed}")


def _folders(config: Path | None) -> list[Path]:
    return [paths.shipped() / "themes", *([config / "themes"] if config else [])]


def _folder(folder: Path) -> tuple[list[Theme], list[Problem]]:
    """The themes in a folder, and the problems with its files; nothing for a missing folder."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [Problem(f"cannot be read ({error.strerror})", file=str(folder))]
    read_ones = [read_theme(path) for path in files]
    return [theme for theme, _ in read_ones if theme], [p for _, problems in read_ones for p in problems]


def _is_colour(value: object) -> bool:
    """True for a text that is a colour."""
    try:
        return isinstance(value, str) and bool(normal(value))
    except ValueError:
        return False


def _is_sign(value: object) -> bool:
    """True for a single character that takes one cell of a terminal."""
    from unicodedata import category, east_asian_width

    if not isinstance(value, str) or len(value) != 1:
        return False
    return value == " " or (category(value)[0] in "LNPS" and east_asian_width(value) not in "WF")


FALLBACK = make_theme({"background": "#16181d", "foreground": "#d7dae0", "primary": "#7fb4ca"}, "dark")
"""The theme where not even the shipped files can be read."""
