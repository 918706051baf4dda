"""Random conversations, as they come from outside: interleaved, late, duplicated, empty, broken."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Image, Message, Opaque, Reasoning, Text, ToolCall
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.view import View, compile

IDS = ("a", "b", "c", "call_1")
WORDS = (
    "", " \n", "hello", "Never touch main.py. We decided to use SQLite.", "p95 is 412 ms, port: 5432",
    "see https://example.org/x and src/app/db.py, commit 3fa91bc",
    "<conversation_summary>", "日本語の文章です。", "x" * 400, "word " * 300,
    "Traceback\nValueError: bad\n[exit code: 1]", "👩‍👩‍👧 e\u0301 " * 30, "line one\nline two\n" * 60,
)  # fmt: skip
ARGUMENTS = (
    "{}", "", '{"path": "src/app/db.py"}', '{"path":"src/app/db.py"}', '{"command": "pytest -q"}', "{broken", "[1]", "null",
    '{"path": 5}', '{"url": "https://example.org"}', '{"command": ["ls", "-l"]}',
    '{"path": "src/app/big.py", "content": "' + "naïve line\\n" * 400 + '"}', '{"edits": [' + "7, " * 900 + "[[[[[[[1]]]]]]]]}",
    '{"cut off": "' + "x" * 4000,
)  # fmt: skip

texts = st.sampled_from(WORDS) | st.text(max_size=30)
parts = st.lists(
    st.builds(Text, texts)
    | st.builds(Image, st.just("data:image/png;base64,AAAA"), st.integers(0, 4000), st.integers(0, 4000))
    | st.just(Opaque("input_audio", '{"type":"input_audio","input_audio":{}}')),
    max_size=3,
).map(tuple)
contents = texts | texts | texts | parts
calls = st.builds(
    ToolCall,
    st.sampled_from(IDS),
    st.sampled_from(["read_file", "shell", "edit_file", "grep"]),
    st.sampled_from(ARGUMENTS),
)
reasonings = st.none() | st.none() | st.builds(Reasoning, texts)


@st.composite
def messages(draw: st.DrawFn, max_size: int = 24) -> list[Message]:
    """Any interleaving whatever."""
    kinds = draw(st.lists(st.sampled_from(["user", "assistant", "calls", "tool", "tool", "system"]), max_size=max_size))
    history: list[Message] = []
    for seq, kind in enumerate(kinds, 1):
        match kind:
            case "calls":
                made = tuple(draw(st.lists(calls, min_size=1, max_size=3)))
                history.append(Message(seq, "assistant", draw(texts), calls=made, reasoning=draw(reasonings)))
            case "tool":
                history.append(Message(seq, "tool", draw(contents), call_id=draw(st.sampled_from(IDS))))
            case "assistant":
                history.append(Message(seq, "assistant", draw(texts), reasoning=draw(reasonings)))
            case _:
                history.append(Message(seq, "user" if kind == "user" else "system", draw(contents)))
    return history


@st.composite
def work(draw: st.DrawFn, max_turns: int = 5) -> list[Message]:
    """Agent work as it goes: turns of a question, rounds of calls with their results, and an answer."""
    history: list[Message] = []

    def add(**fields: object) -> None:
        history.append(msgspec.convert({"seq": len(history) + 1, **fields}, Message))

    if draw(st.booleans()):
        add(role="system", content="You are careful.")
    for _ in range(draw(st.integers(1, max_turns))):
        add(role="user", content=draw(texts))
        for _ in range(draw(st.integers(0, 6))):
            made = draw(st.lists(calls, min_size=1, max_size=2))
            add(role="assistant", content=draw(texts), calls=[msgspec.to_builtins(c) for c in made])
            for call in made:
                add(role="tool", content=draw(texts), call_id=call.id)
        if draw(st.booleans()):
            add(role="assistant", content=draw(texts))
    return history


def steered(groups: Sequence[Group], joins: Sequence[bool]) -> tuple[Group, ...]:
    """The groups with some of the user messages behind the first said while the turn before them ran."""
    made: list[Group] = []
    less = 0
    for group in groups:
        if group.kind == "user" and group.turn > 1:
            less += joins[group.turn % len(joins)]
        made.append(msgspec.structs.replace(group, turn=group.turn - less))
    return tuple(made)


histories = messages() | work()
ledgers = st.builds(
    lambda history, joins: Ledger(groups=steered(group_messages(history), joins)),
    histories,
    st.lists(st.booleans(), min_size=1, max_size=4),
)


def budget_of(limit: int, trigger: int, target: int) -> Budget:
    return Budget(window=Window(limit, "configured"), reserved=0, trigger=trigger, target=target)


def see(ledger: Ledger, options: PlanOptions, frame: Head | None = None) -> View:
    return compile(ledger, frame or Head(system="You are ctxchat."), options.counter, keep_reasoning=True)
