"""Figures in words: shares, money, time, and the gauge's parts by letter and name. Pure; knows no widget and no theme."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ctxchat.core.budget import WindowSource
from ctxchat.core.figures import Figures
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.tui.text import short


class Part(msgspec.Struct, frozen=True):
    """How one part of the window is marked and called, everywhere."""

    letter: str
    label: str


PARTS: dict[SectionName, Part] = {
    "system": Part("S", "system"),
    "tools": Part("T", "tools"),
    "memory": Part("M", "memory"),
    "injected": Part("I", "injected"),
    "summary": Part("Σ", "summary"),
    "pinned": Part("P", "pinned"),
    "user": Part("U", "you"),
    "assistant": Part("A", "answers"),
    "tool_results": Part("R", "tool results"),
    "draft": Part("~", "draft"),
    "reserved": Part("▒", "reserved"),
    "free": Part("·", "free"),
}

SOURCES: dict[WindowSource, str] = {
    "loaded": "loaded",
    "configured": "configured",
    "catalogue": "catalogue",
    "learned": "learned from a rejection",
    "assumed": "assumed",
}

_LEARNED: dict[WindowSource, str] = {
    "loaded": "which the server says it has loaded",
    "configured": "as configured",
    "catalogue": "from the catalogue",
    "learned": "learned from a rejection",
    "assumed": "which is assumed, not known",
}

MINUS = "−"


def brief(n: int) -> str:
    """As few signs as tell the size: `118k`, `9.8k`, `200k`, `2M`."""
    text = short(n)
    if text[-1].isdigit():
        return text
    number, unit = text[:-1], text[-1]
    return f"{float(number):.0f}{unit}" if number.endswith(".0") or abs(float(number)) >= 100 else text


def exact(n: int) -> str:
    """Every digit, in groups of three: `21,304`."""
    return f"{n:,}".replace("-", MINUS)


def gain(n: int) -> str:
    """Tokens that go: `−14.2k`; `0` for none, `+1.0k` where it grew."""
    return f"{MINUS}{short(n)}" if n > 0 else f"+{short(-n)}" if n < 0 else "0"


def percent(ratio: float) -> str:
    """`61 %`. Never 100 while there is room, never 100 or less once there is none."""
    whole = int(ratio * 100 + 0.5)
    if ratio < 1:
        whole = min(99, whole)
    elif ratio > 1:
        whole = max(101, whole)
    return f"{max(0, whole)} %"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent; `0 %` of nothing."""
    return f"{int(part * 100 / whole + 0.5)} %" if whole > 0 else "0 %"


def money(usd: float) -> str:
    """US dollars: `$0.04`, `<$0.01`, `$12.30`; `$0` for nothing."""
    if usd <= 0:
        return "$0"
    return f"${usd:,.2f}" if usd >= 0.01 else "<$0.01"


def count(n: int, one: str, many: str = "") -> str:
    """`1 message`, `1,204 messages`."""
    return f"{exact(n)} {one if n == 1 else many or one + 's'}"


def moment(at: str) -> datetime | None:
    """A time as stored (ISO 8601; UTC where it says nothing), or None for what is none."""
    try:
        value = datetime.fromisoformat(at)
    except ValueError:
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def day_and_clock(at: str) -> str:
    """`21 Nov 14:02` where the reader is; empty for none."""
    value = moment(at)
    return value.astimezone().strftime("%d %b %H:%M").lstrip("0") if value else ""


def age(at: str, now: datetime) -> str:
    """How long ago: `now`, `3 min`, `2 h`, `5 days`, then the date; empty for no time."""
    value = moment(at)
    if value is None:
        return ""
    minutes = (now - value).total_seconds() / 60
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes:.0f} min"
    if minutes < 24 * 60:
        return f"{minutes / 60:.0f} h"
    if minutes < 30 * 24 * 60:
        return count(round(minutes / 1440), "day")
    return value.astimezone().strftime("%d %b %Y").lstrip("0")


def known(figures: Figures) -> bool:
    """True when there is a window to measure against."""
    return figures.window > 0 and figures.limit > 0


def tilde(figures: Figures) -> str:
    """`~` in front of what is an estimate."""
    return "~" if figures.estimated else ""


def window_words(figures: Figures) -> str:
    """`window 200k, catalogue`."""
    return f"window {brief(figures.window)}, {SOURCES[figures.window_source]}" if known(figures) else "window unknown"


def gauge_words(figures: Figures) -> tuple[str, ...]:
    """The text beside the bar, longest first: percent with used and limit, the same shorter, percent alone."""
    sign = tilde(figures)
    if not known(figures):
        return (f"{sign}{short(figures.used)} used, window unknown", f"{sign}{brief(figures.used)} of ?", "? %")
    head = f"{sign}{percent(figures.pressure)}"
    over = " over" if figures.used > figures.limit else ""
    return (
        f"{head}{over}  {sign}{short(figures.used)}/{short(figures.limit)}",
        f"{head}{over}  {sign}{brief(figures.used)}/{brief(figures.limit)}",
        head,
    )


def sentence(figures: Figures) -> str:
    """The gauge for ears: what is used, of what, what is largest, and when a pass would start."""
    about = "about " if figures.estimated else ""
    if not known(figures):
        return f"{about}{short(figures.used)} tokens are used; the window is unknown.".capitalize()
    inside = [s for s in figures.sections if s.tokens > 0 and s.name not in ("reserved", "free")]
    inside.sort(key=lambda s: -s.tokens)
    largest = ", ".join(f"{PARTS[s.name].label} {short(s.tokens)}" for s in inside[:3])
    left = figures.trigger_tokens - figures.used
    return " ".join(
        [
            f"The context is {percent(figures.pressure)} full: {about}{short(figures.used)} of {short(figures.limit)} tokens.",
            f"{short(figures.reserved_output)} more are reserved for the reply,",
            f"in a window of {short(figures.window)}, {_LEARNED[figures.window_source]}.",
            *([f"Largest: {largest}."] if largest else []),
            f"Compaction starts in {short(left)}." if left > 0 else "Compaction is due.",
        ]
    )


def part_words(figures: Figures, name: SectionName) -> str:
    """One part in words: `tool results: ~58.6k tokens, 30 % of the window`."""
    found = next((s for s in figures.sections if s.name == name), None)
    if found is None:
        return PARTS[name].label
    sign = "~" if found.estimated else ""
    of_window = f", {share(found.tokens, figures.window)} of the window" if known(figures) else ""
    return f"{PARTS[name].label}: {sign}{short(found.tokens)} tokens{of_window}"


def draft_words(figures: Figures) -> str:
    """What the unsent message does: `this message +18k → 92 %, compaction would start`; empty without a draft."""
    draft = figures.tokens("draft")
    if draft <= 0:
        return ""
    if not known(figures):
        return f"this message +{brief(draft)}"
    ends = f"this message +{brief(draft)} → {percent(figures.pressure)}"
    if figures.used > figures.limit:
        return f"{ends}, too much for the window"
    return f"{ends}, compaction would start" if figures.used >= figures.trigger_tokens else ends


def forecast_words(figures: Figures) -> str:
    """`~6 turns left at this pace`; empty where there is no trend."""
    turns = figures.forecast_turns
    if turns is None:
        return ""
    return f"~{count(turns, 'turn')} left at this pace" if turns else "no turn left at this pace"


def _tenths(n: int) -> str:
    return f"{n // 10}.{n % 10}"


assert tuple(PARTS) == SECTIONS, "the gauge's parts must stand in the order of the sections"
