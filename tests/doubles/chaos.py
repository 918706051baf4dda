"""A model server that goes wrong in every way known, by name, and checks each request it gets against the documented rules.

server = Chaos()
async with ModelDouble(server) as double:
    server.next(FAULTS["usage: null"])
    ... one turn; whatever is asked without a fault being next is answered well
assert not server.invalid
"""

from __future__ import annotations

import json
import traceback
from collections import deque
from typing import Any

from tests.doubles.replies import OVERFLOWS, Reply, breaks, refuses, says
from tests.doubles.rules import openai
from tests.doubles.wire import delta, sse

WELL = "All is well."

Body = dict[str, Any]


class Chaos:
    """A script for `ModelDouble`. `invalid` are the requests that a strict provider would have refused, and why."""

    def __init__(self) -> None:
        self.invalid: list[tuple[str, str]] = []
        self.requests = 0
        self._next: deque[Reply] = deque()

    def next(self, *replies: Reply) -> None:
        """What the next requests are answered with; those before are forgotten."""
        self._next = deque(replies)

    def __call__(self, body: Body) -> Reply:
        self.requests += 1
        try:
            json.dumps(body, ensure_ascii=False).encode()
            openai(body)
        except (AssertionError, ValueError, KeyError, TypeError) as problem:
            rule = traceback.extract_tb(problem.__traceback__)[-1].line
            self.invalid.append((f"{rule} {problem}".strip(), json.dumps(body)[-2000:]))
            return refuses(400, f"invalid request: {problem}")
        return self._next.popleft() if self._next else says(WELL)


def _raw(*chunks: Any, done: bytes = b"data: [DONE]\n\n") -> Reply:
    lines = (chunk if isinstance(chunk, bytes) else sse(chunk) for chunk in chunks)
    return Reply(raw=b"".join([*lines, done]))


def _text(text: Any, finish: Any = None) -> Body:
    return delta({}, {"content": text}, finish)


def _end(usage: Any = None, finish: Any = "stop") -> Body:
    end = delta({}, {}, finish)
    return {**end, "usage": usage} if usage is not None else end


def _usage(context_usage: Any) -> Reply:
    return _raw(_text("Some words."), _end(), {**delta({}, {}), "choices": [], "usage": context_usage})


def _called(name: Any = "echo", arguments: Any = '{"text": "x"}', id: Any = "call_x", **more: Any) -> Reply:
    call = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}
    return _raw(delta({}, {"role": "assistant", "tool_calls": [call]}), _end(finish="tool_calls"))


def _whole(message: Body, finish: str = "stop", **more: Any) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "double", "choices": [choice], **more}
    return Reply(raw=json.dumps(body).encode(), raw_type="application/json")


_COUNTED = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
_CALL = {"id": "call_x", "type": "function", "function": {"name": "echo", "arguments": '{"text": "x"}'}}

FIGURES: dict[str, Any] = {
    "null": {**_COUNTED, "prompt_tokens": None, "completion_tokens": None},
    "text": "many",
    "texts": {"prompt_tokens": "twelve", "completion_tokens": "3", "total_tokens": ""},
    "a list": [1, 2, 3],
    "true": {**_COUNTED, "prompt_tokens": True, "completion_tokens": False},
    "negative": {**_COUNTED, "prompt_tokens": -5, "completion_tokens": -1},
    "a thousand million": {"prompt_tokens": 10**9, "completion_tokens": 10**7, "total_tokens": 10**9 + 10**7},
    "beyond all integers": {**_COUNTED, "prompt_tokens": 10**30},
    "not a number": {**_COUNTED, "prompt_tokens": float("nan"), "completion_tokens": float("inf")},
    "junk inside": {**_COUNTED, "prompt_tokens_details": "x", "completion_tokens_details": [{"reasoning_tokens": {}}]},
    "more cached than there is": {**_COUNTED, "prompt_tokens_details": {"cached_tokens": 10**8}},
    "nothing in it": {},
    "a cost of millions": {**_COUNTED, "cost": 9e9},
}

NAMES = ["read file", "rm -rf", "ünï", "\x1b[2J\x1b]0;x\x07", "", "x" * 500, "7zip", None, 7, {"a": 1}]
IDS: list[Any] = ["", None, 5, "weird id/§" * 9, "i" * 500, "\x1b[2J"]
ARGUMENTS: dict[str, Any] = {
    "cut off": '{"text": ',
    "a list": "[1]",
    "a text": '"x"',
    "null": "null",
    "an object": {"text": "x"},
    "none": None,
    "twice the same key": '{"text": "a", "text": "b"}',
    "half a character": '{"text": "\\ud800"}',
    "not a number": '{"text": NaN}',
    "a deep nest": '{"text": ' + "[" * 5000 + "]" * 5000 + "}",
    "a hundred thousand letters": json.dumps({"text": "x " * 50_000}),
}

