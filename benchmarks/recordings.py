"""Recorded conversations, read from files: histories of other agents (what `ctxchat sessions import` reads), OpenAI-style JSON
lines, SWE-agent's trajectories, tau-bench's results.

benchmarks/recordings/*.jsonl.gz    sessions of ctxchat itself, see the README there
*.traj                              SWE-agent (its `trajectories/demonstrations`)
*.json                              tau-bench (its `historical_trajectories`), the longest of its conversations
*.jsonl                             also sessions of pi (its `test/fixtures`), Claude Code and others
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from ctxchat.core.journal import Record, Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.core.openai import from_wire
from ctxchat.importing.formats import Format, recognised
from ctxchat.importing.journal_records import Building
from ctxchat.importing.steps import Begin

OURS = Path(__file__).parent / "recordings"

LONGEST = 6
"""Conversations that are taken of a file that holds many."""

Wire = Mapping[str, Any]


class Recording(msgspec.Struct, frozen=True):
    """One conversation as it was recorded, without its system prompt, which a view never folds."""

    name: str
    messages: tuple[Message, ...]


def recordings(folder: Path = OURS) -> list[Recording]:
    """Every recording below a folder, in the order of their paths."""
    return [found for path in sorted(folder.rglob("*")) if path.is_file() for found in _read(path)]


def _read(path: Path) -> Iterator[Recording]:
    name = path.name.split(".", 1)[0]
    if form := recognised(path):
        yield from _imported(path, form)
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        yield _recording(name, rows)
    elif path.suffix == ".traj":
        yield _recording(path.stem, list(_actions(json.loads(path.read_text())["history"])))
    elif path.suffix == ".json":
        runs = sorted(json.loads(path.read_text()), key=lambda run: -len(json.dumps(run["traj"])))[:LONGEST]
        for number, run in enumerate(runs, 1):
            yield _recording(f"{name}-{number}", run["traj"])


def _recording(name: str, wires: Sequence[Wire]) -> Recording:
    kept = [wire for wire in wires if wire["role"] != "system"]
    return Recording(name, tuple(from_wire(wire, seq) for seq, wire in enumerate(kept, 1)))


def _actions(history: Sequence[Wire]) -> Iterator[Wire]:
    """Actions that were written in the text of a reply become calls of a shell, and what came back their results."""
    waiting = ""
    for number, entry in enumerate(e for e in history if not e.get("is_demo")):
        role, content = str(entry["role"]), entry["content"]
        if calls := cast("Sequence[Wire]", entry.get("tool_calls") or ()):
            waiting = ""
            yield {"role": "assistant", "content": content, "tool_calls": calls}
        elif role == "assistant" and str(entry.get("action") or "").strip():
            waiting = f"call_{number}"
            function = {"name": "bash", "arguments": json.dumps({"command": str(entry["action"]).strip()})}
            call = {"id": waiting, "type": "function", "function": function}
            yield {"role": "assistant", "content": entry.get("thought") or content, "tool_calls": [call]}
        elif waiting and role == "user":
            yield {"role": "tool", "content": content, "tool_call_id": waiting, "name": "bash"}
            waiting = ""
        elif role == "tool":
            yield {"role": "tool", "content": content, "tool_call_id": (entry.get("tool_call_ids") or [""])[0]}
        else:
            yield {"role": role, "content": content}


def _imported(path: Path, form: Format) -> Iterator[Recording]:
    """The sessions in a file of another agent's, as an import would keep them; what its program put in is left out, and its
    summaries: what they stand for is there."""
    built: list[Building] = []
    groups: list[list[Group]] = []
    for step in form.steps(path, lambda read: None):
        if isinstance(step, Begin):
            built.append(Building(path.stem, form.label, lambda name, data: name))
            groups.append([])
        if built:
            groups[-1] += _sealed(built[-1].add_step(step))
    for one, some in zip(built, groups, strict=True):
        some += _sealed(one.last_records())
    for number, some in enumerate(groups, 1):
        said = [m for g in some if g.kind not in {"note", "summary"} for m in g.messages if not m.synthetic]
        name = path.name.split(".", 1)[0]
        yield Recording(f"{name}-{number}" if len(groups) > 1 else name, tuple(said))


def _sealed(records: Iterable[Record]) -> Iterator[Group]:
    for record in records:
        if isinstance(record, Sealed):
            yield from record.groups
