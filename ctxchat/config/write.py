"""Writes a single option into a person's TOML file: only its own line changes, comments and order stay.

Several edits of the text are proposed; the first one whose result parses to the wanted settings is written. A file for which none
does is left alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxchat.config.atomic import write_text
from ctxchat.config.check import KnownNames, check_settings
from ctxchat.config.consistency import build, contradictions
from ctxchat.config.effective import entry_points
from ctxchat.config.problems import ConfigFault, KeyPath, Problem, key_text
from ctxchat.config.toml_file import read_toml
from ctxchat.config.toml_positions import Layout, TomlTable, bare_key, layout, literal, parse_key
from ctxchat.config.trees import get, nested, overlay, without
from ctxchat.core.errors import UsageError

_BOM = "\ufeff"


def set_value(path: Path, key: str, value: object, *, known: KnownNames | None = None) -> None:
    """Write one option, creating the file where there is none.

    `key` is dotted, `value` a plain value as TOML has them. Raises UsageError for a key or value that is not allowed or
    contradicts the rest of the file, and for a file that cannot be edited safely; OSError from the disk.
    """
    parts = _parts(key)
    tree, faults = check_settings(nested(parts, value), known or entry_points)
    if not faults and get(tree, parts) is not None:
        faults = _contradictions(path, parts, get(tree, parts), known or entry_points)
    if faults:
        fault = faults[0]
        raise UsageError(Problem(fault.what, key_text(fault.path), fault.allowed, fault.nearest).text)
    checked = get(tree, parts)
    text, old = _read_settings(path)
    if get(old, parts) == checked and type(get(old, parts)) is type(checked):
        return
    wanted_tree = overlay(without(old, parts), nested(parts, checked))
    _write_first_valid(path, wanted_tree, _proposals(text, layout(text), parts, literal(checked)), key)


def own_value(path: Path, key: str) -> object:
    """The plain value that this file gives an option, None where it gives none. Raises UsageError for a file that cannot be
    read."""
    return get(_read_settings(path)[1], _parts(key))


def refused(key: str, value: object, *, known: KnownNames | None = None) -> str:
    """Why an option cannot have this plain value: `is 99, must be a whole number from 1 to 9`; empty where it can. Contradictions
    with the rest of the file are only found by `set_value`. Raises UsageError for an invalid key."""
    _, faults = check_settings(nested(_parts(key), value), known or entry_points)
    if not faults:
        return ""
    fault = faults[0]
    near = f"did you mean {fault.nearest}?" if fault.nearest else ""
    return ", ".join(part for part in (fault.what, fault.allowed, near) if part)


def unset_value(path: Path, key: str) -> None:
    """Remove one option, so that its default counts again; does nothing where it is not set. Raises as `set_value`."""
    parts = _parts(key)
    text, old = _read_settings(path)
    if get(old, parts) is not None:
        _write_first_valid(path, without(old, parts), _removals(text, layout(text), parts), key)


def _parts(key: str) -> tuple[str, ...]:
    """The parts of a dotted key. Raises UsageError for an invalid one."""
    try:
        return parse_key(key)
    except ValueError:
        raise UsageError(f"{key[:80]!r} is no key.", "Keys look like context.keep_recent.") from None


def _read_settings(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file of settings and its tree. Raises UsageError where it is not valid TOML."""
    file = read_toml(path)
    if file.problem:
        raise UsageError(file.problem.text, "Correct the file by hand first.")
    return file.text, file.tree or {}


def _contradictions(path: Path, parts: KeyPath, value: Any, known: KnownNames) -> list[ConfigFault]:
    """The contradictions that this edit would add to the file."""
    tree = check_settings(read_toml(path).tree or {}, known)[0]
    before = {f.path for f in contradictions(build(tree))}
    return [f for f in contradictions(build(overlay(tree, nested(parts, value)))) if f.path not in before]


