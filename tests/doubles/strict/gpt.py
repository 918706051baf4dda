"""OpenAI's Responses and Chat as their documentation has them, strictly: reasoning items come back as they were and in order, and
a cache is read only where an earlier request wrote it.

developers.openai.com/api/docs: "Prompt caching", "Reasoning models", "Conversation state".
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
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

LOOKED_UP = 20
"""Eligible messages, from the end, at whose ends a cache is looked for."""

LIFE = 1800.0
SMALLEST = 1024

UNFOLLOWED = "Item '{id}' of type 'reasoning' was provided without its required following item."
UNPRECEDED = "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
NOT_STORED = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, "
    "or remove this item from your input."
)
UNVERIFIED = "The encrypted content for item {id} could not be verified. Reason: it could not be decrypted or parsed."


class StrictOpenAI(StrictServer):
    """The server. `smallest` is the least prefix in tokens that is cached."""

    ROUTES = ("/v1/responses", "/v1/chat/completions")

    def __init__(
        self,
        script: Script = (),
        *,
        clock: Clock = time.monotonic,
        models: Sequence[Body] = (),
        smallest: int = SMALLEST,
    ) -> None:
        super().__init__(script, clock=clock, models=models or [{"id": "gpt-6.2-sol", "object": "model"}])
        self._smallest = smallest
        self._cache = PrefixCache(clock)
        self._encrypted: dict[str, tuple[Body, str]] = {}  # reasoning by its content, and what has to follow it
        self._led: dict[str, set[str]] = {}  # what follows a reasoning item, and the content of such items
        self._phases: dict[str, set[str]] = {}  # by the text of a message

    def error(self, refused: Refused) -> Body:
        return {"error": {"message": str(refused), "type": refused.kind, "param": "input", "code": None}}

    def take(self, exchange: Exchange) -> None:
        if exchange.path.endswith("responses"):
            self._take_items(exchange.body)
        else:
            self._take_messages(exchange.body)
        self._count(exchange)

    # ── what a request must be ──────────────────────────────────────────────────────────────────────────────────────

    def _take_items(self, body: Body) -> None:
        items = _items(body)
        if body.get("store") is not False:
            self.complaints.append("the request stays stored: no `store: false`")
        waiting: list[str] = []
        for place, item in enumerate(items):
            kind = item.get("type", "message")
            if kind != "function_call_output" and kind != "function_call" and waiting:
                raise Refused(f"No tool output found for function call {waiting[0]}.")
            if kind == "reasoning":
                self._check_reasoning(items, place)
            elif kind == "function_call":
                json.loads(item["arguments"])
                waiting.append(item["call_id"])
                self._check_led(items, place)
            elif kind == "function_call_output":
                if item["call_id"] not in waiting:
                    raise Refused(f"No tool call found for function call output with call_id {item['call_id']}.")
                waiting.remove(item["call_id"])
            elif kind == "message":
                self._check_message(items, place)
            else:
                raise Refused(
                    f"Invalid value: '{kind}'. Supported values are: 'message', 'reasoning', 'function_call', …"
                )
        if waiting:
            raise Refused(f"No tool output found for function call {waiting[0]}.")

    def _check_reasoning(self, items: Sequence[Body], place: int) -> None:
        item = items[place]
        content = item.get("encrypted_content")
        if not content:
            raise Refused(NOT_STORED.format(id=item.get("id")), 404)
        if content not in self._encrypted:
            raise Refused(UNVERIFIED.format(id=item.get("id")))
        known, following = self._encrypted[content]
        if {k: v for k, v in item.items() if k != "status"} != {k: v for k, v in known.items() if k != "status"}:
            raise Refused(UNVERIFIED.format(id=item.get("id")))
        after = items[place + 1] if place + 1 < len(items) else {}
        if following and _key(after) != following:
            raise Refused(UNFOLLOWED.format(id=item.get("id")))

    def _check_led(self, items: Sequence[Body], place: int) -> None:
        """What followed a reasoning item follows it still. With its own id it is refused without, else merely thought anew."""
        item = items[place]
        led = self._led.get(_key(item))
        before = items[place - 1] if place else {}
        if led and before.get("encrypted_content") not in led:
            if item.get("id"):
                reasoning = self._encrypted[min(led)][0]["id"]
                raise Refused(UNPRECEDED.format(id=item["id"], kind=item.get("type"), reasoning=reasoning))
            self.complaints.append(f"item {place} came without the reasoning that led to it")

    def _check_message(self, items: Sequence[Body], place: int) -> None:
        item = items[place]
        if not item.get("content"):
            raise Refused(f"Invalid 'input[{place}].content': empty array. Expected an array with minimum length 1.")
        if item["role"] == "assistant":
            words = _words(item)
            phases, phase = self._phases.get(words, {""}), item.get("phase", "")
            if phase not in phases:
                self.complaints.append(f"item {place}: phase {phase!r}, not {phases}")
            self._check_led(items, place)

    def _take_messages(self, body: Body) -> None:
        waiting: list[str] = []
        for place, message in enumerate(body["messages"]):
            role = message["role"]
            if role == "tool":
                if message["tool_call_id"] not in waiting:
                    raise Refused(
                        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                        "'tool_calls'."
                    )
                waiting.remove(message["tool_call_id"])
                continue
            if waiting:
                raise Refused(
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
                    f"The following tool_call_ids did not have response messages: {', '.join(waiting)}"
                )
            if not message.get("content") and not message.get("tool_calls"):
                raise Refused(f"Invalid value for 'messages[{place}].content': expected a string, got null.")
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if waiting:
            raise Refused(f"The following tool_call_ids did not have response messages: {', '.join(waiting)}")

    # ── the cache ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _count(self, exchange: Exchange) -> None:
        """Read at the longest end that was written before, write at the end of the last eligible message."""
        body = exchange.body
        items = _items(body) if "input" in body else body["messages"]
        head = ends([[body.get("tools") or [], body.get("instructions") or ""]], body["model"])[0]
        places = ends([_plain(item) for item in items], head.hash, head.tokens)
        eligible = _eligible(items)
        looked_up = [places[at] for at in eligible[-LOOKED_UP:]]
        leading = _leading(items)
        looked_up.append(places[leading] if leading is not None else head)
        held = [place for place in looked_up if self._cache.holds(place)]
        best = max(held, key=lambda place: place.tokens, default=None)
        if best:
            self._cache.renew(best)
        exchange.read = best.tokens if best else 0
        exchange.prompt = places[-1].tokens if places else head.tokens
        last: Place | None = places[eligible[-1]] if eligible else None
        if last and last.tokens >= self._smallest:
            exchange.written = max(0, last.tokens - exchange.read)
            self._cache.write(last, LIFE)

    # ── the reply ───────────────────────────────────────────────────────────────────────────────────────────────────

    def stream(self, exchange: Exchange, answer: Answer) -> AsyncIterator[bytes]:
        return self._responses(exchange, answer) if "input" in exchange.body else self._chat(exchange, answer)

    async def _responses(self, exchange: Exchange, answer: Answer) -> AsyncIterator[bytes]:
        body = exchange.body
        told = "reasoning.encrypted_content" in (body.get("include") or ())
        summarised = bool((body.get("reasoning") or {}).get("summary"))
        head: Body = {
            "id": self.new_id("resp"),
            "object": "response",
            "created_at": 1_790_000_000,
            "model": body["model"],
        }
        head |= {"error": None, "incomplete_details": None, "output": []}
        yield event("response.created", {"response": {**head, "status": "in_progress"}})
        output = [self._item(block, told, summarised) for block in answer.blocks]
        self._remember(output)
        for index, item in enumerate(output):
            begun = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
            begun |= {"arguments": ""} if item["type"] == "function_call" else {}
            begun |= {"summary": []} if item["type"] == "reasoning" else {}
            yield event("response.output_item.added", {"output_index": index, "item": begun})
            name, words = _growing(item)
            for at in range(0, len(words), 7):
                place = {"output_index": index, "item_id": item["id"], "content_index": 0, "summary_index": 0}
                yield event(f"response.{name}.delta", {**place, "delta": words[at : at + 7]})
            yield event("response.output_item.done", {"output_index": index, "item": item})
        if answer.cut:
            return
        usage = self._usage(exchange, answer, output)
        status, more = "completed", {}
        if answer.finish:
            status, more = "incomplete", {"incomplete_details": {"reason": answer.finish}}
        yield event(
            f"response.{status}", {"response": {**head, **more, "status": status, "output": output, "usage": usage}}
        )

    def _item(self, block: object, told: bool, summarised: bool) -> Body:
        match block:
            case Thought(text=text):
                summary = [{"type": "summary_text", "text": text}] if summarised and text else []
                item: Body = {"id": self.new_id("rs"), "type": "reasoning", "summary": summary}
                return item | ({"encrypted_content": f"gAAAA{self.new_id('enc')}-{weight(text)}"} if told else {})
            case Redacted():
                return {"id": self.new_id("rs"), "type": "reasoning", "summary": []} | (
                    {"encrypted_content": f"gAAAA{self.new_id('enc')}-1"} if told else {}
                )
            case Said(text=text, phase=phase):
                content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
                item = {"id": self.new_id("msg"), "type": "message", "role": "assistant", "content": content}
                return item | {"status": "completed"} | ({"phase": phase} if phase else {})
            case Use(name=name, arguments=arguments, id=id):
                item = {"id": self.new_id("fc"), "type": "function_call", "call_id": id or self.new_id("call")}
                return item | {"name": name, "arguments": arguments, "status": "completed"}
            case _:
                raise TypeError(block)

    def _remember(self, output: Sequence[Body]) -> None:
        for place, item in enumerate(output):
            if item["type"] == "message":
                self._phases.setdefault(_words(item), set()).add(item.get("phase", ""))
            if content := item.get("encrypted_content"):
                following = _key(output[place + 1]) if place + 1 < len(output) else ""
                self._encrypted[content] = (item, following)
                if following:
                    self._led.setdefault(following, set()).add(content)

    async def _chat(self, exchange: Exchange, answer: Answer) -> AsyncIterator[bytes]:
        body = exchange.body
        head: Body = {"id": self.new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1_790_000_000}
        head["model"] = body["model"]

        def chunk(delta: Body, finish: str | None = None, **more: Any) -> bytes:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            return f"data: {json.dumps({**head, 'choices': choices, **more})}\n\n".encode()

        yield chunk({"role": "assistant", "content": ""})
        made: list[Body] = []
        for block in answer.blocks:
            match block:
                case Said(text=text):
                    for at in range(0, len(text), 7):
                        yield chunk({"content": text[at : at + 7]})
                case Use(name=name, arguments=arguments, id=id):
                    index = len(made)
                    made.append({"id": id or self.new_id("call"), "name": name, "arguments": arguments})
                    function = {"name": name, "arguments": ""}
                    yield chunk(
                        {
                            "tool_calls": [
                                {"index": index, "id": made[-1]["id"], "type": "function", "function": function}
                            ]
                        }
                    )
                    for at in range(0, len(arguments), 7):
                        yield chunk(
                            {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + 7]}}]}
                        )
                case _:
                    pass  # the chat form does not tell thoughts
        if answer.cut:
            return
        yield chunk({}, answer.finish or ("tool_calls" if made else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = self._usage(exchange, answer, made)
            renamed = {
                "prompt_tokens": usage["input_tokens"],
                "completion_tokens": usage["output_tokens"],
                "total_tokens": usage["total_tokens"],
                "prompt_tokens_details": usage["input_tokens_details"],
                "completion_tokens_details": usage["output_tokens_details"],
            }
            yield f"data: {json.dumps({**head, 'choices': [], 'usage': renamed})}\n\n".encode()
        yield b"data: [DONE]\n\n"

    def _usage(self, exchange: Exchange, answer: Answer, output: Sequence[Body]) -> Body:
        thought = sum(weight(b.text) for b in answer.blocks if isinstance(b, Thought))
        completion = weight([item for item in output if item.get("type") != "reasoning"]) + thought
        exchange.usage = {
            "input_tokens": exchange.prompt,
            "input_tokens_details": {"cached_tokens": exchange.read, "cache_write_tokens": exchange.written},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": exchange.prompt + completion,
        }
        return exchange.usage


def _items(body: Body) -> list[Body]:
    given = body["input"]
    return [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given


def _words(item: Body) -> str:
    content = item.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _key(item: Body) -> str:
    """What an item is known by, with or without its id."""
    match item.get("type", "message" if item.get("role") else ""):
        case "function_call":
            return f"call {item['call_id']}"
        case "message":
            return f"message {_words(item)}"
        case "reasoning":
            return f"reasoning {item.get('encrypted_content')}"
        case other:
            return str(other)


def _plain(item: Body) -> Body:
    """Without marks, and without what is no part of the prompt."""
    bare = {name: value for name, value in item.items() if name not in {"id", "status"}}
    if isinstance(bare.get("content"), list):
        dropped = {"prompt_cache_breakpoint", "cache_control", "annotations", "logprobs"}
        bare["content"] = [
            {k: v for k, v in part.items() if k not in dropped} if isinstance(part, dict) else part
            for part in bare["content"]
        ]
    return bare


def _leading(items: Sequence[Body]) -> int | None:
    """The last of the developer messages a request begins with."""
    count = 0
    for item in items:
        if item.get("role") not in {"system", "developer"}:
            break
        count += 1
    return count - 1 if count else None


def _eligible(items: Sequence[Body]) -> list[int]:
    """User messages, the last of each group of results, the last of the leading developer messages."""
    leading = _leading(items)
    found = [leading] if leading is not None else []
    for place, item in enumerate(items):
        result = item.get("type") == "function_call_output" or item.get("role") == "tool"
        after = items[place + 1] if place + 1 < len(items) else {}
        followed = after.get("type") == "function_call_output" or after.get("role") == "tool"
        if item.get("role") == "user" or (result and not followed):
            found.append(place)
    return found


def _growing(item: Body) -> tuple[str, str]:
    """The name of the events that tell an item piece by piece, and its words."""
    match item["type"]:
        case "reasoning":
            return "reasoning_summary_text", "".join(part["text"] for part in item["summary"])
        case "message":
            return "output_text", _words(item)
        case _:
            return "function_call_arguments", item["arguments"]
