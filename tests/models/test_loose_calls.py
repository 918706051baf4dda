"""Calls of loose servers: what each kind of real server sent, and that a second reading reads what was meant and nothing else."""

from __future__ import annotations

import json
import keyword
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.turn.model_calls import ArrivingReply
from ctxchat.core.call_arguments import fault_of, fields_of
from ctxchat.core.events import ReasoningDelta, TextDelta
from ctxchat.core.ports import ReplyEnd
from ctxchat.models import failures
from ctxchat.models.loose_calls import calls_in, true_arguments, true_name
from ctxchat.models.reply import ReplyBuilder

READ = {"properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}}
OFFERED = {"read_file": READ, "write_file": {}, "tracker__find_issue": {}, "other__find_issue": {}, "tracker__list": {}}


def reply_of(*deltas: dict[str, Any], finish: str = "stop", thinks_first: bool = False) -> tuple[str, str, ReplyEnd]:
    """The answer, the thoughts and the end of a stream of these deltas."""
    reply = ReplyBuilder("openai/m", OFFERED, thinks_first=thinks_first)
    pieces = [piece for delta in deltas for piece in reply.feed({"choices": [{"delta": delta}]})]
    reply.feed({"choices": [{"delta": {}, "finish_reason": finish}]})
    pieces += reply.flush()
    text = "".join(p.text for p in pieces if isinstance(p, TextDelta))
    thought = "".join(p.text for p in pieces if isinstance(p, ReasoningDelta))
    end = reply.end(None)
    return text[end.thoughts :], thought + text[: end.thoughts], end


def fragment(name: str = "", arguments: str = "", **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{**more, "function": {**({"name": name} if name else {}), "arguments": arguments}}]}


def called(end: ReplyEnd) -> list[tuple[str, Any]]:
    return [(call.name, fields_of(call.arguments)) for call in end.calls]


A, B = ("read_file", {"path": "a"}), ("read_file", {"path": "b"})


A_TEXT, B_TEXT = '{"path": "a"}', '{"path": "b"}'
NAME = "read_file"
PARALLEL: dict[str, list[dict[str, Any]]] = {
    "no id": [fragment(NAME, A_TEXT, index=0, id=""), fragment(NAME, B_TEXT, index=0, id="")],
    "no index, no id": [fragment(NAME, A_TEXT), fragment(NAME, B_TEXT)],
    "one index": [fragment(NAME, A_TEXT, index=0, id="x"), fragment(NAME, B_TEXT, index=0, id="y")],
    "no index, in pieces": [
        *(fragment(NAME, "", id="x"), fragment("", A_TEXT)),
        *(fragment(NAME, "", id="y"), fragment("", B_TEXT)),
    ],
    "glued": [fragment(NAME, A_TEXT + B_TEXT, index=0, id="x")],
    "an id a piece": [
        *(fragment(NAME, A_TEXT[:6], index=0, id="1"), fragment("", A_TEXT[6:], index=0, id="2")),
        fragment(NAME, B_TEXT, index=1),
    ],
    "id and name a piece": [
        *(fragment(NAME, A_TEXT[:6], index=0, id="1"), fragment(NAME, A_TEXT[6:], index=0, id="2")),
        fragment(NAME, B_TEXT, index=1, id="3"),
    ],
    "one chunk": [{"tool_calls": [*fragment(NAME, A_TEXT)["tool_calls"], *fragment(NAME, B_TEXT)["tool_calls"]]}],
}


@pytest.mark.parametrize("deltas", PARALLEL.values(), ids=PARALLEL)
def test_parallel_calls_are_told_apart(deltas: list[dict[str, Any]]) -> None:
    *_, end = reply_of(*deltas, finish="tool_calls")
    assert called(end) == [A, B] and end.calls[0].id != end.calls[1].id


FIELDS = st.dictionaries(
    st.text("abcdef_", min_size=1, max_size=6),
    st.one_of(
        st.text(max_size=12), st.integers(-9, 9), st.booleans(), st.none(), st.lists(st.text(max_size=3), max_size=3)
    ),
    min_size=1,
    max_size=4,
)


