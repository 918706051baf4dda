"""The gauge as cells: which part of the window each cell of a bar stands for, and where the ticks are. Pure; knows no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.sections import OUTSIDE, SectionName
from ctxchat.core.tokens import apportion
from ctxchat.presentation.usage_text import PARTS, is_measured

TickName = Literal["", "target", "trigger", "learned", "held", "step"]

TARGET, TRIGGER, LEARNED = "╎", "╷", "┃"
"""Characters for the target of a compaction, its trigger, and the end of a window that was believed to be larger."""

HELD, STEP = "◂", "¦"
"""Characters for the end of what the server has cached, and for the size from which the whole request costs more."""

SOFT, WARN = ":", "!"
"""Free as far as is known, but within the error of the estimate; and the end of a part that is over its own budget."""

MIN_BOUND_COLUMNS = 24
"""Width in columns from which the part beyond a learned limit is shown."""

SIGNS: Mapping[SectionName, str] = {name: part.letter for name, part in PARTS.items()}
"""The default character of each part, where a theme has no other."""


class Cell(msgspec.Struct, frozen=True):
    """One column of the bar. `ghost`: a prepared compaction would free it; `over`: beyond the limit; `soft`: free, but perhaps
    used already; `warn`: of a part over its own budget; `beyond`: no part of the window, though it once was said to be.
    `eighths`: what the part before it fills of a free cell."""

    char: str
    section: SectionName
    tick: TickName = ""
    ghost: bool = False
    over: bool = False
    soft: bool = False
    warn: bool = False
    beyond: bool = False
    eighths: int = 0


class Tick(msgspec.Struct, frozen=True):
    """A mark on the scale: its column, and the tokens it stands for."""

    name: TickName
    char: str
    column: int
    tokens: int


def layout_bar(
    context_usage: ContextUsage, width: int, ghost: int = 0, signs: Mapping[SectionName, str] = SIGNS, held: int = 0
) -> tuple[Cell, ...]:
    """Exactly `width` cells: the parts in their order, free ones, what is reserved at the right end, and the ticks.

    One scale, the window; behind one that was learned from a refusal lies what was believed before, as far as there is room for
    it (a quarter of the bar at most). The fill is to scale, and one cell at least; where it has fewer cells than there are parts,
    the largest have one. Over the limit nothing is free and the reserved end is eaten into.
    `ghost` is the tokens a prepared compaction would leave, 0 for none. A window that is not known is all free. `signs` is
    one character a part, `held` the tokens that a server holds.
    """
    if width <= 0:
        return ()
    if not is_measured(context_usage):
        return (_cell(signs, "free"),) * width
    beyond = _beyond_columns(context_usage, width)
    return _window(context_usage, width - beyond, ghost, signs, held) + _beyond(beyond)


def _window(
    context_usage: ContextUsage, width: int, ghost: int, signs: Mapping[SectionName, str], kept: int
) -> tuple[Cell, ...]:
    held: list[tuple[SectionName, int]] = [
        (s.name, s.tokens) for s in context_usage.sections if s.name not in OUTSIDE and s.tokens > 0
    ]
    reserved = _reserved_columns(context_usage, width)
    room = width - reserved
    ticks = _ticks(context_usage, room)
    filled, eighths = _filled(context_usage, room, reserved, ticks) if held else (0, 0)
    cells: list[Cell] = []
    warned = {s.name for s in context_usage.over_budget}
    for (name, _), columns in zip(held, _columns([n for _, n in held], filled), strict=True):
        cells += _part_cells(_cell(signs, name), columns, warn=name in warned)
    cells += [_cell(signs, "free")] * (room - filled)
    cells += [_cell(signs, "reserved")] * (width - len(cells))
    for column in range(room, filled):
        cells[column] = msgspec.structs.replace(cells[column], over=True)
    if 0 < ghost < context_usage.used:
        for column in range(max(1, round(ghost * room / context_usage.limit)), filled):
            cells[column] = msgspec.structs.replace(cells[column], char=cells[column].char.lower(), ghost=True)
    for column in range(
        filled, min(room, round(context_usage.used * (1 + context_usage.band) * room / context_usage.limit))
    ):
        cells[column] = msgspec.structs.replace(cells[column], char=SOFT, soft=True)
    if eighths:
        cells[filled] = msgspec.structs.replace(cells[filled], eighths=eighths)
    return _ticked(cells, (*_cache_ticks(context_usage, room, filled, kept), *ticks))


def _part_cells(cell: Cell, columns: int, *, warn: bool) -> list[Cell]:
    if not warn:
        return [cell] * columns
    cell = msgspec.structs.replace(cell, warn=True)
    end = [msgspec.structs.replace(cell, char=WARN)] if columns > 1 else []
    return [cell] * (columns - len(end)) + end


def _beyond_columns(context_usage: ContextUsage, width: int) -> int:
    """Columns for what was believed beyond the window: to scale, where that leaves three quarters to the window."""
    if context_usage.claimed_window <= context_usage.window or width < MIN_BOUND_COLUMNS:
        return 0
    return min(width // 4, max(1, round(width * (1 - context_usage.window / context_usage.claimed_window))))


def _beyond(columns: int) -> tuple[Cell, ...]:
    if not columns:
        return ()
    return (Cell(LEARNED, "reserved", "learned", beyond=True), *[Cell(" ", "reserved", beyond=True)] * (columns - 1))


def _cell(signs: Mapping[SectionName, str], name: SectionName) -> Cell:
    return Cell(signs[name], name)


def _reserved_columns(context_usage: ContextUsage, width: int) -> int:
    if context_usage.reserved_output <= 0 or width < 4:
        return 0
    return min(width // 2, max(1, round(width * context_usage.reserved_output / context_usage.window)))


def _ticks(context_usage: ContextUsage, room: int) -> tuple[Tick, ...]:
    """Trigger and target, the trigger alone where both fall in one column; none where there is no room, or where compaction does
    not start by itself, now or later."""
    automatic = context_usage.automatic
    if room < 4 or not (automatic.at_trigger or automatic.resumes):
        return ()

    def at(tokens: int) -> int:
        return min(room - 1, max(1, tokens * room // context_usage.limit))

    trigger = Tick("trigger", TRIGGER, at(context_usage.trigger_tokens), context_usage.trigger_tokens)
    target = Tick("target", TARGET, at(context_usage.target_tokens), context_usage.target_tokens)
    return (target, trigger) if target.tokens > 0 and target.column < trigger.column else (trigger,)


def _cache_ticks(context_usage: ContextUsage, room: int, filled: int, held: int) -> tuple[Tick, ...]:
    """The marks where the cached part ends and where the price rises, as far as there is room and they are on the bar."""
    if room < MIN_BOUND_COLUMNS:
        return ()
    ticks: list[Tick] = []
    if held and filled > 1:
        column = round(held * filled / max(1, context_usage.used)) - 1
        ticks.append(Tick("held", HELD, min(filled - 1, max(0, column)), held))
    step = context_usage.price_step
    if step and step.above < context_usage.limit:
        ticks.append(Tick("step", STEP, min(room - 1, step.above * room // context_usage.limit), step.above))
    return tuple(ticks)


def _filled(context_usage: ContextUsage, room: int, reserved: int, ticks: Sequence[Tick]) -> tuple[int, int]:
    """Columns in use and eighths of the next one: to scale, as far as that belies neither a tick nor the limit."""
    used, limit = context_usage.used, context_usage.limit
    if used > limit:
        over = (used - limit) * reserved / max(1, context_usage.reserved_output)
        return room + min(reserved, max(1, round(over))), 0
    least = max([1, *(t.column + 1 for t in ticks if used >= t.tokens)])
    most = min([room if used == limit else max(1, room - 1), *(t.column for t in ticks if used < t.tokens)])
    columns, eighths = divmod(8 * used * room // limit, 8)
    return (columns, eighths) if least <= columns < most else (min(max(columns, least), most), 0)


def _columns(tokens: Sequence[int], columns: int) -> list[int]:
    """Columns for each part: one at least where there are enough, the rest in proportion; else one for each of the largest."""
    if columns < len(tokens):
        largest = sorted(range(len(tokens)), key=lambda i: -tokens[i])[:columns]
        return [int(i in largest) for i in range(len(tokens))]
    shares = apportion(columns, tokens)
    for i, columns_of_it in enumerate(shares):
        if columns_of_it == 0:
            shares[max(range(len(shares)), key=shares.__getitem__)] -= 1
            shares[i] = 1
    return shares


def _ticked(cells: Sequence[Cell], ticks: Sequence[Tick]) -> tuple[Cell, ...]:
    """The cells with the ticks drawn, except where a tick would hide a part's only cell."""
    drawn = list(cells)
    under = [cells[tick.column].section for tick in ticks]
    for tick in ticks:
        cell = cells[tick.column]
        if cell.section == "free" or sum(c.section == cell.section for c in cells) > under.count(cell.section):
            drawn[tick.column] = msgspec.structs.replace(cell, char=tick.char, tick=tick.name)
    return tuple(drawn)
