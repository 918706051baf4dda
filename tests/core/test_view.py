"""Views are valid for any history, compiler and decorator; what goes on the wire alternates; what came in comes out equal."""

from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.compilers import (
    Compiler,
    all_sections,
    current_tool_trace,
    limited,
    redacted,
    selected_sections,
)
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import BROKEN_OFF, Image, Message, Text
from ctxchat.core.openai import FIELDS, from_wire, recorded, to_wire, wire
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View, compile, problems
from tests.core.histories import ARGUMENTS, IDS, histories, texts
from tests.core.test_ledger import changed
from tests.examples import examples

METER = TokenCounter()
HEAD = Head(
    system="You are ctxchat.",
    tools=(ToolSpec("read_file", "Reads.", {"type": "object"}),),
    memory=(ContextBlock("AGENTS.md", "use tabs"),),
    context=(ContextBlock("date", "today"),),
)


@st.composite
def compilers(draw: st.DrawFn) -> Compiler:
    compiler = draw(
        st.sampled_from([all_sections, current_tool_trace, selected_sections("summary"), selected_sections("messages")])
    )
    for decorate in draw(st.lists(st.sampled_from(["limit", "redact"]), max_size=3)):
        match decorate:
            case "limit":
                compiler = limited(compiler, draw(st.integers(0, 400)), METER)
            case _:
                pattern = draw(st.sampled_from(["[aeiou]", "word", r"\w+", r"\{", "input_audio"]))
                compiler = redacted(compiler, re.compile(pattern))
    return compiler


@examples(100, 400)
@given(changed(), compilers())
def test_every_view_is_valid(made: tuple[Ledger, list[Ledger]], compiler: Compiler) -> None:
    ledger = made[0]
    view = compile(ledger, HEAD, METER, compiler, keep_reasoning=True)
    assert problems(view) == []
    assert view.items[0].message.role == "system"
    assert view.items[0].message.text.startswith("You are ctxchat.")
    assert view.raw == sum(view.weights().values())
    current = {name for name in ledger.current if not ledger.group(name).first.empty}
    standing = [e for e in ledger.live() if e.group and current.intersection(e.covers)]  # itself, or what it was cut to
    # What is current again after a rewind may have left the view while it was not.
    assert ledger.rewound or current <= {name for e in standing for name in e.covers}
    assert {item.group for item in view.items}.issuperset(e.group.id for e in standing if e.group)


@examples(125, 500)
@given(changed(), compilers())
def test_the_wire_pairs_calls_and_its_arguments_are_objects(
    made: tuple[Ledger, list[Ledger]], compiler: Compiler
) -> None:
    view = compile(made[0], HEAD, METER, compiler, keep_reasoning=True)
    sent = wire(view.items)
    assert [m["role"] for m in sent].count("system") == 1
    waiting: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"]
        else:
            assert not waiting
            assert message["content"] or message.get("tool_calls")
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
        json.dumps(message)
    assert not waiting


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
wire_parts = st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, texts)
    | st.builds(lambda t, v: {"type": "text", "text": t, "cache_control": v}, texts, values)
    | st.builds(lambda d: {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": d}}, texts)
    | st.builds(lambda v: {"type": "input_audio", "input_audio": v}, values)
    | texts,
    max_size=3,
)
wire_calls = st.lists(
    st.builds(
        lambda i, n, a: {"id": i, "type": "function", "function": {"name": n, "arguments": a}},
        st.sampled_from(IDS),
        texts,
        st.sampled_from(ARGUMENTS) | st.dictionaries(texts, values, max_size=2),
    ),
    max_size=3,
)


@examples(100, 400)
@given(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
        optional={
            "content": st.none() | texts | wire_parts,
            "tool_calls": st.none() | wire_calls,
            "tool_call_id": st.none() | st.sampled_from(IDS),
            "name": st.none() | texts,
        },
    )
)
def test_what_came_in_comes_out_equal(message: dict[str, Any]) -> None:
    back = recorded(msgspec.json.decode(msgspec.json.encode(from_wire(message, 1)), type=Message))
    if "content" not in message and back.get("content") in ("", None):
        back.pop("content", None)
    assert {f: back[f] for f in FIELDS if f in back} == message


@examples(75, 300)
@given(histories)
def test_messages_and_views_survive_json(history: list[Message]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(history), type=list[Message]) == history
    view = compile(Ledger(groups=group_messages(history)), HEAD, METER)
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view