@given(
    st.lists(FIELDS, min_size=1, max_size=4),
    st.sampled_from(["right", "no index", "nought", "nothing", "an id a piece"]),
    st.data(),
)
def test_however_a_server_numbers_calls_and_wherever_it_cuts_them_they_come_out(
    calls: list[dict[str, Any]], how: str, data: st.DataObject
) -> None:
    deltas: list[dict[str, Any]] = []
    for place, fields in enumerate(calls):
        text = json.dumps(fields, ensure_ascii=data.draw(st.booleans()))
        cuts = [0, *sorted(data.draw(st.lists(st.integers(1, max(1, len(text) - 1)), max_size=3))), len(text)]
        pieces = [text[a:b] for a, b in pairwise(cuts) if b > a]
        for number, piece in enumerate(pieces):
            first = "write_file" if number == 0 else ""
            more: dict[str, Any] = {
                "right": {"index": place, "id": f"c{place}" if first else None},
                "no index": {"id": f"c{place}"},
                "nought": {"index": 0, "id": f"c{place}" if first else ""},
                "nothing": {},
                "an id a piece": {"index": place, "id": f"c{place}-{number}"},
            }[how]
            deltas.append(fragment(first, piece, **more))
    *_, end = reply_of(*deltas, finish="tool_calls")
    assert called(end) == [("write_file", fields) for fields in calls]


@given(FIELDS, st.data())
def test_arguments_that_are_nearly_json_are_read_as_they_were_meant(
    fields: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(fields, ensure_ascii=False)
    loose = data.draw(
        st.sampled_from(
            [
                text,
                json.dumps(text),
                json.dumps(json.dumps(text)),
                f"{{}}{text}",
                f"{text}{text}",
                f"[{text}]",
                f"json{text}",
                f"```json\n{text}\n```",
                f"<|constrain|>json<|message|>{text}<|call|>",
                f"{text}</tool_call>",
                f"{text}}}",
                repr(fields),
                f"\ufeff{text}\0",
                f"{{/* all */ {text[1:-1]}, // the end\n}}" if fields else text,
                f"{text[:-1]},",
                text[:-1] if fields else text,
                "{" + ", ".join(f"{k}: {json.dumps(v)}" for k, v in fields.items()) + "}",
                json.dumps({"x": "\n\t", **fields}).replace("\\n", "\n").replace("\\t", "\t"),
            ]
        )
    )
    (read,) = true_arguments(loose)
    assert (fields_of(read) or {}) | {"x": 0} == fields | {"x": 0}


@given(st.text(max_size=80))
def test_a_second_reading_never_stops_anybody(text: str) -> None:
    for read in true_arguments(text):
        assert read == text or fields_of(read) is not None
    calls_in(text, OFFERED)
    assert true_name(text, OFFERED) in {text, *OFFERED}
    assert bool(fault_of(text)) == (fields_of(text) is None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("read_file", "read_file"),
        ("functions.read_file:0", "read_file"),  # Kimi
        ("read_file<|channel|>commentary", "read_file"),  # gpt-oss
        ("read_file<|channel|>json", "read_file"),
        ("to=functions.read_file", "read_file"),
        ("default_api.read_file", "read_file"),  # Gemini
        ('"read_file"', "read_file"),
        ("read_file()", "read_file"),
        (" readFile", "read_file"),
        ("Read-File", "read_file"),
        ("list", "tracker__list"),
        ("tracker.list", "tracker__list"),
        ("mcp__tracker__list", "tracker__list"),
        ("find_issue", "find_issue"),  # of two servers: nobody knows which
        ("read_files", "read_files"),
        ("delete_file", "delete_file"),
        ("", ""),
    ],
)
def test_a_name_with_marks_on_it_or_in_other_capitals(name: str, meant: str) -> None:
    assert true_name(name, OFFERED) == meant


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"path": "a', "in the middle"),
        ('{"path": }', "near"),
        ("[1, 2]", "a list"),
        ("7", "a number"),
        ("read the file", "near"),
    ],
)
def test_what_cannot_be_read_is_told_by_what_is_wrong(arguments: str, why: str) -> None:
    assert true_arguments(arguments) == [arguments] and why in fault_of(arguments)


