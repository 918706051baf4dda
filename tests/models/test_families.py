"""Every family's own stream through the real litellm, and what it is sent next: nothing of a reply is lost on the way, and the
second round is what the provider documents that it takes."""

from __future__ import annotations

import json

import msgspec
import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message, Reasoning
from ctxchat.core.overflow import is_context_overflow
from ctxchat.core.ports import ModelRequest
from ctxchat.models.process import ModelProcess
from tests.doubles.forms import FORMS
from tests.doubles.replies import Reply, breaks, call, calls, says
from tests.doubles.requests import Heard, asks, listen, view_of
from tests.doubles.rules import RULES
from tests.models.served import FAMILIES, Way, led_to, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = ["a long name.txt", "b [DONE].txt"]
LOOKS = calls(
    *(call("read_file", f"call_{n}", path=path) for n, path in enumerate(PATHS)),
    text="Looking.",
    reasoning="Both at once.",
    signature="c2ln",
    cached=40,
)


def next_round(heard: Heard) -> ModelRequest:
    """The request with the results of what was called."""
    assert heard.end is not None
    thought = Reasoning(heard.reasoning, received=heard.end.received)
    results = [
        Message(n, "tool", "found", call_id=wanted.id, name=wanted.name) for n, wanted in enumerate(heard.end.calls, 4)
    ]
    asked = [Message(0, "system", "Be brief."), Message(1, "user", "Read both.")]
    return ModelRequest(
        view_of(*asked, Message(3, "assistant", heard.text, heard.end.calls, reasoning=thought), *results)
    )


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_reply_comes_whole_and_goes_back_as_documented(way: Way, family: str) -> None:
    async with served(family, [LOOKS, says("Done.")]) as double:
        model = model_at(double, way, family)
        heard = await listen(model, asks("Read both."))
        assert heard.end is not None and heard.end.finish == "tool_calls"
        if family == "cohere":  # what it says beside calls is a plan
            assert (heard.text, heard.reasoning) == ("", "Both at once.Looking.")
        else:
            assert (heard.text, heard.reasoning) == ("Looking.", "Both at once.")
        assert [json.loads(c.arguments) for c in heard.end.calls] == [{"path": path} for path in PATHS]
        assert len({c.id for c in heard.end.calls}) == 2
        usage = heard.end.usage
        assert usage is not None and not usage.estimated and usage.prompt > 40 and usage.completion > 0
        assert usage.cached == (0 if family == "ollama" else 40)
        assert (await listen(model, next_round(heard))).text == "Done."
    RULES[family](double.requests[0].body)
    RULES[family](double.requests[1].body)
    if family == "bedrock":
        assert "cachePoint" in json.dumps(double.requests[0].body)
    if family in {"anthropic", "bedrock", "gemini", "openrouter"}:
        assert "c2ln" in json.dumps(double.requests[1].body), "the signature goes back with its calls"
    if family in {"anthropic", "bedrock", "openrouter", "deepseek", "moonshot"}:
        assert "Both at once." in json.dumps(double.requests[1].body), "the thought goes back with its calls"


async def test_geminis_signature_of_a_text_goes_back_to_the_model_that_wrote_it(worker: ModelProcess) -> None:
    async with served("gemini", [says("It is Kittiwake.", signature="dGV4dA=="), says("Yes."), says("No.")]) as double:
        heard = await listen(model_at(double, worker, "gemini"), asks("Which logger?"))
        assert heard.end is not None
        said = Message(3, "assistant", heard.text, reasoning=Reasoning("", received=heard.end.received))
        conversation = view_of(Message(1, "user", "Which logger?"), said, Message(4, "user", "Sure?"))
        await listen(model_at(double, worker, "gemini"), ModelRequest(conversation))
        came = msgspec.structs.replace(heard.end.received, model="gemini/another")
        other = msgspec.structs.replace(said, reasoning=Reasoning("", received=came))
        conversation = view_of(Message(1, "user", "Which logger?"), other, Message(4, "user", "Sure?"))
        await listen(model_at(double, worker, "gemini"), ModelRequest(conversation))
    [back] = [c["parts"] for c in double.requests[1].body["contents"] if c["role"] == "model"]
    assert back == [{"text": "It is Kittiwake.", "thoughtSignature": "dGV4dA=="}]
    assert "dGV4dA==" not in json.dumps(double.requests[2].body)


@pytest.mark.parametrize("family", FAMILIES)
async def test_what_looks_like_the_end_of_a_stream_is_text(way: Way, family: str) -> None:
    async with served(family, [says("It ends with data: [DONE] and no more.", chunk=100)]) as double:
        heard = await listen(model_at(double, way, family), asks("How does it end?"))
    assert heard.text == "It ends with data: [DONE] and no more."


OVERFLOWS = {
    "openrouter": "This endpoint's maximum context length is 8192 tokens. However, you requested about 9001 tokens.",
    "deepseek": "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
    "moonshot": "Invalid request: Your request exceeded model token limit: 8192",
    "mistral": "Prompt contains 9001 tokens and 0 draft tokens, too large for model with 8192 maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
    "xai": "This model's maximum prompt length is 8192 but the request contains 9001 tokens.",
    "vllm": "The decoder prompt (length 9001) is longer than the maximum model length of 8192.",
    "lm_studio": "The model is loaded with context length of only 8192 tokens, which is not enough.",
    "cohere": "too many tokens: size limit exceeded by 809 tokens. Try using shorter or fewer inputs.",
    "bedrock": "Input is too long for requested model.",
    "azure": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
}


async def failure_of(way: Way, family: str, reply: Reply) -> tuple[ModelError, Heard]:
    heard = Heard()
    async with served(family, [reply]) as double:
        with pytest.raises(ModelError) as caught:
            await listen(model_at(double, way, family), asks("hi"), heard)
    return caught.value, heard


