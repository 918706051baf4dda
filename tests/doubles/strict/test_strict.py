"""The strict servers refuse what their documentation says they refuse, and count caches by its rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.doubles.strict import StrictClaude, StrictOpenAI, answers, appended, says, thought, use
from tests.doubles.strict.script import Redacted, Said

Body = dict[str, Any]
LONG = "word " * 2000
SUMMARIZED = {"type": "adaptive", "display": "summarized"}
MARK = {"cache_control": {"type": "ephemeral"}}


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def user(*blocks: Body | str) -> Body:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def result(id: str, words: str = "ok", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": id, "content": words, **more}


async def asked(server: StrictClaude, messages: list[Body], **more: Any) -> tuple[int, Any]:
    """The status, and the blocks of the reply or the words of the refusal."""
    headers = {k.replace("_", "-"): more.pop(k) for k in ("anthropic_beta",) if k in more}
    body = {"model": "claude-fable-5-2", "max_tokens": 100, "stream": True, "thinking": SUMMARIZED}
    body |= {
        "system": [text("Be brief.")],
        "tools": [{"name": "look", "input_schema": {}}],
        **more,
        "messages": messages,
    }
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:
        reply = await client.post(f"{server.root}/v1/messages", json=body, headers=headers)
    if reply.status_code != 200:
        return reply.status_code, reply.json()["error"]["message"]
    return 200, blocks_of(reply.text)


def blocks_of(stream: str) -> list[Body]:
    """The blocks that a client puts together."""
    blocks: list[Body] = []
    for line in stream.splitlines():
        if not line.startswith("data: "):
            continue
        told = json.loads(line[6:])
        if told["type"] == "content_block_start":
            blocks.append({**told["content_block"]})
            words = ""
        elif told["type"] == "content_block_delta":
            delta = told["delta"]
            if "partial_json" in delta:
                words += delta["partial_json"]
                blocks[-1]["input"] = json.loads(words) if words.endswith("}") else {}
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    blocks[-1][name] += delta[name]
    return blocks


ROUND = answers(thought("hm"), "First.", thought("and"), use("look", a=1), use("look", b=2))


async def a_round(server: StrictClaude) -> tuple[list[Body], list[Body]]:
    """What was asked, and the conversation with the reply and its results."""
    first = [user("What is there?")]
    status, blocks = await asked(server, first)
    assert status == 200
    uses = [b["id"] for b in blocks if b["type"] == "tool_use"]
    return blocks, [*first, {"role": "assistant", "content": blocks}, user(*(result(id) for id in uses))]


async def test_a_reply_that_comes_back_as_it_was_is_taken() -> None:
    async with StrictClaude([ROUND, says("Done.")]) as server:
        blocks, history = await a_round(server)
        assert [b["type"] for b in blocks] == ["thinking", "text", "thinking", "tool_use", "tool_use"]
        assert (await asked(server, history))[0] == 200
        assert not appended(server.exchanges)


def swapped(blocks: list[Body]) -> None:
    blocks[1], blocks[2] = blocks[2], blocks[1]


def first_gone(blocks: list[Body]) -> None:
    del blocks[0]


def text_gone(blocks: list[Body]) -> None:
    del blocks[1]


def all_gone(blocks: list[Body]) -> None:
    blocks[:] = [b for b in blocks if b["type"] != "thinking"]


def altered(blocks: list[Body]) -> None:
    blocks[2]["thinking"] += "!"


def unsigned(blocks: list[Body]) -> None:
    blocks[0]["signature"] = "made up"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (swapped, "bound to a different conversation"),
        (text_gone, "bound to a different conversation"),
        (altered, "cannot be modified"),
        (unsigned, "Invalid `signature`"),
        (first_gone, ""),
        (all_gone, ""),
    ],
)
async def test_the_order_of_blocks(edit: Callable[[list[Body]], None], words: str) -> None:
    async with StrictClaude([ROUND]) as server:
        _, history = await a_round(server)
        edit(history[1]["content"])
        status, said = await asked(server, history)
    assert (status, words in str(said)) == (400 if words else 200, True)


async def test_a_thought_missing_from_the_middle() -> None:
    async with StrictClaude([answers(thought("a"), "A", thought("b"), "B", thought("c"), "C")]) as server:
        _, blocks = await asked(server, [user("q")])
        history = [user("q"), {"role": "assistant", "content": [b for n, b in enumerate(blocks) if n != 2]}, user("go")]
        assert (await asked(server, history))[0] == 400


@pytest.mark.parametrize(
    "change",
    [
        {"system": [text("Be brief. It is Sunday.")]},
        {"tools": []},
        {"tools": [{"name": "look", "input_schema": {}}, {"name": "new", "input_schema": {}}]},
    ],
)
async def test_a_changed_head_is_refused_or_its_thoughts_dropped(change: Body) -> None:
    async with StrictClaude([ROUND]) as server:
        _, history = await a_round(server)
        assert "different conversation" in (await asked(server, history, **change))[1]
        binding = {**SUMMARIZED, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        assert (await asked(server, history, **change, thinking=binding))[0] == 400, "without the header"
        beta = "thinking-binding-controls-2026-08-01"
        assert (await asked(server, history, **change, thinking=binding, anthropic_beta=beta))[0] == 200
        assert len(server.accepted[-1].usage["dropped"]) == 2


async def test_marks_and_the_order_of_keys_are_no_change() -> None:
    async with StrictClaude([ROUND]) as server:
        _, history = await a_round(server)
        history[0]["content"] = [{**MARK, "text": "What is there?", "type": "text"}]
        assert (await asked(server, history, system=[text("Be brief.", **MARK)]))[0] == 200


async def test_thoughts_are_told_where_that_is_asked_for() -> None:
    async with StrictClaude([answers(thought("hm"), Redacted(), "Well.")]) as server:
        _, blocks = await asked(server, [user("q")], thinking={"type": "adaptive"})
    assert blocks[0]["thinking"] == "" and blocks[0]["signature"] and blocks[1]["type"] == "redacted_thinking"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "hi"}, user("q")],
        [user("q"), {"role": "assistant", "content": "half"}],
        [user("q"), user(result("toolu_9"))],
        [
            user("q"),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
            user("x"),
        ],
        [user("")],
        [{"role": "system", "content": "first"}, user("q")],
        [user("q"), {"role": "assistant", "content": "a"}, {"role": "system", "content": "behind"}, user("q")],
    ],
)
async def test_what_is_no_conversation(messages: list[Body]) -> None:
    async with StrictClaude() as server:
        assert (await asked(server, messages))[0] == 400


async def test_users_in_a_row_and_inserted_system_messages() -> None:
    inside = [user("a"), user("b"), {"role": "system", "content": "the mode is plan"}]
    async with StrictClaude() as server, StrictClaude(system_inside=False) as older:
        assert (await asked(server, inside))[0] == 200
        assert (await asked(older, inside))[0] == 400


class HeldClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_what_a_mark_writes_is_read_while_it_lives() -> None:
    clock = HeldClock()
    async with StrictClaude(clock=clock) as server:
        first = [user(text(LONG, **MARK))]
        for step, minutes in enumerate((0, 4, 8, 14)):
            clock.now = 1000.0 + 60 * minutes
            grown = [user(LONG), {"role": "assistant", "content": "Done."}, user(text("more", **MARK))]
            await asked(server, grown if step else first)
        read = [bool(e.read) for e in server.exchanges]
        assert read == [False, True, True, False], "each hit renews it; six minutes are too long"
        assert server.exchanges[0].written > 2000 > server.exchanges[1].written > 0
        hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        await asked(server, [user(text(LONG, **hour))], system=[text("S", **hour)])
        clock.now += 3000
        await asked(server, [user(text(LONG, **hour))], system=[text("S", **hour)])
        assert server.exchanges[-1].read and server.exchanges[-2].usage["cache_creation"]["ephemeral_1h_input_tokens"]
        status, words = await asked(server, [user(text("a", **MARK), text("b", **hour))])
        assert (status, "ttl" in words) == (400, True)
        assert (await asked(server, [user(*(text(str(n), **MARK) for n in range(5)))]))[0] == 400


async def test_a_mark_looks_back_twenty_blocks() -> None:
    async with StrictClaude() as server:
        await asked(server, [user(text(LONG, **MARK))])
        for more in (18, 19, 25):
            await asked(server, [user(LONG, *(f"t{n}" for n in range(more)), text("end", **MARK))])
            assert bool(server.exchanges[-1].read) is (more < 19), more
        few = [user("short"), {"role": "assistant", "content": "a"}, user(text("q", **MARK))]
        await asked(server, few)
        assert server.exchanges[-1].written == 0, "less than the smallest prefix"


async def respond(server: StrictOpenAI, items: list[Body], **more: Any) -> tuple[int, Any]:
    """The status, and the items of the reply or the words of the refusal."""
    body: Body = {"model": "gpt-6.2-sol", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:
        reply = await client.post(f"{server.base_url}/responses", json={**body, **more, "input": items})
    if reply.status_code != 200:
        return reply.status_code, reply.json()["error"]["message"]
    told = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    return 200, [each["item"] for each in told if each["type"] == "response.output_item.done"]


def said(words: str, role: str = "user") -> Body:
    return {"type": "message", "role": role, "content": words}


async def test_reasoning_items_go_back_in_order() -> None:
    told = answers(thought("hm"), Said("I look.", "commentary"), thought("and"), use("look", "call_1"))
    async with StrictOpenAI([told]) as server:
        _, items = await respond(server, [said("q")])
        output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
        assert (await respond(server, [said("q"), *items, output]))[0] == 200
        assert not server.complaints and not appended(server.exchanges)
        swapped = [items[2], items[1], items[0], items[3]]
        assert "required following item" in (await respond(server, [said("q"), *swapped, output]))[1]
        assert "required 'reasoning' item" in (await respond(server, [said("q"), *items[:2], items[3], output]))[1]
        bare = [{k: v for k, v in item.items() if k != "encrypted_content"} for item in items]
        assert (await respond(server, [said("q"), *bare, output]))[0] == 404
        phaseless = [{k: v for k, v in item.items() if k != "phase"} for item in items]
        assert (await respond(server, [said("q"), *phaseless, output]))[0] == 200
        assert len(server.complaints) == 1, "a phase that was left out"


async def test_the_cache_is_read_only_where_a_request_ended() -> None:
    clock = HeldClock()
    async with StrictOpenAI(clock=clock) as server:
        system = {"role": "developer", "content": LONG}
        grown = [system, said("a")]
        await respond(server, grown)
        for words in ("b", "c"):
            grown = [*grown, said("Done.", "assistant"), said(words)]
            await respond(server, grown)
            assert server.exchanges[-1].read == server.exchanges[-2].prompt
        await respond(server, [system, said("a, and more")])
        assert server.exchanges[-1].read == 0, "a message that grew; the head alone was never written"
        clock.now += 1801
        await respond(server, grown)
        assert server.exchanges[-1].read == 0


async def test_the_chat_form_counts_alike() -> None:
    async with StrictOpenAI([answers("I look.", use("look", "call_1"))]) as server:
        messages: list[Body] = [{"role": "system", "content": LONG}, {"role": "user", "content": "q"}]
        body: Body = {"model": "gpt-6-luna", "stream": True, "stream_options": {"include_usage": True}}
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:
            await client.post(f"{server.base_url}/chat/completions", json={**body, "messages": messages})
            call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            messages += [{"role": "assistant", "content": "I look.", "tool_calls": [call]}]
            refused = await client.post(f"{server.base_url}/chat/completions", json={**body, "messages": messages})
            messages += [{"role": "tool", "tool_call_id": "call_1", "content": "ok"}]
            reply = await client.post(f"{server.base_url}/chat/completions", json={**body, "messages": messages})
        assert refused.status_code == 400
        assert '"cached_tokens": ' + str(server.exchanges[0].prompt) in reply.text
        assert server.exchanges[-1].written > 0 and not appended(server.exchanges)


async def test_deferred_tools_are_read_where_a_result_refers_to_them() -> None:
    look, late = {"name": "look", "input_schema": {}}, {"name": "late", "input_schema": {}, "defer_loading": True}
    refers = [{"type": "tool_reference", "tool_name": "late"}]
    found = [
        user("hi"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
    ]
    found += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": refers}]}]
    async with StrictClaude([says("ok", "hm"), says("ok", "hm")]) as server, StrictClaude(loads_late=False) as older:
        assert "At least one tool" in (await asked(server, found, tools=[late]))[1]
        assert "cannot have both" in (await asked(server, found, tools=[look, late | MARK]))[1]
        assert "not found in available tools" in (await asked(server, found, tools=[look]))[1]
        assert "Extra inputs" in (await asked(older, found, tools=[look, late]))[1]
        before = len(server.exchanges)
        first = (await asked(server, found[:1], tools=[look]))[1]
        on = [found[0], {"role": "assistant", "content": first}, *found[:1], *found[1:]]
        status, more = await asked(server, on, tools=[look, late])
        assert status == 200 and not appended(server.exchanges[before:]), "it is no part of the beginning"
        on += [{"role": "assistant", "content": more}, user("and")]
        other = late | {"description": "Another."}
        assert "bound to a different" in (await asked(server, on, tools=[look, other]))[1], "but of what refers to it"


async def test_what_was_not_appended_is_named() -> None:
    async with StrictClaude() as server:
        await asked(server, [user("a", "tail")])
        await asked(server, [user("a"), {"role": "assistant", "content": "Done."}, user("b")])
    assert "piece 2" in appended(server.exchanges) and "tail" in appended(server.exchanges)
