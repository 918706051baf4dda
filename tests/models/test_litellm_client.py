"""Through the real litellm, in its own process, against a real server on loopback: replies, usage, and what is sent."""

from __future__ import annotations

import asyncio
import json

import pytest

from ctxchat.core.errors import ModelError, UsageError
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelRequest
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import call, calls, says
from tests.doubles.requests import after_a_call, asks, listen, view_of
from tests.models.served import Way
from tests.models.served import model_at as family_at

pytestmark = pytest.mark.asyncio(loop_scope="session")


def model_at(double: ModelDouble, worker: ModelProcess, name: str = "openai/double", **more) -> ModelClient:
    base = double.base_url if name.startswith("openai/") else double.root
    return ModelClient(ModelSettings(name=name, api_base=base, timeout=30, **more), worker)


async def test_text_reasoning_and_counted_usage(worker: ModelProcess) -> None:
    async with ModelDouble([says("Hello, world.", reasoning="Greet them.", cached=100)]) as double:
        heard = await listen(model_at(double, worker), asks("hi"))
    assert (heard.text, heard.reasoning) == ("Hello, world.", "Greet them.")
    assert heard.end is not None and heard.end.finish == "stop"
    usage = heard.end.usage
    assert usage is not None and not usage.estimated
    assert usage.cached == 100 and usage.prompt > 100 and usage.reasoning > 0


async def test_parallel_calls_are_joined_from_their_fragments(worker: ModelProcess) -> None:
    wanted = (call("read_file", "call_a", path="a long name.txt"), call("read_file", "call_b", path="b.txt"))
    async with ModelDouble([calls(*wanted, text="Looking.")]) as double:
        heard = await listen(model_at(double, worker), asks("read both"))
    assert heard.end is not None and heard.end.finish == "tool_calls"
    assert [(c.id, json.loads(c.arguments)["path"]) for c in heard.end.calls] == [
        ("call_a", "a long name.txt"),
        ("call_b", "b.txt"),
    ]
    assert "".join(f.arguments for f in heard.fragments if f.index == 1) == heard.end.calls[1].arguments
    assert double.requests[0].body["tools"][0]["function"]["name"] == "read_file"


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama_chat/llama3"])
async def test_parallel_calls_thoughts_and_counts_in_each_familys_own_stream(worker: ModelProcess, name: str) -> None:
    wanted = (call("read_file", "toolu_a", path="a.txt"), call("read_file", "toolu_b", path="b.txt"))
    async with ModelDouble([calls(*wanted, text="Looking.", reasoning="Both at once.")]) as double:
        settings = ModelSettings(name=name, api_base=double.root, api_key_env="KEY", timeout=30, window=20_000)
        heard = await listen(ModelClient(settings, worker, lambda variable: "key"), asks("read both"))
    assert (heard.text, heard.reasoning) == ("Looking.", "Both at once.")
    assert heard.end is not None and heard.end.finish == "tool_calls"
    assert [json.loads(c.arguments)["path"] for c in heard.end.calls] == ["a.txt", "b.txt"]
    assert len({c.id for c in heard.end.calls}) == 2
    assert heard.end.usage is not None and not heard.end.usage.estimated


async def test_usage_that_no_server_counted_is_marked(worker: ModelProcess) -> None:
    async with ModelDouble([says("Hello", usage=None)]) as double:
        heard = await listen(model_at(double, worker), asks("hi"))
    assert heard.end is not None
    assert heard.end.usage is None or heard.end.usage.estimated


async def test_senseless_usage_is_none(worker: ModelProcess) -> None:
    async with ModelDouble(
        [says("Hello", usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})]
    ) as double:
        heard = await listen(model_at(double, worker), asks("hi"))
    assert heard.end is not None and heard.end.usage is None


async def test_think_tags_cut_across_chunks_are_thoughts(worker: ModelProcess) -> None:
    async with ModelDouble([says("<think>secret plan</think>\n\nThe answer.", chunk=3)]) as double:
        heard = await listen(model_at(double, worker), asks("hi"))
    assert (heard.reasoning, heard.text) == ("secret plan", "The answer.")


async def test_finish_by_length_and_by_filter(worker: ModelProcess) -> None:
    async with ModelDouble([says("Half", finish="length"), says("No", finish="content_filter")]) as double:
        model = model_at(double, worker)
        first, second = await listen(model, asks("a")), await listen(model, asks("b"))
    assert first.end is not None and first.end.finish == "length"
    assert second.end is not None and second.end.finish == "content_filter"


async def test_several_streams_at_once_stay_apart(worker: ModelProcess) -> None:
    def echo(body):
        return says(body["messages"][-1]["content"] * 20, delay=0.002)

    async with ModelDouble(echo) as double:
        model = model_at(double, worker)
        heard = await asyncio.gather(*(listen(model, asks(f"<{n}>")) for n in range(8)))
    assert [h.text for h in heard] == [f"<{n}>" * 20 for n in range(8)]


