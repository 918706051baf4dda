"""Assembles a streamed reply: takes chunks in OpenAI's form from either transport, gives text, thinking and call pieces at once,
and at the end the tool calls, the usage, and the reply in the form to send back to its provider.

Does not import litellm. A field of the wrong type is treated as missing.
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
"""Finish reasons that mean there is no usable reply: a failure at the provider, or a call that cannot be parsed."""

REASONS = {reason: reason for reason in ("model_length", "model_context_window_exceeded", *_FAILED)} | {
    "error": "ERROR"
}
"""The finish reasons beyond OpenAI's that are distinguished here, and their names here. litellm takes `error` for a lost
connection, so it is named `ERROR`."""

_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The types of OpenRouter's reasoning blocks that arrive in pieces, and the field of each that is appended to."""

_UNSIGNED = {"", "mistral"}
"""The signatures litellm fills in where a provider does not sign its thinking."""


MAX_REPLY_CHARS = 4_000_000
"""Characters of text, thinking and calls together in one reply: several times the longest output limit of any model."""

MAX_CALLS = 128
"""Tool calls in one reply."""


class ReplyTooLarge(Exception):
    """A reply longer than any model writes; the remainder is not read."""


class _PartialCall:
    """A tool call whose pieces are still arriving."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.arguments = ""


class ReplyBuilder:
    """Builds one reply of `model` (litellm's name) to a request that offered the tools `offered`.

    `empty` is true until any text, thinking or call has arrived. `signed=False`: signed thinking is not kept to be sent back.
    `thinks_first`: this model is known to begin with thinking that has only a closing tag, so the text before that tag is shown
    as thinking while it arrives.
    """

    def __init__(
        self, model: str = "", offered: Offered | None = None, *, signed: bool = True, thinks_first: bool = False
    ) -> None:
        self._model = model
        self._signed = signed
        self._offered = offered or {}
        self._text = ThinkSplitter(thinks_first=thinks_first)
        self._calls = CallHolder(self._offered)
        self._length = 0  # characters of text so far
        self._thoughts: int | None = None  # how many of them turned out to be thinking
        self._slots: list[_PartialCall] = []
        self._by_index: dict[int, int] = {}
        self._thought = ""
        self._blocks: list[
            dict[str, Any]
        ] = []  # in Anthropic's form, in order; a call by its index in `_slots` until the end
        self._details: list[dict[str, Any]] = []
        self._field = ""  # name of the field the thinking arrived in
        self._text_signatures: list[str] = []  # Gemini's signatures of text; litellm puts those of calls into their ids
        self._finish = ""
        self._refused = False
        self._chars = 0
        self.empty = True

    @property
    def finish(self) -> Finish:
        """The reason the server gave for the end of the reply."""
        return "refusal" if self._refused else _FINISH.get(self._finish, "stop")

    @property
    def finished(self) -> bool:
        """Whether the server has said why the reply ended."""
        return bool(self._finish)

    @property
    def spoken(self) -> bool:
        """Whether some of the answer, beyond thinking, has arrived."""
        return self._length > (self._thoughts or 0) or self.unthought

    @property
    def thinks_first(self) -> bool:
        """Whether the text began with thinking that had only a closing tag."""
        return self._text.lone

    @property
    def unthought(self) -> bool:
        """Whether the text shown as thinking is really the answer: its closing tag never came, the reply was not cut off, and no
        calls followed."""
        return self._text.unended and self.finish == "stop" and not self._slots

    @property
    def announced(self) -> bool:
        """Whether the server says that the model calls a tool although no call arrived."""
        return self._finish in {"tool_calls", "function_call"} and not self._slots

    @property
    def window_full(self) -> bool:
        """Whether the reply ended because prompt and reply fill the context window: an overflow, not the output limit."""
        return self._finish == "model_context_window_exceeded"

    @property
    def failed(self) -> str:
        """The finish reason where it means that there is no usable reply; otherwise empty."""
        return self._finish if self._finish in _FAILED else ""

    def feed(self, chunk: Mapping[str, Any]) -> list[ModelPiece]:
        """The pieces that one chunk adds to the reply. Raises ReplyTooLarge."""
        choice = next(_objects(chunk.get("choices")), None)
        if choice is None:
            return []
        if finish := choice.get("finish_reason"):
            self._finish = REASONS.get(str(finish), str(finish))
        sent = choice.get("delta")
        delta: Mapping[str, Any] = sent if isinstance(sent, dict) else {}
        text, thought = _split_content(delta.get("content"))
        for field in ("reasoning_content", "reasoning"):
            if not thought and (thought := _text(delta.get(field))):
                self._field = field
        pieces: list[ModelPiece] = [ReasoningDelta(thought)] if thought else []
        if thought:
            self._text.thinks_first = False  # this server sends thinking in a field of its own
        self._check_size(delta)
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
            pieces += self._without_calls(self._text.feed(text))
        pieces += [self._fragment(fragment) for fragment in _objects(delta.get("tool_calls"))]
        if isinstance(function := delta.get("function_call"), dict) and not delta.get("tool_calls"):
            pieces.append(self._fragment({"index": 0, "function": function}))  # OpenAI's form before `tool_calls`
        self.empty = self.empty and not pieces
        return pieces

    def _check_size(self, delta: Mapping[str, Any]) -> None:
        self._chars += _chars(delta)
        if self._chars > MAX_REPLY_CHARS:
            raise ReplyTooLarge(f"The reply was stopped: it is longer than {MAX_REPLY_CHARS:,} characters.")

    def flush(self) -> list[ModelPiece]:
        """The pieces still held back. To be called when the stream is over, however it ended."""
        pieces = self._without_calls(self._text.flush())
        held, calls = self._calls.calls()
        for call in calls if not self._slots else ():
            slot = _PartialCall("")
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
        """The end of a stream that arrived completely. `received` is the reply in the provider's own form, where the chunks were
        converted from another form than OpenAI's; `priced` as in ReplyEnd."""
        calls = tuple(self._read_calls())
        finish = self.finish
        if finish in {"stop", "tool_calls"}:  # some servers say `stop` after calls
            finish = "tool_calls" if calls or self.announced else "stop"
        received = received or self._received(calls)
        return ReplyEnd(
            finish, calls, usage, received, notes, priced, thoughts=self._thoughts or 0, unthought=self.unthought
        )

    def _read_calls(self) -> Iterator[ToolCall]:
        """The calls, with wrong names and arguments repaired and calls that were sent as one separated. Each id is unique, since
        a call's result is matched to it by id."""
        used_ids: set[str] = set()
        for slot in self._slots:
            name = true_name(slot.name, self._offered)
            cut = self.finish == "length" and slot is self._slots[-1]
            for index, arguments in enumerate([slot.arguments] if cut else true_arguments(slot.arguments)):
                keeps_id = slot.id and index == 0 and slot.id not in used_ids
                id = slot.id if keeps_id else f"call_{uuid.uuid4().hex[:24]}"
                used_ids.add(id)
                yield ToolCall(id, name, arguments)

    def _without_calls(self, pieces: Pieces) -> list[ModelPiece]:
        """The pieces without text that may be tool calls, which is held back until the end."""
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
        """What to send back to the provider with this reply: its signed blocks in order, or else the signatures of its text, or
        else the field its thinking arrived in (with the value None: the thinking as it is in the record)."""
        if any(block["type"] in {"thinking", "redacted_thinking"} for block in self._blocks):
            blocks = [
                _tool_use(calls[block["place"]]) if block["type"] == "tool_use" else block for block in self._blocks
            ]
            return Received("messages", self._model, msgspec.json.encode(blocks).decode())
        if self._text_signatures:
            return Received("signature", self._model, msgspec.json.encode(self._text_signatures).decode())
        fields = {"reasoning_details": self._details} if self._details else {self._field: None} if self._field else {}
        return Received("chat", self._model, msgspec.json.encode(fields).decode()) if fields else None

    def _add_text(self, text: str) -> None:
        """Add a text to the blocks of the reply, to the last one where that is a text."""
        if self._blocks and self._blocks[-1]["type"] == "text":
            self._blocks[-1]["text"] += text
        else:
            self._blocks.append({"type": "text", "text": text})

    def _fragment(self, fragment: Mapping[str, Any]) -> CallPiece:
        """Append a fragment to the call it belongs to, or begin a new call. Raises ReplyTooLarge."""
        id, function = _text(fragment.get("id")), fragment.get("function") or {}
        name, sent = _text(function.get("name")), function.get("arguments")
        arguments = msgspec.json.encode(sent).decode() if isinstance(sent, dict) else _text(sent)
        place = self._find_call(fragment.get("index"), id, name, arguments)
        if place is None:
            place = len(self._slots)
            if place >= MAX_CALLS:
                raise ReplyTooLarge(f"The reply was stopped: it makes more than {MAX_CALLS} calls.")
            self._slots.append(_PartialCall(id))
            self._blocks.append({"type": "tool_use", "place": place})
        if isinstance(index := fragment.get("index"), int):
            self._by_index[index] = place
        slot = self._slots[place]
        slot.id = slot.id or id
        if name and name != slot.name and not slot.arguments:  # some servers repeat the name, others send it in pieces
            slot.name += name
        slot.arguments += arguments
        return CallPiece(place, slot.name, arguments)

    def _find_call(self, index: object, id: str, name: str, arguments: str) -> int | None:
        """The index in `_slots` of the call that a fragment continues; None where it begins a new call.

        A fragment is matched by its index, without an index by its id, without either it continues the last call. Some servers
        send index 0 for every call, or neither index nor id: there a name after complete arguments, or another tool's name,
        begins a new call. Others send a new id with every fragment of the same call.
        """
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
        """Collect a block of signed thinking. litellm streams its text, then sends the block again with its signature, usually
        with the whole text."""
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
        """Collect one of OpenRouter's reasoning blocks: pieces of the same block are joined, the order is kept."""
        last, kind = self._details[-1] if self._details else {}, str(detail.get("type"))
        if kind in _GROWING and (last.get("type"), last.get("index")) == (kind, detail.get("index")):
            field = _GROWING[kind]
            grown = f"{last.get(field) or ''}{detail.get(field) or ''}"
            self._details[-1] = {**last, **{k: v for k, v in detail.items() if v is not None}, field: grown}
        else:
            self._details.append(dict(detail))


def _tool_use(call: ToolCall) -> dict[str, Any]:
    """A call as a block in Anthropic's form."""
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": fields_of(call.arguments) or {}}


def _split_content(content: object) -> tuple[str, str]:
    """The answer and the thinking in a `content` field, which Mistral sends as a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    parts = list(_objects(content))
    thoughts = (_split_content(part.get("thinking"))[0] for part in parts if part.get("type") == "thinking")
    return "".join(_text(part.get("text")) for part in parts if part.get("type") == "text"), "".join(thoughts)


def _chars(value: object) -> int:
    """Characters in all strings inside a JSON value."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_chars, inner))


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (inner for inner in value if isinstance(inner, dict)) if isinstance(value, list) else iter(())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text_signatures(fields: object) -> list[str]:
    """Gemini's signatures in a chunk, from litellm's `provider_specific_fields`."""
    signatures = fields.get("thought_signatures") if isinstance(fields, dict) else None
    return [each for each in signatures if isinstance(each, str)] if isinstance(signatures, list) else []


def joined(pieces: Iterable[ModelPiece]) -> Iterator[ModelPiece]:
    """The pieces with neighbouring text and neighbouring thinking joined, so that the interface does not handle a burst token by
    token."""
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
    """A server's token counts as `Usage`: the prompt includes its cached part once, the reply includes its thinking. None where
    the figures make no sense.

    `counted` is False where the server sent no counts and litellm estimated them.
    """
    prompt, completion = tokens(raw.get("prompt_tokens")), tokens(raw.get("completion_tokens"))
    if not prompt:
        return None
    cached = _detail(raw, "prompt_tokens_details", "cached_tokens")
    for field in (
        "cache_read_input_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    ):  # other providers' names for it
        cached = cached or tokens(raw.get(field))
    if cached > prompt:  # this server does not include the cached part in its prompt count
        prompt += cached
    written, one_hour = _cache_writes(raw)
    reasoning = _detail(raw, "completion_tokens_details", "reasoning_tokens")
    if (
        reasoning and tokens(raw.get("total_tokens")) == prompt + completion + reasoning
    ):  # xAI does not include them in the reply
        completion += reasoning
    written = min(written, prompt - cached)
    return Usage(
        *(prompt, completion, cached, min(reasoning, completion), cost_usd, not counted),
        written,
        min(one_hour, written),
    )


def _cache_writes(raw: Mapping[str, Any]) -> tuple[int, int]:
    """Prompt tokens written to the provider's cache, and how many of those are kept for one hour, from whichever field reports
    them: OpenAI's and OpenRouter's, Anthropic's and Qwen's, litellm's."""
    sent = raw.get("prompt_tokens_details")
    details: Mapping[str, Any] = sent if isinstance(sent, Mapping) else {}
    totals = (
        *((details, name) for name in ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")),
        (raw, "cache_creation_input_tokens"),
    )
    by_lifetime = ((raw, "cache_creation"), (details, "cache_creation"), (details, "cache_creation_token_details"))
    one_hour = max(_detail(parent, group, "ephemeral_1h_input_tokens") for parent, group in by_lifetime)
    return max(one_hour, *(tokens(parent.get(name)) for parent, name in totals)), one_hour


def _detail(raw: Mapping[str, Any], group: str, field: str) -> int:
    details = raw.get(group)
    return tokens(details.get(field)) if isinstance(details, Mapping) else 0


_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}

Pieces = list[TextDelta | ReasoningDelta]


_LONE = "</think>"
"""The closing tag that counts without an opening one."""

_HARMONY = ("<|channel|>", "<|start|>")
"""What a gpt-oss reply begins with where its server does not remove the model's own marks (the Harmony format)."""
_THOUGHT_MARK = regex.compile(r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>")
_OTHER_MARK = regex.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)<\|message\|>|<\|(?:end|return)\|>"
)


class ThinkSplitter:
    """Separates thinking from answer in text that arrives in pieces; a tag may be split across them.

    An opening tag counts only at the beginning of the reply: a later one is part of the answer. A closing tag without an opening
    one counts once, at the beginning of a line outside a code fence: `lone` is then true, and `behind` is the number of
    characters after it in the pieces that the same call to `feed` returned. With `thinks_first` the text is thinking until such
    a closing tag; `unended` is true if none came.
    """

    def __init__(self, *, thinks_first: bool = False) -> None:
        self.thinks_first = thinks_first
        self._held = ""
        self._end = ""
        self._place: Literal["start", "thought", "gap", "answer", "harmony"] = "start"
        self._marked = False
        self._thought_before = False
        self._before = "\n"  # the last characters of the answer so far
        self._fences = 0
        self.lone = False
        self.behind = 0

    @property
    def unended(self) -> bool:
        """Whether the text was taken for thinking because of `thinks_first`, and no closing tag has come."""
        return self.thinks_first and self._place == "thought" and not (self._thought_before or self._marked)

    def feed(self, text: str) -> Pieces:
        """The pieces whose kind is certain after this text."""
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
        """The held text as answer, without the first closing tag that has no opening one."""
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
        """The text between gpt-oss's marks, without the marks; those of a call stay in, since `CallHolder` parses them."""
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
            else:  # a call, or text about such marks
                pieces.append(TextDelta(self._cut_held(len(self._held))))
                self._place, self._thought_before = "answer", True
                return pieces
        length = len(self._held) - _overlap(self._held, "<|")
        return [*pieces, TextDelta(self._cut_held(length))] if length else pieces

    def flush(self) -> Pieces:
        """The text still held back, when the reply is over."""
        held = self._cut_held(len(self._held))
        if not held.strip():
            return []
        return [ReasoningDelta(held) if self._place == "thought" else TextDelta(held)]

    def _find_opening_tag(self) -> None:
        """Decide, by the beginning of a text, whether it begins with thinking in tags, and which tag ends it."""
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
        """The thinking that has arrived; at its end tag, the text goes on as an answer."""
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