JSON = '{"name": "read_file", "arguments": {"path": "a"}}'
WRITTEN = {
    "hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "hermes, twice": f"<tool_call>{JSON}</tool_call>\n<tool_call>{JSON}</tool_call>",
    "hermes, not closed": f"<tool_call>\n{JSON}",
    "qwen coder": "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "claude": '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</function_calls>',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
    f"```json\n{A_TEXT}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
    f"{A_TEXT}<|tool_call_end|><|tool_calls_section_end|>",
    "gpt-oss": f"<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{A_TEXT}<|call|>",
    "mistral": f"[TOOL_CALLS]read_file[ARGS]{A_TEXT}",
    "mistral, a list": f"[TOOL_CALLS][{JSON}]",
    "llama": f'<|python_tag|>{{"name": "read_file", "parameters": {A_TEXT}}}',
    "llama, bare": f'{{"type": "function", "name": "read_file", "parameters": {A_TEXT}}}',
    "a fence": f"```json\n{JSON}\n```",
    "react": f"Action: read_file\nAction Input: {A_TEXT}",
    "react, and what it expects": f"Action: read_file\nAction Input: {A_TEXT}\nObservation:",
    "gemini": '```tool_code\nprint(default_api.read_file(path="a"))\n```',
    "gemma": "```tool_code\nread_file(path='a')\n```",
    "gemma's own": "<start_function_call>call:read_file{path:<escape>a<escape>}<end_function_call>",
    "llama 4": '[read_file(path="a")]',
    "cohere": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a"}}]<|END_ACTION|>',
    "apertus": '<|tools_prefix|>[{"read_file": {"path": "a"}}]<|tools_suffix|>',
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_call_written_as_text_is_one(kind: str, size: int) -> None:
    before = "" if kind in {"llama, bare", "a fence", "llama 4"} else "Let me look.\n"
    whole = before + WRITTEN[kind]
    text, _, end = reply_of(*({"content": whole[at : at + size]} for at in range(0, len(whole), size)))
    assert set(map(str, called(end))) == {str(A)} and text.strip() == before.strip() and end.finish == "tool_calls"


@pytest.mark.parametrize(
    "said",
    [
        'Models write:\n```\n<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>\n```',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call> is what Hermes writes.',
        '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>',
        '{"name": "Ada", "arguments": "none"}',
        '{"name": "read_file", "and": "words"} or so',
        "The tag <tool_call> begins one.",
        "[TOOL_CALLS] is Mistral's mark",
        "Action: read_file\nAction Input: the path, as JSON.",
        'Action: read_file\nAction Input: {"path": "a"}\nObservation: it says 7.\nSo the answer is 7.',
        "Action: delete_file\nAction Input: {}",
        "```tool_code\nread_file(path=open('x').read())\n```",
        "```tool_code\nimport os\nread_file(path='a')\n```",
        "```tool_code\nread_file('a', 3)\n```",
        '[read_file(path="a")] is how Llama writes it',
        "<|START_ACTION|>[]<|END_ACTION|>",
        "<start_function_call> begins Gemma's.",
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_words_about_calls_are_words(said: str, size: int) -> None:
    text, _, end = reply_of(*({"content": said[at : at + size]} for at in range(0, len(said), size)))
    assert (text, end.calls, end.finish) == (said, (), "stop")


@given(FIELDS)
def test_a_call_in_python_says_the_same_as_its_fields(fields: dict[str, Any]) -> None:
    python = ", ".join(f"{key}={value!r}" for key, value in fields.items() if not keyword.iskeyword(key))
    kept = {key: value for key, value in fields.items() if not keyword.iskeyword(key)}
    (call,) = calls_in(f"```tool_code\nwrite_file({python})\n```", OFFERED)
    assert call.name == "write_file" and fields_of(call.arguments) == kept


def test_the_form_before_tool_calls_is_read() -> None:
    deltas = [
        {"function_call": {"name": "read_file", "arguments": ""}},
        {"function_call": {"arguments": '{"path": "a"}'}},
    ]
    *_, end = reply_of(*deltas, finish="function_call")
    assert called(end) == [A] and end.finish == "tool_calls"


@pytest.mark.parametrize(
    "said",
    [
        '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</minimax:tool_call>',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">a'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        '<|tool_call|>[{"name": "read_file", "arguments": {"path": "a"}}]<|/tool_call|>',
        '<TOOLCALL>[{"name": "read_file", "arguments": {"path": "a"}}]</TOOLCALL>',
        '<tool_calls>[{"name": "read_file", "arguments": {"path": "a"}}]</tool_calls>',
        '<longcat_tool_call>{"name": "read_file", "arguments": {"path": "a"}}</longcat_tool_call>',
        "<seed:tool_call>\n<function=read_file>\n<parameter=path>a</parameter>\n</function>\n</seed:tool_call>",
        '<function=read_file>{"path": "a"}</function>',
        '<function=read_file>{"path": "a"}',
    ],
)
def test_other_families_write_calls_in_marks_of_their_own(said: str) -> None:
    for size in (1, 7, 1_000):
        text, _, end = reply_of(
            *({"content": f"I look.\n{said}"[at : at + size]} for at in range(0, len(said) + 8, size))
        )
        assert called(end) == [A] and text.strip() == "I look."


def test_arguments_that_are_an_object_already() -> None:
    call = {"index": 0, "id": "x", "function": {"name": "read_file", "arguments": {"path": "a"}}}
    assert called(reply_of({"tool_calls": [call]})[2]) == [A]


MARKS = [*'ab \n`<>|{}[]"/_:', "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<function=", "```", '{"name":', "<|end"]


@given(st.lists(st.sampled_from(MARKS), max_size=40).map("".join), st.integers(1, 20))
def test_text_without_calls_comes_through_whole(said: str, size: int) -> None:
    text, thought, end = reply_of(*({"content": said[at : at + size]} for at in range(0, len(said), size)))
    assert end.calls == () and thought == "" and text.strip() == said.strip()


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_an_end_of_thoughts_without_a_beginning(size: int) -> None:
    said = "They want X.\nSo Y.\n</think>\n\nThe answer is `</think>` and 42."
    text, thought, _ = reply_of(*({"content": said[at : at + size]} for at in range(0, len(said), size)))
    assert (text, thought.strip()) == ("The answer is `</think>` and 42.", "They want X.\nSo Y.")
    fenced = "See:\n```\n</think>\n```\nThat."
    assert reply_of({"content": fenced})[0] == fenced


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "<", "/think", ">", "```", "<think>"]), max_size=30).map("".join),
    st.booleans(),
    st.integers(1, 20),
)
def test_what_begins_with_thoughts_is_told_so_while_it_comes(said: str, ends: bool, size: int) -> None:
    """Where the model did so before; without an end it was the answer all the same."""
    said = f"x{said}{'</think>' if ends else ''}"
    deltas = [{"content": said[at : at + size]} for at in range(0, len(said), size)]
    text, thought, end = reply_of(*deltas, thinks_first=True)
    inside, mark, outside = said.partition("</think>")
    assert (thought, text, end.unthought) == (inside, outside.lstrip("\n") if mark else "", not mark)
    draft = ArrivingReply()
    for piece in (ReasoningDelta(thought), TextDelta(text), end):
        draft.add_piece(piece)
    message = draft.message(1, "")
    assert message.text == (text if mark else said) and draft.answered == bool(message.text.strip())
    assert reply_of(*deltas, finish="length", thinks_first=True)[2].unthought is False


