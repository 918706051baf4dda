"""Putting a streamed reply together: chunks of OpenAI's form in, whichever transport they came by, pieces out, and the end with
calls, usage and the reply as it came.

Does not import litellm. A field of another type than it should have counts as left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
import regex

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.events import ReasoningDelta, TextDelta, Usage
from ctxchat.core.messages import Received, ToolCall
from ctxchat.core.ports import CallPiece, Finish, ModelPiece, ReplyEnd, ReplyNotes
from ctxchat.core.usage import tokens
from ctxchat.models.loose_calls import CallHolder, Offered, is_whole, true_arguments, true_name

_FINISH: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "compaction": "length",
    "pause_turn": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "safety": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}

_FAILED = {
    *(
        "ERROR",
        "abort",
        "network_error",
        "insufficient_system_resource",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
    ),
    *("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
}
"""What providers give as the reason where the reply is none: their own trouble, or a call that cannot be read."""

REASONS = {reason: reason for reason in ("model_length", "model_context_window_exceeded", *_FAILED)} | {
    "error": "ERROR"
}
"""The reasons beyond OpenAI's that are told apart here. `error` litellm takes for a lost connection."""

_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""OpenRouter's blocks that come in pieces, and the field that grows."""

_UNSIGNED = {"", "mistral"}
"""What litellm puts where a provider signs nothing."""


MAX_REPLY_CHARS = 4_000_000
"""Of text, thoughts and calls together: several times what the longest output limit there is comes to."""

MAX_CALLS = 128
"""In one reply."""


class ReplyTooLarge(Exception):
    """A server sends more than any model writes; the rest of it is not read."""