@pytest.mark.parametrize("family", OVERFLOWS)
async def test_an_overflow_is_known_by_the_familys_words(way: Way, family: str) -> None:
    form = FORMS[FAMILIES[family].form]
    error, _ = await failure_of(way, family, Reply(status=400, error=form.error(400, OVERFLOWS[family])))
    assert is_context_overflow(error), (error.kind, error.body)
    assert OVERFLOWS[family] in error.text and "litellm" not in error.text


@pytest.mark.parametrize("family", ["openai", "responses", "openrouter", "ollama", "gemini"])
async def test_an_error_for_a_whole_body_is_no_empty_reply(way: Way, family: str) -> None:
    refused = FORMS[FAMILIES[family].form].error(429, "Too much, sorry")
    error, _ = await failure_of(way, family, breaks("error_body", error=refused))
    assert "Too much, sorry" in error.text and error.transient


@pytest.mark.parametrize("family", ["openai", "vllm"])
async def test_a_server_that_says_why_was_reached(way: Way, family: str) -> None:
    error, _ = await failure_of(way, family, breaks("error_event", after=0, error={"error": "The model has crashed."}))
    nonsense, _ = await failure_of(way, family, breaks("malformed", after=0))
    assert (error.kind, error.text) == ("server", "The model has crashed.")
    assert (nonsense.kind, nonsense.text) == ("server", "The server sent a piece that cannot be read.")


@pytest.mark.parametrize("family", ["openrouter", "mistral", "lm_studio", "gemini", "cohere"])
async def test_a_reason_that_is_none_is_an_error(way: Way, family: str) -> None:
    reason = {"gemini": "MALFORMED_FUNCTION_CALL"}.get(family, "error")
    amid, heard = await failure_of(way, family, says("Half an answer", finish=reason))
    before, _ = await failure_of(way, family, says("", finish=reason))
    assert (amid.kind, before.kind) == ("interrupted", "server") and heard.text == "Half an answer"
    assert reason.upper() in amid.text and before.transient


async def test_mistrals_and_anthropics_words_for_a_full_window(way: Way) -> None:
    if "mistral" in led_to(way):
        async with served("mistral", [says("Half an answer", finish="model_length")]) as double:
            heard = await listen(model_at(double, way, "mistral"), asks("hi"))
        assert heard.end is not None and heard.end.finish == "length"
    if "anthropic" in led_to(way):
        async with served("anthropic", [says("Half", finish="model_context_window_exceeded")]) as double:
            with pytest.raises(ModelError) as full:
                await listen(model_at(double, way, "anthropic"), asks("hi"))
        assert full.value.kind == "overflow", "nothing that a higher output limit would mend"


async def test_openais_newer_form_says_what_failed_and_what_was_cut(worker: ModelProcess) -> None:
    amid, _ = await failure_of(worker, "responses", says("Half an answer", finish="error"))
    before, _ = await failure_of(worker, "responses", says("", finish="error"))
    assert "Something failed." in amid.text and (amid.kind, before.kind) == ("interrupted", "server")
    async with served("responses", [says("Half an answer", finish="length")]) as double:
        heard = await listen(model_at(double, worker, "responses"), asks("hi"))
    assert heard.end is not None and heard.end.finish == "length"


async def test_a_call_groq_could_not_read_is_tried_again(way: Way) -> None:
    words = {"message": "Failed to call a function. See 'failed_generation'.", "type": "invalid_request_error"}
    error = {"error": {**words, "code": "tool_use_failed", "failed_generation": "<function=read_file"}}
    asked, _ = await failure_of(way, "groq", Reply(status=400, error=error))
    streamed, _ = await failure_of(way, "groq", breaks("error_event", after=0, error=error))
    assert asked.kind == streamed.kind == "server" and asked.transient and "<function=read_file" in asked.body


async def test_an_azure_deployment_is_asked_in_its_version(worker: ModelProcess) -> None:
    async with served("azure", [says("ok")]) as double:
        await listen(model_at(double, worker, "azure"), asks("hi"))
    [seen] = double.requests
    assert (seen.path, seen.query) == (
        "/openai/deployments/my-deployment/chat/completions",
        {"api-version": "2024-10-21"},
    )
    assert seen.headers["api-key"] == "key"


async def test_what_stands_behind_a_gateway_is_told(way: Way) -> None:
    raw = json.dumps({"error": {"message": "prompt is too long: 9001 tokens > 8192 maximum"}})
    told = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "Anthropic"}}
    error, _ = await failure_of(way, "openrouter", Reply(status=400, error={"error": told}))
    assert error.text == "Provider returned error: prompt is too long: 9001 tokens > 8192 maximum"
    assert is_context_overflow(error)


async def test_a_field_that_is_refused_is_named(way: Way) -> None:
    problem = {
        "type": "extra_forbidden",
        "loc": ["body", "messages", 2, "prefix"],
        "msg": "Extra inputs are not permitted",
    }
    for body in ({"detail": [problem]}, {"object": "error", "message": {"detail": [problem]}, "code": "3051"}):
        error, _ = await failure_of(way, "mistral", Reply(status=422, error=body))
        assert error.text == "Extra inputs are not permitted (body.messages.2.prefix)" and error.kind == "bad_request"


async def test_openrouters_blocks_are_joined_and_keep_their_order(way: Way) -> None:
    async with served("openrouter", [LOOKS]) as double:
        heard = await listen(model_at(double, way, "openrouter"), asks("hi"))
    assert heard.end is not None and heard.end.received is not None
    [block] = json.loads(heard.end.received.blocks)["reasoning_details"]
    assert (block["type"], block["text"], block["signature"]) == ("reasoning.text", "Both at once.", "c2ln")
