"""Recorded conversations, read from files: OpenAI-style JSON lines, SWE-agent's trajectories, tau-bench's results.

benchmarks/recordings/*.jsonl.gz    sessions of ctxchat itself, see the README there
*.traj                              SWE-agent (its `trajectories/demonstrations`)
*.json                              tau-bench (its `historical_trajectories`), the longest of its conversations
*.jsonl                             also pi's own sessions (its `test/fixtures`)
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from ctxchat.core.messages import Message
from ctxchat.core.openai import from_wire

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
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        yield _recording(name, list(_of_pi(rows)) if rows and rows[0].get("type") == "session" else rows)
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


def _of_pi(rows: Sequence[Wire]) -> Iterator[Wire]:
    """The messages of one of pi's sessions, its own summaries left out: what they stand for is there."""
    for row in rows:
        message = row.get("message") or {}
        content = message.get("content") or []
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        calls = [part for part in parts if part["type"] == "toolCall"]
        match message.get("role"):
            case "user" if text:
                yield {"role": "user", "content": text}
            case "assistant" if text or calls:
                made = [
                    {
                        "id": c["id"],
                        "type": "function",
                        "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])},
                    }
                    for c in calls
                ]
                yield {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})
            case "toolResult":
                failed = "[error]\n" if message.get("isError") else ""
                yield {
                    "role": "tool",
                    "tool_call_id": message["toolCallId"],
                    "name": message["toolName"],
                    "content": failed + text,
                }
            case _:
                pass