def test_thoughts_that_a_server_tells_by_themselves_are_those() -> None:
    text, thought, end = reply_of({"reasoning_content": "Hm."}, {"content": "The answer."}, thinks_first=True)
    assert (text, thought, end.unthought) == ("The answer.", "Hm.", False)
    text, thought, _ = reply_of({"content": "<think>Hm.</think>The </think> answer."}, thinks_first=True)
    assert (text, thought) == ("The </think> answer.", "Hm.")
    said = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It.<|return|>"
    assert reply_of({"content": said}, thinks_first=True)[:2] == ("It.", "Hm.")
    calls = fragment(*("read_file", '{"path": "a"}'), index=0, id="x")
    assert reply_of({"content": "I look."}, calls, thinks_first=True)[2].unthought is False


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_the_marks_of_gpt_oss(size: int) -> None:
    said = "<|channel|>analysis<|message|>They want X.<|end|><|start|>assistant<|channel|>final<|message|>It is <|42|>.<|return|>"
    text, thought, _ = reply_of(*({"content": said[at : at + size]} for at in range(0, len(said), size)))
    assert thought == "They want X." and text.startswith("It is <|42|>.")
    calling = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + WRITTEN["gpt-oss"]
    text, thought, end = reply_of(*({"content": calling[at : at + size]} for at in range(0, len(calling), size)))
    assert (text, thought, called(end)) == ("", "Hm.", [A])


def test_a_call_that_was_cut_at_the_limit_is_not_mended() -> None:
    *_, end = reply_of(fragment("read_file", '{"path": "a", "text": "and so', index=0, id="x"), finish="length")
    assert end.finish == "length" and end.calls[0].arguments == '{"path": "a", "text": "and so'


def test_a_refusal_is_one() -> None:
    text, _, end = reply_of({"content": None, "refusal": "I cannot help with that."})
    assert (text, end.finish) == ("I cannot help with that.", "refusal")


def test_a_call_that_was_announced_and_is_not_there() -> None:
    for deltas, kind in (({"content": ""},), "server"), (({"reasoning": "Let me look."},), "interrupted"):
        reply = ReplyBuilder("openai/m", OFFERED)
        for delta in deltas:
            reply.feed({"choices": [{"delta": delta}]})
        reply.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
        reply.flush()
        failed = failures.of_end(reply, ended=True)
        assert failed and failed.kind == kind and "sent no call" in failed.text
