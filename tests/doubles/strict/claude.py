"""Anthropic's Messages as its documentation has them, strictly: what came before a signed thought may not change, nor the order
of thoughts; caches are read where marks find them.

platform.claude.com/docs: "Prefix checks on thinking blocks", "Prompt caching", "Mid-conversation system messages", "Tool search
tool".
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.doubles.strict.script import Answer, Redacted, Said, Script, Thought, Use
from tests.doubles.strict.server import (
    Body,
    Clock,
    Exchange,
    Place,
    PrefixCache,
    Refused,
    StrictServer,
    ends,
    event,
    weight,
)

THINKING = ("thinking", "redacted_thinking")
COMPACTION_BETA = "compact-2026-09-04"
MAX_INSTRUCTIONS_CHARS = 16_384
BINDING_BETA = "thinking-binding-controls-2026-08-01"
LOOK_BACK = 20
"""Blocks before a mark at whose ends a cache is looked for."""

LIVES = {"5m": 300.0, "1h": 3600.0}

USING_TOOLS = 346
"""Tokens that a request with tools costs besides them, as documented."""

BOUND = (
    "{place}: Invalid `signature` in `{kind}` block. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
NEEDS_BETA = f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
INVALID = "{place}: Invalid `signature` in `{kind}` block"
MODIFIED = (
    "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


@dataclass(frozen=True)
class Signed:
    """A thought that went out: itself as it was, all that stood before it, the thought before it, and which model had it."""

    block: Body
    prefix: str
    before: str
    model: str


class StrictClaude(StrictServer):
    """The server. `binds` False: only records (`mismatches`) what it would refuse; `system_inside` False: `role: system` among
    the messages is refused; `loads_late` False: so are tools that are deferred, and references to them; `smallest` is the least
    prefix in tokens that is cached; `compacts` False: a summary on demand is refused, as where the beta is not known."""

    ROUTES = ("/v1/messages",)

    def __init__(
        self,
        script: Script = (),
        *,
        clock: Clock = time.monotonic,
        models: Sequence[Body] = (),
        binds: bool = True,
        system_inside: bool = True,
        loads_late: bool = True,
        smallest: int = 512,
        compacts: bool = True,
    ) -> None:
        listed = models or [{"type": "model", "id": "claude-fable-5-2", "display_name": "Claude Fable 5.2"}]
        super().__init__(script, clock=clock, models=listed)
        self.mismatches: list[str] = []
        self._binds = binds
        self._system_inside = system_inside
        self._loads_late, self._compacts = loads_late, compacts
        self._smallest = smallest
        self._signed: dict[str, Signed] = {}
        self._cache = PrefixCache(clock)
        self._sent: dict[str, Body] = {}  # requests by the id of their reply, for diagnostics

    def error(self, refused: Refused) -> Body:
        return {"type": "error", "error": {"type": refused.kind, "message": str(refused)}, "request_id": "req_strict"}

    def take(self, exchange: Exchange) -> None:
        body = exchange.body
        for name in ("model", "messages", "max_tokens"):
            if name not in body:
                raise Refused(f"{name}: Field required")
        self._compaction(exchange)
        self._shape(body)
        self._tools(body)
        exchange.usage = {"dropped": self._bindings(exchange)}
        self._count(exchange)

    # ── what a request must be ──────────────────────────────────────────────────────────────────────────────────────

    def _compaction(self, exchange: Exchange) -> None:
        """A summary on demand: under its beta, with nothing that would be another request's."""
        body = exchange.body
        if "compaction" not in body:
            return
        if not self._compacts or COMPACTION_BETA not in exchange.headers.get("anthropic-beta", "").split(","):
            raise Refused("compaction: Extra inputs are not permitted")
        for other in ("context_management", "tool_choice", "stop_sequences"):
            if other in body:
                raise Refused(f"compaction: cannot be combined with `{other}`")
        asked = body["compaction"]
        if asked.get("type") != "summarize" or not asked.keys() <= {"type", "instructions"}:
            raise Refused("compaction: Input should be {'type': 'summarize'}")
        if len(asked.get("instructions", "")) > MAX_INSTRUCTIONS_CHARS:
            raise Refused(f"compaction.instructions: String should have at most {MAX_INSTRUCTIONS_CHARS} characters")

    def _shape(self, body: Body) -> None:
        """Roles, calls and their results, empty texts."""
        messages = body["messages"]
        if not messages or messages[0]["role"] != "user":
            raise Refused('messages: first message must use the "user" role')
        if messages[-1]["role"] == "assistant" and "compaction" not in body:
            raise Refused(PREFILL)
        waiting: list[str] = []
        before = ""
        for number, message in enumerate(messages):
            role, blocks = message["role"], _blocks(message)
            if role == "system":
                self._system(number, before, waiting, message)
                before = role
                continue
            if role not in {"user", "assistant"}:
                raise Refused(f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'")
            if not blocks:
                raise Refused(f"messages.{number}: all messages must have non-empty content")
            answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            if waiting and sorted(answered) != sorted(waiting):
                missing = ", ".join(sorted(set(waiting) - set(answered)) or answered)
                raise Refused(
                    f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}. "
                    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
                )
            if answered and not waiting:
                raise Refused(
                    f"messages.{number}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {answered[0]}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if any(b["type"] == "tool_result" for b in blocks[len(answered) :]):
                raise Refused(f"messages.{number}: `tool_result` blocks must come first")
            for place, block in enumerate(blocks):
                if block["type"] == "text" and not block["text"].strip() and role == "user":
                    raise Refused(
                        f"messages.{number}.content.{place}: text content blocks must contain non-whitespace text"
                    )
                if block["type"] == "text" and not block["text"]:
                    raise Refused(f"messages.{number}.content.{place}: text content blocks must be non-empty")
            waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
            if len(set(waiting)) != len(waiting):
                raise Refused(f"messages.{number}: `tool_use` ids must be unique")
            before = role
        if waiting:
            raise Refused(PREFILL)

    def _system(self, number: int, before: str, waiting: Sequence[str], message: Body) -> None:
        if not self._system_inside:
            raise Refused(f"messages.{number}.role: Input should be 'user' or 'assistant'")
        if before != "user" and not (before == "system" or message.get("output_config")):
            raise Refused(f"messages.{number}: a system message must follow a user message")
        if waiting:
            raise Refused(f"messages.{number}: a system message must not stand between `tool_use` and `tool_result`")

    def _tools(self, body: Body) -> None:
        """Tools that are loaded late, and what refers to them."""
        tools: list[Body] = body.get("tools") or []
        late = {tool["name"]: tool for tool in tools if tool.get("defer_loading")}
        for number, tool in enumerate(tools):
            if tool["name"] in late and not self._loads_late:
                raise Refused(f"tools.{number}.custom.defer_loading: Extra inputs are not permitted")
            if tool["name"] in late and tool.get("cache_control"):
                raise Refused(f"Tool '{tool['name']}' cannot have both defer_loading=true and cache_control set.")
        if late and len(late) == len(tools):
            raise Refused("All tools have defer_loading set. At least one tool must be non-deferred.")
        for message in body["messages"]:
            for name in _references(_blocks(message)):
                if name not in late:
                    raise Refused(f"Tool reference '{name}' not found in available tools")

    # ── what thoughts are bound to ──────────────────────────────────────────────────────────────────────────────────

    def _bindings(self, exchange: Exchange) -> list[Body]:
        """Refuse a thought whose beginning changed, or drop it and all later ones where that is asked for; what was dropped."""
        body, headers = exchange.body, exchange.headers
        wanted = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
        beta = BINDING_BETA in headers.get("anthropic-beta", "")
        if wanted and not beta:
            raise Refused("thinking.block_binding: Extra inputs are not permitted." + NEEDS_BETA)
        dropped: list[Body] = []
        last = ""
        for number, message in enumerate(body["messages"]):
            blocks = _blocks(message)
            for place, block in enumerate(blocks):
                if block["type"] not in THINKING:
                    continue
                at, kind = f"messages.{number}.content.{place}", block["type"]
                signature = block.get("signature") or block.get("data") or ""
                known = self._signed.get(signature)
                if known is None:
                    raise Refused(INVALID.format(place=at, kind=kind))
                if known.block != _bare(block):
                    raise Refused(MODIFIED.format(place=at))
                prefix = _prefix(body, body["messages"][:number], blocks[:place])
                fits = known.prefix == prefix and (not last or known.before == last)
                if not fits or dropped:
                    words = BOUND.format(place=at, kind=kind) + ("" if beta else NEEDS_BETA)
                    self.mismatches.append(f"{words} {_difference(known.prefix, prefix)}")
                    if self._binds and wanted != "drop_block":
                        raise Refused(words)
                    dropped.append({"type": "thinking_dropped", "path": at, "reason": "prefix_binding_mismatch"})
                last = signature
        return dropped

    def _remember(self, body: Body, blocks: Sequence[Body]) -> None:
        """What each thought of this reply is bound to."""
        sent = [b for m in body["messages"] for b in _blocks(m) if b["type"] in THINKING]
        last = (sent[-1].get("signature") or sent[-1].get("data")) if sent else ""
        for place, block in enumerate(blocks):
            if block["type"] in THINKING:
                signature = block.get("signature") or block["data"]
                self._signed[signature] = Signed(
                    block, _prefix(body, body["messages"], blocks[:place]), last or "", body["model"]
                )
                last = signature

    # ── the cache ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _count(self, exchange: Exchange) -> None:
        """Read at the mark that finds most, write at those behind it."""
        body = exchange.body
        blocks, late = _parted_tools(body)
        system = body.get("system") or []
        blocks += [{"type": "text", "text": system}] if isinstance(system, str) else system
        for message in body["messages"]:
            read = [block for block in _loaded(_blocks(message), late) if self._reads(body["model"], block)]
            blocks += [{**block, "role": message["role"]} for block in read]
        marks = [(place, block["cache_control"]) for place, block in enumerate(blocks) if block.get("cache_control")]
        if body.get("cache_control"):
            marks.append((len(blocks) - 1, body["cache_control"]))
        if len(marks) > 4:
            raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
        lives = [mark.get("ttl", "5m") for _, mark in marks]
        if lives != sorted(lives):  # 1h sorts before 5m
            raise Refused("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")
        besides = USING_TOOLS if body.get("tools") else 0
        places = ends([_bare(block) for block in blocks], body["model"], besides)  # a cache is one model's
        total = places[-1].tokens
        read = max((found for at, _ in marks if (found := self._found(blocks, places, at)) is not None), default=None)
        if read is not None:
            self._cache.renew(places[read])
        covered = places[read].tokens if read is not None else 0
        written = {"5m": 0, "1h": 0}
        for at, mark in marks:
            life = mark.get("ttl", "5m")
            if places[at].tokens >= self._smallest:
                written[life] += max(0, places[at].tokens - covered)
                covered = max(covered, places[at].tokens)
                self._cache.write(places[at], LIVES[life])
        exchange.read = places[read].tokens if read is not None else 0
        exchange.written, exchange.prompt = sum(written.values()), total
        exchange.usage |= {
            "input_tokens": total - exchange.read - exchange.written,
            "cache_read_input_tokens": exchange.read,
            "cache_creation_input_tokens": exchange.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
        }

    def _reads(self, model: str, block: Body) -> bool:
        """Whether this is no thought that the model skips: those of 5.2 no other one reads."""
        signed = self._signed.get(block.get("signature") or block.get("data") or "")
        return signed is None or model == signed.model or not signed.model.endswith("5-2")

    def _found(self, blocks: Sequence[Body], places: Sequence[Place], mark: int) -> int | None:
        """The longest prefix that is held, at most 20 blocks before a mark; neighbouring calls, and results, count as one."""
        seen = 0
        for at in range(mark, -1, -1):
            run = at < mark and blocks[at]["type"] == blocks[at + 1]["type"] if "type" in blocks[at] else False
            seen += not (run and blocks[at]["type"] in {"tool_use", "tool_result"})
            if seen > LOOK_BACK:
                return None
            if self._cache.holds(places[at]):
                return at
        return None

    # ── the reply ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def stream(self, exchange: Exchange, answer: Answer) -> AsyncIterator[bytes]:
        body = exchange.body
        shown = (body.get("thinking") or {}).get("display") == "summarized"
        blocks = [self._block(block, shown) for block in answer.blocks]
        usage = {k: v for k, v in exchange.usage.items() if k != "dropped"}
        if summarised := "compaction" in body:
            text = "".join(block.text for block in answer.blocks if isinstance(block, Said))
            blocks = [{"type": "compaction", "content": text, "signature": self.new_id("sig")}]
            counted, usage = usage, {"input_tokens": 0}
        self._remember(body, blocks)
        message: Body = {"id": self.new_id("msg"), "type": "message", "role": "assistant", "model": body["model"]}
        message |= {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        message |= {"input_transformations": exchange.usage["dropped"], "diagnostics": self._diagnosed(exchange)}
        self._sent[message["id"]] = body
        yield event("message_start", {"message": message})
        for index, block in enumerate(blocks):
            start, deltas = _parts(block)
            yield event("content_block_start", {"index": index, "content_block": start})
            for delta in deltas:
                yield event("content_block_delta", {"index": index, "delta": delta})
            yield event("content_block_stop", {"index": index})
        if answer.cut:
            return
        thinking = sum(weight(b.text) for b in answer.blocks if isinstance(b, Thought))
        output = weight(blocks) if blocks else 1
        exchange.usage["output_tokens"] = output
        reason = answer.finish or ("tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn")
        told: Body = {"output_tokens": output, "output_tokens_details": {"thinking_tokens": min(thinking, output)}}
        if summarised:  # what it took is told apart
            reason = "compaction"
            told = {"output_tokens": 0, "iterations": [{"type": "compaction", **counted, "output_tokens": output}]}
        yield event("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": told})
        yield event("message_stop", {})

    def _block(self, block: object, shown: bool) -> Body:
        match block:
            case Thought(text=text):
                return {"type": "thinking", "thinking": text if shown else "", "signature": self.new_id("sig")}
            case Redacted(data=data):
                return {"type": "redacted_thinking", "data": f"{data}{self.new_id('red')}"}
            case Said(text=text):
                return {"type": "text", "text": text}
            case Use(name=name, arguments=arguments, id=id):
                return {
                    "type": "tool_use",
                    "id": id or self.new_id("toolu"),
                    "name": name,
                    "input": json.loads(arguments),
                }
            case _:
                raise TypeError(block)

    def _diagnosed(self, exchange: Exchange) -> Body | None:
        """Why the cache missed, where the request names the reply before."""
        asked = exchange.body.get("diagnostics")
        if asked is None:
            return None
        before = self._sent.get(asked.get("previous_message_id") or "")
        if before is None:
            kind = "previous_message_not_found" if asked.get("previous_message_id") else ""
            return {"cache_miss_reason": {"type": kind} if kind else None}
        missed = {"cache_missed_input_tokens": exchange.prompt - exchange.read}
        for name in ("model", "system", "tools"):
            if _told(before, name) != _told(exchange.body, name):
                return {"cache_miss_reason": {"type": f"{name}_changed", **missed}}
        sent = exchange.body["messages"][: len(before["messages"])]
        if _canonical(sent) != _canonical(before["messages"]):
            return {"cache_miss_reason": {"type": "messages_changed", **missed}}
        return {"cache_miss_reason": None}


def _blocks(message: Body) -> list[Body]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _bare(value: Any) -> Any:
    """Without cache marks, however deep."""
    if isinstance(value, dict):
        return {name: _bare(inner) for name, inner in value.items() if name != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _canonical(value: object) -> str:
    return json.dumps(_bare(value), sort_keys=True)


def _prefix(body: Body, messages: Sequence[Body], blocks: Sequence[Body]) -> str:
    """All that stands before a thought, by value: system, tools, messages and what of its own message comes first; marks and
    thoughts left out."""
    tools, late = _parted_tools(body)
    told = [[message["role"], _spoken(_loaded(_blocks(message), late))] for message in messages]
    return _canonical([body.get("system") or [], tools, told, _spoken(blocks)])


def _parted_tools(body: Body) -> tuple[list[Body], dict[str, Body]]:
    """The tools of the beginning, and by name those that are loaded late."""
    tools: list[Body] = body.get("tools") or []
    late = {tool["name"]: tool for tool in tools if tool.get("defer_loading")}
    return [tool for tool in tools if tool["name"] not in late], late


def _told(body: Body, name: str) -> str:
    return _canonical(_parted_tools(body)[0] if name == "tools" else body.get(name))


def _references(blocks: Sequence[Body]) -> list[str]:
    return [
        part["tool_name"]
        for block in blocks
        if block["type"] == "tool_result" and isinstance(block["content"], list)
        for part in block["content"]
        if part["type"] == "tool_reference"
    ]


def _loaded(blocks: Sequence[Body], late: dict[str, Body]) -> list[Body]:
    """With the definition in the place of each reference, as the model reads it."""
    return [
        {**block, "content": [late.get(part.get("tool_name", ""), part) for part in block["content"]]}
        if block["type"] == "tool_result" and isinstance(block["content"], list)
        else block
        for block in blocks
    ]


def _spoken(blocks: Sequence[Body]) -> list[Body]:
    return [block for block in blocks if block["type"] not in THINKING]


def _difference(before: str, now: str) -> str:
    """Where two canonical texts part, for whoever reads a failed test."""
    at = next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    start = max(0, at - 60)
    return (
        f"\n  was …{before[start : at + 120]}\n  is  …{now[start : at + 120]}"
        if before != now
        else "(order of thoughts)"
    )


def _parts(block: Body) -> tuple[Body, list[Body]]:
    """A block as it begins, and what comes of it then."""
    match block["type"]:
        case "thinking":
            told = [{"type": "thinking_delta", "thinking": text} for text in _pieces(block["thinking"])]
            return {**block, "thinking": "", "signature": ""}, [
                *told,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in _pieces(block["text"])]
        case "tool_use":
            words = _pieces(json.dumps(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in words]
        case "compaction":
            return {**block, "content": None, "signature": ""}, [
                {"type": "compaction_delta", "content": block["content"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            return block, []


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
