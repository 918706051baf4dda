"""A reply that was cut off is gone on with: what each family is sent, and what happens where one refuses it."""

from __future__ import annotations

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message
from ctxchat.core.openai import wire
from ctxchat.core.ports import ModelRequest
from ctxchat.models.client import ModelClient
from ctxchat.models.continuing import GO_ON, takes_beginning
from ctxchat.models.dialects import ANTHROPIC, LOCAL, MISTRAL
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import refuses, says
from tests.doubles.requests import listen, view_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

HALF = "The gauge at Pier 7 reports to "
REFUSAL = "This model does not support assistant message prefill. The conversation must end with a user message."


def cut_off(injected: str = "", tools: bool = True) -> ModelRequest:
    messages = [
        Message(0, "system", "Be brief."),
        Message(1, "user", "Where does the gauge report to?"),
        Message(2, "assistant", HALF, interrupted=True),
    ]
    if injected:
        messages.append(Message(0, "user", injected))
    view = view_of(*messages, injected=int(bool(injected)))
    return ModelRequest(view if tools else view_of(*messages, tools=(), injected=int(bool(injected))))


def at(double: ModelDouble, worker: ModelProcess, name: str, **more) -> ModelClient:
    base = double.root if name.startswith("anthropic") else double.base_url
    return ModelClient(ModelSettings(name=name, api_base=base, timeout=30, **more), worker)


def last(double: ModelDouble, place: int = -1) -> tuple[str, str]:
    message = double.requests[place].body["messages"][-1]
    content = message["content"]
    return message["role"], content if isinstance(content, str) else content[-1]["text"]


@pytest.mark.parametrize("injected", ["", "It is Saturday."])
@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "mistral/mistral-large-latest", "llamafile/any"])
async def test_a_family_that_takes_a_beginning_is_handed_the_half_reply(
    worker: ModelProcess, name: str, injected: str
) -> None:
    async with ModelDouble([says("the logger Cormorant.")]) as double:
        heard = await listen(at(double, worker, name), cut_off(injected))
    assert heard.text == "the logger Cormorant."
    assert last(double) == ("assistant", HALF.rstrip())
    assert injected in str(double.requests[0].body) and GO_ON not in str(double.requests[0].body)
    assert double.requests[0].body["messages"][-1].get("prefix", False) == name.startswith("mistral")


@pytest.mark.parametrize("name", ["openai/gpt-5-mini", "anthropic/claude-opus-4-6", "hosted_vllm/qwen"])
async def test_the_others_are_asked_in_words(worker: ModelProcess, name: str) -> None:
    async with ModelDouble([says("the logger Cormorant.")]) as double:
        await listen(at(double, worker, name), cut_off("It is Saturday."))
    role, text = last(double)
    assert role == "user" and text.endswith(GO_ON)
    assert HALF.rstrip() in str(double.requests[0].body["messages"])


async def test_a_model_that_refuses_a_beginning_is_asked_in_words_at_once_and_from_then_on(
    worker: ModelProcess,
) -> None:
    async with ModelDouble([refuses(400, REFUSAL), says("the logger.")]) as double:
        model = at(double, worker, "llamafile/any")
        assert (await listen(model, cut_off())).text == "the logger."
        await listen(model, cut_off())
    assert [last(double, n)[0] for n in range(3)] == ["assistant", "user", "user"]


async def test_any_other_refusal_is_told(worker: ModelProcess) -> None:
    async with ModelDouble([refuses(400, "temperature must be below 2")]) as double:
        with pytest.raises(ModelError, match="temperature"):
            await listen(at(double, worker, "llamafile/any"), cut_off())
    assert len(double.requests) == 1


async def test_what_was_said_in_two_parts_is_sent_as_one_text_ever_after() -> None:
    messages = [
        Message(1, "user", "Where to?"),
        Message(2, "assistant", HALF, interrupted=True),
        Message(3, "assistant", "the logger."),
        Message(4, "user", "Thanks."),
    ]
    assert [m["content"] for m in wire(view_of(*messages).items)] == ["Where to?", HALF + "the logger.", "Thanks."]


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-3-5-sonnet-20241022", True),
        ("claude-sonnet-4-20250514", True),
        ("claude-opus-4-5-20251101", True),
        ("claude-opus-4-6", False),
        ("claude-haiku-5-5", False),
        ("claude-unheard-of", False),
    ],
)
async def test_which_claude_takes_one(model: str, takes: bool) -> None:
    assert takes_beginning(ModelSettings(f"anthropic/{model}"), ANTHROPIC) is takes
    assert not takes_beginning(ModelSettings(f"anthropic/{model}", extra={"thinking": {}}), ANTHROPIC)


async def test_a_server_of_ones_own_with_a_mistral_model_is_not_mistrals_service() -> None:
    assert not takes_beginning(ModelSettings("hosted_vllm/mistral-small"), MISTRAL)
    assert takes_beginning(ModelSettings("mistral/mistral-small-latest"), MISTRAL)
    assert not takes_beginning(ModelSettings("lm_studio/qwen"), LOCAL)