def test_the_current_question_stands_before_what_was_done_about_it() -> None:
    ledger = Ledger(groups=group_messages([Message(1, "user", "why? " * 50), Message(2, "assistant", "because")]))

    def answers_only(ledger: Ledger) -> tuple[Entry, ...]:
        return tuple(e for e in ledger.live() if e.group and e.group.kind == "reply")

    for compiler in (answers_only, limited(all_sections, 5, METER)):
        assert [i.group for i in compile(ledger, Head(), METER, compiler).items] == ["g1", "g2"]


def test_a_half_answer_is_told_as_one_unless_it_is_gone_on_with_and_keeps_its_parts() -> None:
    half = Message(2, "assistant", "half an ", interrupted=True)
    drawn = Message(2, "assistant", (Text("a picture:"), Image("data:,x", 8, 8)), interrupted=True)
    question, more, rest = Message(1, "user", "q"), Message(3, "user", "go on"), Message(3, "assistant", "answer")
    for history, said in [
        ([question, half], half.content),
        ([question, half, rest], half.content),
        ([question, half, more], f"half an\n{BROKEN_OFF}"),
        ([question, drawn, more], (*drawn.content, Text(BROKEN_OFF))),
    ]:
        view = compile(Ledger().append(*group_messages(history)), Head(), TokenCounter())
        assert view.items[1].message.content == said
        assert view.items[1].tokens == TokenCounter().message(view.items[1].message)


def test_a_delimiter_typed_by_a_person_stays_a_user_message() -> None:
    typed = "<conversation_summary>nonsense</conversation_summary>"
    view = compile(Ledger(groups=group_messages([Message(1, "user", typed)])), Head(), METER)
    assert [(i.section, i.message.text) for i in view.items] == [("user", typed)]


def test_redaction_reaches_imported_system_prompts() -> None:
    ledger = Ledger(groups=group_messages([Message(1, "system", "key is hunter2"), Message(2, "user", "hi")]))
    view = compile(ledger, Head(), METER, redacted(all_sections, re.compile("hunter2")))
    assert "hunter2" not in view.items[0].message.text
    assert view.items[0].message.text == "key is [redacted]"


def test_earlier_turns_keep_what_was_said_beside_their_calls() -> None:
    history = [
        Message(1, "user", "one"),
        from_wire(
            {"role": "assistant", "content": "let me look", "tool_calls": [{"id": "a", "function": {"name": "x"}}]}, 2
        ),
        Message(3, "tool", "result", call_id="a"),
        Message(4, "user", "two"),
    ]
    view = compile(Ledger(groups=group_messages(history)), Head(), METER, current_tool_trace)
    assert [i.message.text for i in view.items] == ["one", "let me look", "two"]


def test_calls_of_custom_tools_and_without_arguments_come_in_whole() -> None:
    calls = [
        {"id": "a", "type": "custom", "custom": {"name": "grammar", "input": "3 + 4"}},
        {"id": "b", "type": "function", "function": {"name": "look"}},
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": None}},
    ]
    message = from_wire({"role": "assistant", "content": None, "tool_calls": calls}, 1)
    assert [(c.name, c.arguments) for c in message.calls] == [
        ("grammar", '{"input":"3 + 4"}'),
        ("look", "{}"),
        ("look", "{}"),
    ]
    assert recorded(message)["tool_calls"] == calls


def test_halves_of_surrogate_pairs_do_not_get_in() -> None:
    message = from_wire({"role": "user", "content": [{"type": "text", "text": "a\ud83db"}]}, 1)
    assert message.text == "a?b"
    msgspec.json.encode(message)


def picture(data: bytes, kind: str = "png") -> Message:
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return from_wire({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}, 1)


def test_what_stands_beside_a_file_keeps_the_spaces_it_begins_with() -> None:
    parts = (Text("Monday\n", name="day"), Text("    return 1\nis wrong"), Text(" \n"), Text("a = 1\n", name="a.py"))
    assert "\n\n    return 1\nis wrong\n\n" in str(to_wire(Message(1, "user", parts))["content"])


def test_images_are_weighed_by_the_size_in_their_data() -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\0" * 1_000_000
    gif = b"GIF89a" + struct.pack("<HH", 20, 30) + b"\0" * 10
    exif = b"\xff\xe1" + struct.pack(">H", 1000) + b"\0" * 998
    jpeg = b"\xff\xd8" + exif + b"\xff\xc0\0\x11\x08" + struct.pack(">HH", 300, 400) + b"\0" * 20
    webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (799).to_bytes(3, "little") + (599).to_bytes(3, "little")
    sizes = [picture(d).content[0] for d in (png, gif, jpeg, webp, b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xff")]
    known = [(i.width, i.height) for i in sizes if isinstance(i, Image)]
    assert known == [(640, 480), (20, 30), (400, 300), (800, 600), (0, 0), (0, 0), (0, 0)]
    assert METER.message(picture(png)) < 1000