async def test_settings_reach_the_wire_and_nothing_of_ours_does(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        model = model_at(double, worker, max_output=77, extra={"temperature": 0.5, "top_k": 3})
        await listen(model, asks("hi"))
    body = double.requests[0].body
    assert (body["max_tokens"], body["temperature"], body["top_k"]) == (77, 0.5, 3)
    assert not {"_skip_mcp_handler", "num_retries", "max_retries"} & set(body)
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_reasoning_is_not_sent_to_those_who_refuse_it(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        await listen(model_at(double, worker), after_a_call('[{"type":"thinking","thinking":"x","signature":"s"}]'))
    assert not any(
        {"reasoning_content", "thinking_blocks", "cache_control"} & set(m) for m in double.requests[0].body["messages"]
    )


async def test_a_key_goes_only_where_it_was_named_for(worker: ModelProcess) -> None:
    keys = {"OPENAI_API_KEY": "sk-real", "MINE": "sk-mine"}
    async with ModelDouble([says("ok")]) as double:
        for env in ("", "MINE"):
            settings = ModelSettings(name="openai/double", api_base=double.base_url, api_key_env=env)
            await listen(ModelClient(settings, worker, lambda name: keys.get(name, "")), asks("hi"))
    sent = [seen.headers["Authorization"] for seen in double.requests]
    assert sent == ["Bearer none", "Bearer sk-mine"]


async def test_a_missing_key_is_named_before_anything_is_sent(worker: ModelProcess) -> None:
    for name, variable in (
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("openrouter/some/model", "OPENROUTER_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
    ):
        model = ModelClient(ModelSettings(name=name), worker, lambda _: "")
        with pytest.raises(ModelError) as caught:
            await listen(model, asks("hi"))
        assert caught.value.kind == "auth" and variable in caught.value.text


async def test_an_unknown_provider_is_refused_with_its_nearest(worker: ModelProcess) -> None:
    with pytest.raises(UsageError, match="anthropic/claude-x"):
        ModelClient(ModelSettings(name="antropic/claude-x"), worker)


# ── Anthropic's own interface ───────────────────────────────────────────────────────────────────────────────────────


async def test_anthropic_signed_thoughts_come_whole_and_go_back(way: Way) -> None:
    script = [
        calls(
            call("read_file", "toolu_1", path="a.txt"),
            reasoning="Think it through.",
            signature="c2ln",
            cached=40,
            chunk=3,
        ),
        says("Forty-two."),
    ]
    extra = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    async with ModelDouble(script) as double:
        model = family_at(double, way, "anthropic", **extra)
        assert model.keeps_reasoning
        first = await listen(model, asks("What is in a.txt?"))
        assert first.end is not None
        assert first.end.received is not None
        blocks = json.loads(first.end.received.blocks)
        assert blocks[:-1] == [{"type": "thinking", "thinking": "Think it through.", "signature": "c2ln"}]
        assert first.end.usage is not None and first.end.usage.cached == 40 and first.end.usage.prompt > 40
        assert first.end.usage.cost_usd > 0
        await listen(model, after_a_call(json.dumps(blocks[:-1]), injected="It is Monday."))
    body = double.requests[1].body
    assistant = next(m for m in body["messages"] if m["role"] == "assistant")
    assert assistant["content"][0] == blocks[0]
    assert body["thinking"] == extra["thinking"]
    assert body["max_tokens"] > 1024


async def test_anthropic_cache_marks_stand_before_what_changes(way: Way) -> None:
    async with ModelDouble([says("ok")]) as double:
        await listen(family_at(double, way, "anthropic"), after_a_call(injected="It is Monday."))
    body = double.requests[0].body
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    last = [part for message in body["messages"] for part in message["content"]][-2:]
    assert [("cache_control" in part, part["type"]) for part in last] == [(True, "tool_result"), (False, "text")]
    assert json.dumps(body).count("cache_control") == 3, "where the request before ended, as well"


async def test_openrouters_claude_gets_its_cache_marks_in_parts(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        settings = ModelSettings(name="openrouter/anthropic/claude-sonnet-4.5", api_base=double.base_url, timeout=30)
        await listen(ModelClient(settings, worker), after_a_call(injected="It is Monday."))
    messages = double.requests[0].body["messages"]
    assert not any("cache_control" in message for message in messages), "OpenRouter reads them in parts only"
    marked = [m["role"] for m in messages if "cache_control" in json.dumps(m.get("content"))]
    assert marked == ["system", "user", "tool"]


async def test_anthropic_does_not_think_in_a_round_without_signed_thoughts(way: Way) -> None:
    extra = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    async with ModelDouble([says("ok")]) as double:
        await listen(family_at(double, way, "anthropic", **extra), after_a_call())
    assert "thinking" not in double.requests[0].body


# ── Ollama's own interface ──────────────────────────────────────────────────────────────────────────────────────────


async def test_ollama_is_told_its_window_and_may_not_cut(worker: ModelProcess) -> None:
    async with ModelDouble([calls(call("read_file", path="a"))]) as double:
        model = model_at(double, worker, "ollama_chat/llama3", window=12_288)
        heard = await listen(model, asks("hi"))
        assert (await model.window()).tokens == 12_288
    body = double.requests[0].body
    assert body["options"]["num_ctx"] == 12_288
    assert body["truncate"] is False and body["shift"] is False
    assert heard.end is not None and heard.end.calls[0].name == "read_file"
    assert heard.end.usage is not None and not heard.end.usage.estimated


async def test_call_ids_take_the_shape_a_template_insists_on(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        await listen(model_at(double, worker, "openai/mistral-7b-instruct"), after_a_call())
    sent = double.requests[0].body["messages"]
    made, answered = sent[2]["tool_calls"][0]["id"], sent[3]["tool_call_id"]
    assert made == answered and len(made) == 9 and made.isalnum()


async def test_lone_surrogates_reach_the_worker(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        request = ModelRequest(view_of(Message(1, "user", "broken \ud800 text")))
        assert (await listen(model_at(double, worker), request)).text == "ok"