FAULTS: dict[str, Reply] = {
    **{f"usage: {name}": _usage(context_usage) for name, context_usage in FIGURES.items()},
    "usage: null at the end": _raw(_text("Some words."), _end(finish="stop"), {**_end(), "usage": None}),
    "usage: in each piece": _raw({**_text("Some "), "usage": "x"}, {**_text("words."), "usage": -1}, _end("y")),
    **{f"name: {name!r:.20}": _called(name=name) for name in NAMES},
    **{f"id: {id!r:.20}": _called(id=id) for id in IDS},
    **{f"arguments: {name}": _called(arguments=text) for name, text in ARGUMENTS.items()},
    "call: no function": _called(function=None),
    "call: index null": _called(index=None),
    "call: twice the same id": _raw(
        delta({}, {"tool_calls": [{**_CALL, "index": 0}, {**_CALL, "index": 1}]}), _end(finish="tool_calls")
    ),
    "call: finish says stop": _raw(delta({}, {"tool_calls": [{**_CALL, "index": 0}]}), _end(finish="stop")),
    "whole: words": _whole({"content": "Some words."}, usage=_COUNTED),
    "whole: a call": _whole({"content": None, "tool_calls": [_CALL]}, "tool_calls", usage=_COUNTED),
    "whole: nonsense": Reply(raw=b'{"hello": "there"}', raw_type="application/json"),
    "whole: a page": Reply(raw=b"<html>It works!</html>", raw_type="text/html"),
    "bytes: no character": _raw(sse(_text("Some ??? words.")).replace(b"???", b"\xff\xc3"), _end()),
    "bytes: cut inside a character": _raw(sse(_text("Some ??? words.")).replace(b"???", b"\xe2\x82"), _end()),
    "bytes: nul and escapes": _raw(_text("a\x00b\x1b[2J\x1b]0;x\x07\u202ec"), _end()),
    "bytes: half a character": _raw(sse(_text("Some ??? words.")).replace(b"???", b"\\ud83d"), _end()),
    "lines: ends of Windows": Reply(raw=_raw(_text("Some words."), _end()).raw.replace(b"\n", b"\r\n")),  # type: ignore[union-attr]
    "lines: remarks": _raw(b": ping\n\n", _text("Some words."), b": ping\n\n", _end()),
    "lines: no end mark": _raw(_text("Some words."), _end(), done=b""),
    "lines: the end first": _raw(b"data: [DONE]\n\n", _text("Some words."), _end()),
    "lines: garbage": _raw(b"hello\n\n", _text("Some words."), _end()),
    "pieces: no choices": _raw({**_text("x"), "choices": []}, _text("Some words."), _end()),
    "pieces: choices null": _raw({**_text("x"), "choices": None}, _text("Some words."), _end()),
    "pieces: delta null": _raw({**_text("x"), "choices": [{"index": 0, "delta": None}]}, _text("Some words."), _end()),
    "pieces: content a list": _raw(_text([{"type": "text", "text": "x"}]), _text("Some words."), _end()),
    "pieces: content a number": _raw(_text(5), _text("Some words."), _end()),
    "pieces: an unknown end": _raw(_text("Some words."), _end(finish="because")),
    "pieces: the end a number": _raw(_text("Some words."), _end(finish=5)),
    "pieces: a list for a chunk": _raw([1], _text("Some words."), _end()),
    "nothing": breaks("nothing", after=0),
    "no words": says(""),
    "reset": breaks("reset"),
    "reset at once": breaks("reset", after=0),
    "cut": breaks("cut"),
    "malformed": breaks("malformed"),
    "garbled": breaks("garbled"),
    "an error in the stream": breaks("error_event", error={"error": {"message": "Overloaded", "code": 529}}),
    "an error for a stream": breaks("error_body", after=0, error={"error": {"message": "Sorry", "code": 500}}),
    **{
        f"status {status}": refuses(status, "Sorry")
        for status in (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503)
    },
    **{f"too long: {server}": reply for server, reply in OVERFLOWS.items()},
}
"""Each as a reply. None of them hangs: what only time ends is tried in `tests/models/test_fault_matrix.py`."""