class _Slot:
    """A call that is being written."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.arguments = ""


class ReplyBuilder:
    """One reply of `model` (litellm's name), which was told of the `offered` tools. `empty` is true while nothing has come that
    an answer could consist of. `signed` False: what its thoughts are signed with is not sent back. `thinks_first`: the model is
    known to begin with thoughts that only their end marks, so that they are told as thoughts while they come."""

    def __init__(
        self, model: str = "", offered: Offered | None = None, *, signed: bool = True, thinks_first: bool = False
    ) -> None:
        self._model = model
        self._signed = signed
        self._offered = offered or {}
        self._text = ThinkSplitter(thinks_first=thinks_first)
        self._calls = CallHolder(self._offered)
        self._length = 0  # characters of the text so far
        self._thoughts: int | None = None  # of them, those that turned out to be thoughts
        self._slots: list[_Slot] = []
        self._by_index: dict[int, int] = {}
        self._thought = ""
        self._blocks: list[dict[str, Any]] = []  # in Anthropic's form, in order; calls by their place until the end
        self._details: list[dict[str, Any]] = []
        self._field = ""  # the thoughts came in
        self._text_signatures: list[str] = []  # Gemini's, of text; those of calls are in litellm's ids
        self._finish = ""
        self._refused = False
        self._chars = 0
        self.empty = True

    @property
    def finish(self) -> Finish:
        """Why the server says the reply ended."""
        return "refusal" if self._refused else _FINISH.get(self._finish, "stop")

    @property
    def finished(self) -> bool:
        """The server has said why the reply ended."""
        return bool(self._finish)

    @property
    def spoken(self) -> bool:
        """Some of the answer has come."""
        return self._length > (self._thoughts or 0) or self.unthought

    @property
    def thinks_first(self) -> bool:
        """The text began with thoughts that only their end marked."""
        return self._text.lone

    @property
    def unthought(self) -> bool:
        """What was taken for thoughts had no end: it is the answer, unless it was cut, or calls came of it."""
        return self._text.unended and self.finish == "stop" and not self._slots

    @property
    def announced(self) -> bool:
        """The server says that the model calls a tool, and no call has come."""
        return self._finish in {"tool_calls", "function_call"} and not self._slots

    @property
    def window_full(self) -> bool:
        """The reply ended because prompt and reply fill the model's window: an overflow, not a reply of its full length."""
        return self._finish == "model_context_window_exceeded"

    @property
    def failed(self) -> str:
        """The reason the provider gives for a reply that is none; empty for any other."""
        return self._finish if self._finish in _FAILED else ""

    def feed(self, chunk: Mapping[str, Any]) -> list[ModelPiece]:
        """The pieces in one chunk. Raises ReplyTooLarge."""
        choice = next(_objects(chunk.get("choices")), None)
        if choice is None:
            return []
        if finish := choice.get("finish_reason"):
            self._finish = REASONS.get(str(finish), str(finish))
        given = choice.get("delta")
        delta: Mapping[str, Any] = given if isinstance(given, dict) else {}
        text, thought = _split_content(delta.get("content"))
        for field in ("reasoning_content", "reasoning"):
            if not thought and (thought := _text(delta.get(field))):
                self._field = field
        pieces: list[ModelPiece] = [ReasoningDelta(thought)] if thought else []
        if thought:
            self._text.thinks_first = False  # its server tells thoughts by themselves
        self._weigh(delta)
        for block in _objects(delta.get("thinking_blocks")) if self._signed else ():
            self._block(block)
        for detail in _objects(delta.get("reasoning_details")):
            self._detail(detail)
        if not delta.get("tool_calls"):
            self._text_signatures += _text_signatures(delta.get("provider_specific_fields"))
        if refusal := _text(delta.get("refusal")):
            self._refused, text = True, text + refusal
        if text:
            self._add_text(text)
            pieces += self._spoken(self._text.feed(text))
        pieces += [self._fragment(fragment) for fragment in _objects(delta.get("tool_calls"))]
        if isinstance(one := delta.get("function_call"), dict) and not delta.get("tool_calls"):
            pieces.append(self._fragment({"index": 0, "function": one}))  # the form before `tool_calls`
        self.empty = self.empty and not pieces
        return pieces

    def _weigh(self, delta: Mapping[str, Any]) -> None:
        self._chars += _chars(delta)
        if self._chars > MAX_REPLY_CHARS:
            raise ReplyTooLarge(f"The reply was stopped: it is longer than {MAX_REPLY_CHARS:,} characters.")

    def flush(self) -> list[ModelPiece]:
        """What was held back. Call it when the stream is over, however it ended."""
        pieces = self._spoken(self._text.flush())
        held, calls = self._calls.calls()
        for call in calls if not self._slots else ():
            slot = _Slot("")
            slot.name, slot.arguments = call
            self._slots.append(slot)
            pieces.append(CallPiece(len(self._slots) - 1, call.name, call.arguments))
        if held:
            self._length += len(held)
            pieces.append(TextDelta(held))
        self.empty = self.empty and not pieces
        return pieces

    def end(
        self,
        usage: Usage | None,
        received: Received | None = None,
        notes: ReplyNotes = ReplyNotes(),  # noqa: B008 (frozen)
        *,
        priced: bool = False,
    ) -> ReplyEnd:
        """The end of a stream that is whole. `received` is the reply as its form had it, where the chunks were made from another
        form than OpenAI's; `priced` as in ReplyEnd."""
        calls = tuple(self._read_calls())
        finish = self.finish
        if finish in {"stop", "tool_calls"}:  # some servers say `stop` behind calls
            finish = "tool_calls" if calls or self.announced else "stop"
        received = received or self._received(calls)
        return ReplyEnd(
            finish, calls, usage, received, notes, priced, thoughts=self._thoughts or 0, unthought=self.unthought
        )

    def _read_calls(self) -> Iterator[ToolCall]:
        """The calls, read a second time where they are not as they should be; glued ones apart. Each has an id
        that no other has: a question about one is answered by it."""
        known: set[str] = set()
        for slot in self._slots:
            name = true_name(slot.name, self._offered)
            cut = self.finish == "length" and slot is self._slots[-1]
            for place, arguments in enumerate([slot.arguments] if cut else true_arguments(slot.arguments)):
                own = slot.id and not place and slot.id not in known
                id = slot.id if own else f"call_{uuid.uuid4().hex[:24]}"
                known.add(id)
                yield ToolCall(id, name, arguments)

    def _spoken(self, pieces: Pieces) -> list[ModelPiece]:
        """The pieces without what may be calls, which is held until the end."""
        passed: list[ModelPiece] = []
        for piece in pieces:
            if isinstance(piece, ReasoningDelta):
                passed.append(piece)
            elif text := self._calls.feed(piece.text):
                self._length += len(text)
                passed.append(TextDelta(text))
        if self._text.lone and self._thoughts is None and not self._text.thinks_first:
            self._thoughts = self._length - self._text.behind
        return passed

    def _received(self, calls: tuple[ToolCall, ...]) -> Received | None:
        """The signed blocks in the order they came, or what the text is signed with, or the field that thoughts came in (None in
        it: the thoughts as they were read)."""
        if any(block["type"] in {"thinking", "redacted_thinking"} for block in self._blocks):
            blocks = [_used(calls[block["place"]]) if block["type"] == "tool_use" else block for block in self._blocks]
            return Received("messages", self._model, msgspec.json.encode(blocks).decode())
        if self._text_signatures:
            return Received("signature", self._model, msgspec.json.encode(self._text_signatures).decode())
        fields = {"reasoning_details": self._details} if self._details else {self._field: None} if self._field else {}
        return Received("chat", self._model, msgspec.json.encode(fields).decode()) if fields else None

    def _add_text(self, text: str) -> None:
        if self._blocks and self._blocks[-1]["type"] == "text":
            self._blocks[-1]["text"] += text
        else:
            self._blocks.append({"type": "text", "text": text})

    def _fragment(self, fragment: Mapping[str, Any]) -> CallPiece:
        """A piece of a call, put to the call that it belongs to."""
        id, function = _text(fragment.get("id")), fragment.get("function") or {}
        name, given = _text(function.get("name")), function.get("arguments")
        arguments = msgspec.json.encode(given).decode() if isinstance(given, dict) else _text(given)
        place = self._find_call(fragment.get("index"), id, name, arguments)
        if place is None:
            place = len(self._slots)
            if place >= MAX_CALLS:
                raise ReplyTooLarge(f"The reply was stopped: it makes more than {MAX_CALLS} calls.")
            self._slots.append(_Slot(id))
            self._blocks.append({"type": "tool_use", "place": place})
        if isinstance(index := fragment.get("index"), int):
            self._by_index[index] = place
        slot = self._slots[place]
        slot.id = slot.id or id
        if name and name != slot.name and not slot.arguments:  # repeated by some servers, cut by others
            slot.name += name
        slot.arguments += arguments
        return CallPiece(place, slot.name, arguments)

    def _find_call(self, index: object, id: str, name: str, arguments: str) -> int | None:
        """Which call a fragment goes on with, None for another. They belong together by index, where there is none by id, else to
        the last one. Some servers send every call as number 0, or without number and id: a name behind a whole call, or that of
        another tool, begins another. Others send a new id with every piece of one."""
        known = next((place for place, slot in enumerate(self._slots) if id and slot.id == id), None)
        place = self._by_index.get(index) if isinstance(index, int) else known
        if place is None and not isinstance(index, int) and self._slots:
            place = len(self._slots) - 1
        if place is None or not name:
            return place
        slot = self._slots[place]
        if id and id == slot.id:
            return place
        whole = is_whole(slot.arguments)
        if id and slot.id:
            return None if whole or not slot.arguments or not arguments else place
        if (whole and arguments) or (slot.arguments and name != slot.name):
            return None
        return None if {name, slot.name} <= self._offered.keys() and name != slot.name else place

    def _block(self, block: Mapping[str, Any]) -> None:
        """Signed thoughts. litellm streams their text, then sends the block again with its signature, mostly whole."""
        text = block.get("thinking") or ""
        if block.get("type") == "redacted_thinking":
            self._blocks.append({"type": "redacted_thinking", "data": block.get("data")})
        elif (signature := block.get("signature") or "") not in _UNSIGNED:
            whole = text if text.startswith(self._thought) else self._thought + text
            self._blocks.append({"type": "thinking", "thinking": whole, "signature": signature})
            self._thought = ""
        else:
            self._thought += text

    def _detail(self, detail: dict[str, Any]) -> None:
        """OpenRouter's blocks: pieces of one block are joined, the order stays."""
        last, kind = self._details[-1] if self._details else {}, str(detail.get("type"))
        if kind in _GROWING and (last.get("type"), last.get("index")) == (kind, detail.get("index")):
            field = _GROWING[kind]
            grown = f"{last.get(field) or ''}{detail.get(field) or ''}"
            self._details[-1] = {**last, **{k: v for k, v in detail.items() if v is not None}, field: grown}
        else:
            self._details.append(dict(detail))


def _used(call: ToolCall) -> dict[str, Any]:
    """A call as a block of Anthropic's form."""
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": fields_of(call.arguments) or {}}


def _split_content(content: object) -> tuple[str, str]:
    """Answer and thought of a content, which Mistral sends in parts."""
    if not isinstance(content, list):
        return _text(content), ""
    parts = list(_objects(content))
    thoughts = (_split_content(part.get("thinking"))[0] for part in parts if part.get("type") == "thinking")
    return "".join(_text(part.get("text")) for part in parts if part.get("type") == "text"), "".join(thoughts)


def _chars(value: object) -> int:
    """Characters of all texts in a value."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_chars, inner))


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (inner for inner in value if isinstance(inner, dict)) if isinstance(value, list) else iter(())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text_signatures(fields: object) -> list[str]:
    """What litellm tells of the signatures in a chunk."""
    found = fields.get("thought_signatures") if isinstance(fields, dict) else None
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def joined(pieces: Iterable[ModelPiece]) -> Iterator[ModelPiece]:
    """The same with neighbouring texts as one, so that a burst does not cost the interface a step a token."""
    before: ModelPiece | None = None
    for piece in pieces:
        if isinstance(piece, TextDelta) and isinstance(before, TextDelta):
            before = TextDelta(before.text + piece.text)
        elif isinstance(piece, ReasoningDelta) and isinstance(before, ReasoningDelta):
            before = ReasoningDelta(before.text + piece.text)
        else:
            if before is not None:
                yield before
            before = piece
    if before is not None:
        yield before


def usage_from(raw: Mapping[str, Any], *, counted: bool, cost_usd: float = 0.0) -> Usage | None:
    """A server's count in our form: the prompt with its cached part once, the reply with its thoughts. None where the figures
    make no sense.

    `counted` is False where the server sent nothing and litellm made the figures up.
    """
    prompt, completion = tokens(raw.get("prompt_tokens")), tokens(raw.get("completion_tokens"))
    if not prompt:
        return None
    cached = _detail(raw, "prompt_tokens_details", "cached_tokens")
    for beside in ("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"):  # as others call it
        cached = cached or tokens(raw.get(beside))
    if cached > prompt:  # a server that leaves the cached part out of its prompt
        prompt += cached
    written, long = _written(raw)
    reasoning = _detail(raw, "completion_tokens_details", "reasoning_tokens")
    if (
        reasoning and tokens(raw.get("total_tokens")) == prompt + completion + reasoning
    ):  # xAI counts them beside the reply
        completion += reasoning
    written = min(written, prompt - cached)
    return Usage(
        *(prompt, completion, cached, min(reasoning, completion), cost_usd, not counted), written, min(long, written)
    )


def _written(raw: Mapping[str, Any]) -> tuple[int, int]:
    """Prompt tokens that went into the provider's cache, and those of them for an hour, wherever a form says them: OpenAI and
    OpenRouter, Anthropic and Qwen, litellm."""
    given = raw.get("prompt_tokens_details")
    details: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    places = (
        *((details, name) for name in ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")),
        (raw, "cache_creation_input_tokens"),
    )
    by_life = ((raw, "cache_creation"), (details, "cache_creation"), (details, "cache_creation_token_details"))
    long = max(_detail(place, group, "ephemeral_1h_input_tokens") for place, group in by_life)
    return max(long, *(tokens(place.get(name)) for place, name in places)), long


def _detail(raw: Mapping[str, Any], group: str, field: str) -> int:
    details = raw.get(group)
    return tokens(details.get(field)) if isinstance(details, Mapping) else 0


_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}

Pieces = list[TextDelta | ReasoningDelta]


_LONE = "</think>"
_HARMONY = ("<|channel|>", "<|start|>")
"""What a reply of gpt-oss begins with where its server leaves the marks in."""
_THOUGHT_MARK = regex.compile(r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>")
_OTHER_MARK = regex.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)<\|message\|>|<\|(?:end|return)\|>"
)


class ThinkSplitter:
    """Feed it text as it comes; a tag may be cut anywhere. Only a tag the reply begins with counts: one that is written
    about later is part of the answer. An end without a beginning counts once, where a line begins with it and no fence is open:
    `lone` then, and `behind` are the characters behind it in the pieces that brought it. With `thinks_first` a text begins with
    thoughts, until such an end; `unended` where none came."""

    def __init__(self, *, thinks_first: bool = False) -> None:
        self.thinks_first = thinks_first
        self._held = ""
        self._end = ""
        self._place: Literal["start", "thought", "gap", "answer", "harmony"] = "start"
        self._marked = False
        self._thought_before = False
        self._before = "\n"  # the last letter of the answer so far
        self._fences = 0
        self.lone = False
        self.behind = 0

    @property
    def unended(self) -> bool:
        """It was taken for thoughts from the beginning on, and no end of them has come."""
        return self.thinks_first and self._place == "thought" and not (self._thought_before or self._marked)

    def feed(self, text: str) -> Pieces:
        """The pieces that are certain by now."""
        self._held += text
        if self._place == "start":
            self._find_opening_tag()
        pieces: Pieces = []
        while True:
            place, left = self._place, len(self._held)
            if place == "harmony":
                pieces += self._between_marks()
            if self._place == "thought" and (thought := self._thought()):
                pieces.append(ReasoningDelta(thought))
            if self._place == "gap":
                self._held = self._held.lstrip("\n")
                self._place = ("harmony" if self._marked else "answer") if self._held else "gap"
            if (place, left) == (self._place, len(self._held)):
                break
        if self._place == "answer" and self._held:
            pieces += self._answer()
        return pieces

    def _answer(self) -> Pieces:
        """Text as it is, but for one end of a thought that never began."""
        if self.lone or self._thought_before:
            return [TextDelta(self._cut_held(len(self._held)))]
        pieces: Pieces = []
        at = self._held.find(_LONE)
        if at >= 0:
            before = self._before + self._held[:at]
            fenced = (self._fences + before.count("```")) % 2
            if before.rstrip(" ").endswith("\n") and not fenced:
                pieces += [TextDelta(self._cut_held(at))] if at else []
                self._cut_held(len(_LONE))
                self.lone = True
                self._held = self._held.lstrip("\n")
                self._place = "answer" if self._held else "gap"
                self.behind = len(self._held)
                return [*pieces, *([TextDelta(self._cut_held(len(self._held)))] if self._held else [])]
            at += len(_LONE)
        length = max(at, len(self._held) - _overlap(self._held, _LONE))
        text = self._cut_held(length)
        self._before, self._fences = text[-40:] or self._before, self._fences + text.count("```")
        return [TextDelta(text)] if text else []

    def _between_marks(self) -> Pieces:
        """The text of a reply in gpt-oss's own marks, which go; those of a call stay for whoever reads calls."""
        pieces: Pieces = []
        while (at := self._held.find("<|")) >= 0:
            if at:
                pieces.append(TextDelta(self._cut_held(at)))
            if found := _THOUGHT_MARK.match(self._held):
                self._cut_held(found.end())
                self._end, self._place = "<|end|>", "thought"
                return pieces
            if found := _OTHER_MARK.match(self._held):
                self._cut_held(found.end())
            elif any(mark.fullmatch(self._held, partial=True) for mark in (_THOUGHT_MARK, _OTHER_MARK)):
                return pieces
            else:  # a call, or words about marks
                pieces.append(TextDelta(self._cut_held(len(self._held))))
                self._place, self._thought_before = "answer", True
                return pieces
        length = len(self._held) - _overlap(self._held, "<|")
        return [*pieces, TextDelta(self._cut_held(length))] if length else pieces

    def flush(self) -> Pieces:
        """What was held back, when the reply is over."""
        held = self._cut_held(len(self._held))
        if not held.strip():
            return []
        return [ReasoningDelta(held) if self._place == "thought" else TextDelta(held)]

    def _find_opening_tag(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_HARMONY):
            self._held, self._place, self._marked = start, "harmony", True
            return
        for tag, end in _TAGS.items():
            if start.startswith(tag):
                self._held, self._end, self._place = start[len(tag) :], end, "thought"
                self._thought_before = True
                return
        if not any(tag.startswith(start) for tag in (*_TAGS, *_HARMONY)):
            self._end, self._place = _LONE, "thought" if self.thinks_first else "answer"

    def _thought(self) -> str:
        at = self._held.find(self._end)
        if at < 0:
            return self._cut_held(len(self._held) - _overlap(self._held, self._end))
        thought = self._cut_held(at)
        self._cut_held(len(self._end))
        self.lone = self.lone or self.unended
        self._place = "gap"
        return thought

    def _cut_held(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-n:])), 0)
