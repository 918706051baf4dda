"""The documentation's tables of keys and options, made of the same tables as the program: `python -m ctxchat.config.reference`
writes them anew, between the marks in the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ctxchat.config.atomic import write_text
from ctxchat.config.keys import ACTIONS, PRESETS
from ctxchat.config.option_words import limits
from ctxchat.config.options import options

BEGIN, END = "<!-- table: {} -->", "<!-- end of table -->"


def keys_table() -> str:
    """Every action with its keys in each preset."""
    rows = [(a.help, f"`{a.id}`", *(_keys(preset.get(a.id, a.keys)) for preset in PRESETS.values())) for a in ACTIONS]
    return _table(("", "in `[keys]`", *(f"`{name}`" for name in PRESETS)), rows)


def options_table() -> str:
    """Every option: what it does, what it may be."""
    told = [o for o in options() if not o.key.startswith("keys.")]
    rows = [(f"`{o.key}`", limits(o), f"{o.facts.help} {o.facts.effect}".strip()) for o in told]
    return _table(("option", "may be", "what it does"), rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "keys.md": ("keys", keys_table),
    "options.md": ("options", options_table),
}
"""The page of `docs/`, and its table."""


def page(text: str, name: str, table: str) -> str:
    """A page with its table made anew. Raises ValueError where the marks are missing."""
    before, begin, rest = text.partition(BEGIN.format(name))
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN.format(name)} … {END}")
    return f"{before}{begin}\n{table}{end}{after}"


def _keys(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys) or "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def write(docs: Path) -> None:
    """All pages of this folder. Raises OSError and ValueError."""
    for file, (name, made) in TABLES.items():
        write_text(docs / file, page((docs / file).read_text(encoding="utf-8"), name, made()), mode=0o644)