def _write_first_valid(path: Path, wanted: dict[str, Any], proposals: Iterator[str], key: str) -> None:
    """Write the first proposed text that parses to the tree `wanted`."""
    for proposal in proposals:
        try:
            proposal.encode()
            parsed = tomllib.loads(proposal)
        except UnicodeEncodeError:
            raise UsageError(
                f"{key} has half a character in it, which no file can hold.", "Nothing was changed."
            ) from None
        except (ValueError, RecursionError):
            continue
        if _equal_trees(parsed, wanted):
            bom = _BOM if path.exists() and path.read_bytes().startswith(_BOM.encode()) else ""
            write_text(path, bom + proposal)
            return
    raise UsageError(f"{path}: {key} could not be written without touching other lines.", "Edit the file by hand.")


def _proposals(text: str, places: Layout, parts: KeyPath, value: str) -> Iterator[str]:
    """Texts with the value: in place of the old one; in its table; in a new table at the end; as a dotted key in an outer table;
    as the first line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if old := places.places.get(parts):
        yield text[: old.value] + value + text[old.end :]
    if len(parts) > 1:
        yield from _at_table_end(text, places, parts, len(parts) - 1, value, newline)
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        yield f"{text}{gap}[{_dotted(parts[:-1])}]{newline}{_dotted(parts[-1:])} = {value}{newline}"
    for n in range(len(parts) - 2, -1, -1):
        yield from _at_table_end(text, places, parts, n, value, newline)
    yield f"{_dotted(parts)} = {value}{newline}{text}"


def _at_table_end(text: str, places: Layout, parts: KeyPath, n: int, value: str, newline: str) -> Iterator[str]:
    """Texts with the value at the end of the table that the first `n` parts name, a section or an inline table."""
    line = f"{_dotted(parts[n:])} = {value}"
    for section in places.sections:
        if section.path == parts[:n] and section.body:
            yield _with_line(text, section, line, newline)
    table = places.places.get(parts[:n])
    if n and table and text[table.value : table.value + 1] == "{":
        inner = text[table.value + 1 : table.end - 1].rstrip()
        yield f"{text[: table.value + 1]}{inner}{',' if inner.strip() else ''} {line} }}{text[table.end :]}"


def _removals(text: str, places: Layout, parts: KeyPath) -> Iterator[str]:
    """Texts without the option: without its whole line, or without the pair and a comma beside it."""
    place = places.places[parts]
    start = text.rfind("\n", 0, place.key) + 1
    stop = text.find("\n", place.end) + 1 or len(text)
    yield text[:start] + text[stop:]
    before, after = text[: place.key].rstrip(" \t"), text[place.end :].lstrip(" \t")
    yield before + after.removeprefix(",")
    yield before.removesuffix(",") + after


def _with_line(text: str, section: TomlTable, line: str, newline: str) -> str:
    """The text with a line added at the beginning of a table, indented like its header."""
    head = text[: section.body]
    if head and not head.endswith("\n"):
        head += newline
    indent = ""
    if section.path and head.splitlines():
        last = head.splitlines()[-1]
        indent = last[: len(last) - len(last.lstrip())]
    return f"{head}{indent}{line}{newline}{text[section.body :]}"


def _dotted(parts: KeyPath) -> str:
    return ".".join(bare_key(str(part)) for part in parts)


def _equal_trees(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two trees are equal; empty tables count as missing. Compared by `repr`, so that 1, 1.0 and true differ and nan
    equals itself."""
    return repr(_without_empty_tables(one)) == repr(_without_empty_tables(other))


def _without_empty_tables(tree: Any) -> Any:
    """The tree sorted and without empty tables, so that two trees can be compared."""
    if isinstance(tree, dict):
        kept = {k: _without_empty_tables(v) for k, v in sorted(tree.items())}
        return {k: v for k, v in kept.items() if v != {}}
    return [_without_empty_tables(v) for v in tree] if isinstance(tree, list) else tree
