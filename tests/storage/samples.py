"""Conversations to store, and a strategy that makes any."""

from __future__ import annotations

import random
from typing import Any

from ctxchat.core.grouping import seal_round, single
from ctxchat.core.journal import Changed, Sealed
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.record import CompactionRecord, SideUsage


def user(seq: int, text: str, turn: int = 1) -> Group:
    return single("user", Message(seq, "user", text), turn)


def reply(seq: int, text: str, turn: int = 1) -> Group:
    return single("reply", Message(seq, "assistant", text), turn)


def round_of(seq: int, result: str, turn: int = 1, arguments: str = '{"path": "a.py"}') -> Group:
    call = ToolCall(f"call_{seq}", "read_file", arguments)
    answer = Message(seq + 1, "tool", result, call_id=call.id, name=call.name)
    return seal_round(Message(seq, "assistant", "Let me look.", calls=(call,)), [answer], turn)


def turns(many: int) -> list[Sealed]:
    """So many turns of four messages each: a question, a call, its result, an answer."""
    records: list[Sealed] = []
    for turn in range(1, many + 1):
        seq = 4 * turn - 3
        records += [
            Sealed((user(seq, f"question {turn} about harbour {turn * 7}", turn),)),
            Sealed((round_of(seq + 1, f"contents {turn} of the tide gauge", turn),)),
            Sealed((reply(seq + 3, f"answer {turn}", turn),)),
        ]
    return records


def compaction(id: str, *covers: str) -> Changed:
    summary = Group(f"s-{id}", "summary", (Message(0, "user", f"summary {id}"),), source=id)
    record = CompactionRecord(
        id,
        "manual",
        "summarize",
        "compacted",
        at="2026-01-02T03:04:05.000Z",
        model="haiku",
        before=SideUsage(1000, 40),
        after=SideUsage(200, 8),
        folded=covers,
        folded_messages=len(covers),
        summary=f"summary {id}",
        evidence="- ran make",
    )
    return Changed(Change(id, "compaction", edits=(Edit("digest", covers, summary),), record=record))


def nasty(rounds: int = 300, seed: int = 7) -> list[dict[str, Any]]:
    """What real exports hold: everything that is allowed, and most of what is not."""
    chance = random.Random(seed)
    wires: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief.", "name": "rules"},
        {"role": "tool", "tool_call_id": "early", "content": "a result before its call"},
    ]
    for turn in range(rounds):
        wires.append(
            {
                "role": "user",
                "content": chance.choice([f"turn {turn}", "", "日本語 🎉 \x1b[2J", [{"type": "text", "text": "part"}]]),
            }
        )
        ids = [chance.choice(["call_1", f"call_{turn}", f"c{chance.randrange(9)}"]) for _ in range(chance.randrange(4))]
        calls = [
            {
                "id": i,
                "type": "function",
                "function": {"name": chance.choice(["read", "shell"]), "arguments": _arguments(chance)},
            }
            for i in ids
        ]
        spoken: dict[str, Any] = {
            "role": "assistant",
            "content": chance.choice([None, "", "Looking.", [{"type": "refusal", "refusal": "no"}]]),
        }
        if chance.random() < 0.1:
            del spoken["content"]
        if calls or chance.random() < 0.2:
            spoken["tool_calls"] = calls
        wires.append(spoken)
        chance.shuffle(ids)
        for call in ids:
            if chance.random() < 0.8:
                wires.append(_result(chance, call))
            if chance.random() < 0.1:
                wires.append({"role": "system", "content": "a note in between"})
    wires.append({"role": "function", "name": "old", "content": "an old-style result"})
    wires.append({"role": "user", "name": "Ann", "content": _images()})
    wires.append({"role": "assistant", "content": "password=hunter2hunter2 my key is none of yours"})
    return wires


def _arguments(chance: random.Random) -> str:
    return chance.choice(['{"path": "a.py"}', "", "{", '{"a": 1} trailing', '"text"', '{"s": "\\u0000"}'])


def _result(chance: random.Random, call: str) -> dict[str, Any]:
    content = chance.choice(
        ["ok", "", None, [{"type": "text", "text": "x"}, {"type": "audio", "n": 1.5}], "cut \ud83d off", "«»\u2028"]
    )
    result: dict[str, Any] = {"role": "tool", "tool_call_id": call, "content": content}
    return result | ({"name": "read"} if chance.random() < 0.5 else {})


def _images() -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
