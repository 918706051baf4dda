"""Images on their way to a model: who takes them, what they cost, and the shape each family gets, over HTTP."""

from __future__ import annotations

import base64
import json
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.images import data_url
from ctxchat.core.messages import Image, Message, Text, ToolCall
from ctxchat.core.ports import ModelRequest
from ctxchat.core.tokens import TokenCounter
from ctxchat.models import dialects, images
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.images import gif, png
from tests.doubles.replies import says
from tests.doubles.requests import listen, view_of
from tests.doubles.rules import RULES
from tests.models.served import Way
from tests.models.served import model_at as family_at
from tests.models.test_litellm_client import model_at

SHOT = png(64, 48)
ASKED = Message(1, "user", (Text("what is this?"), Image("attachments/shot.png", 64, 48, "shot.png")))
REQUEST = ModelRequest(view_of(ASKED), images={"attachments/shot.png": data_url(SHOT)})


@pytest.mark.asyncio(loop_scope="session")
async def test_openai_gets_a_data_url(worker: ModelProcess) -> None:
    async with ModelDouble([says("a pier")]) as double:
        await listen(model_at(double, worker, "openai/double", vision=True), REQUEST)
    text, image = double.requests[0].body["messages"][-1]["content"]
    assert text["text"] == "what is this?"
    assert image["type"] == "image_url" and image["image_url"]["url"] == data_url(SHOT)


@pytest.mark.asyncio(loop_scope="session")
async def test_anthropic_gets_a_source(way: Way) -> None:
    async with ModelDouble([says("a pier")]) as double:
        await listen(family_at(double, way, "anthropic"), REQUEST)
    image = next(part for part in double.requests[0].body["messages"][-1]["content"] if part["type"] == "image")
    assert image["source"]["media_type"] == "image/png" and base64.b64decode(image["source"]["data"]) == SHOT


@pytest.mark.asyncio(loop_scope="session")
async def test_gemini_is_sent_no_gif_and_told_that_there_is_one(worker: ModelProcess) -> None:
    request = msgspec.structs.replace(REQUEST, images={"attachments/shot.png": data_url(gif(64, 48))})
    async with ModelDouble([says("a pier")]) as double:
        await listen(family_at(double, worker, "gemini", vision=True), request)
    sent = json.dumps(double.requests[0].body)
    assert "image/gif" not in sent and "[image shot.png 64\\u00d748: left out, this model is shown no GIF]" in sent


CALLED = Message(2, "assistant", "", (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")))
SEEN = Message(3, "tool", (Text("a pier"), Image("attachments/shot.png", 64, 48)), call_id="a")
RESULTS = ModelRequest(view_of(ASKED, CALLED, SEEN, Message(4, "tool", "dark", call_id="b")), images=REQUEST.images)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_image_of_a_result_stands_in_it_where_the_form_has_a_place_for_it(way: Way) -> None:
    async with ModelDouble([says("ok")]) as double:
        await listen(family_at(double, way, "anthropic"), RESULTS)
    RULES["anthropic"](double.requests[0].body)
    text, image = double.requests[0].body["messages"][-1]["content"][0]["content"]
    assert (text["text"], image["type"]) == ("a pier", "image")


@pytest.mark.asyncio(loop_scope="session")
async def test_an_image_of_a_result_comes_behind_the_results_where_they_are_words(worker: ModelProcess) -> None:
    async with ModelDouble([says("ok")]) as double:
        await listen(model_at(double, worker, "openai/double", vision=True), RESULTS)
    RULES["openai"](double.requests[0].body)
    *_, seen, dark, shown = double.requests[0].body["messages"]
    assert [m["role"] for m in (seen, dark, shown)] == ["tool", "tool", "user"]
    assert "next message" in json.dumps(seen["content"]) and dark["content"] == "dark"
    assert shown["content"][1]["image_url"]["url"] == data_url(SHOT)


@pytest.mark.asyncio(loop_scope="session")
async def test_ollama_gets_bare_base64(worker: ModelProcess) -> None:
    async with ModelDouble([says("a pier")]) as double:
        await listen(model_at(double, worker, "ollama_chat/llava", window=8_192, vision=True), REQUEST)
    assert base64.b64decode(double.requests[0].body["messages"][-1]["images"][0]) == SHOT


SERVERS: dict[str, tuple[str, str, dict[str, object]]] = {
    "llama.cpp": ("openai/any", "/v1", {"/props": {"modalities": {"vision": True, "audio": False}}}),
    "llama.cpp without a projector": ("openai/gpt-4o", "/v1", {"/props": {"modalities": {"vision": False}}}),
    "ollama": ("ollama_chat/llava", "", {"/api/show": {"capabilities": ["completion", "vision"]}}),
    "ollama, text only": ("ollama_chat/llama3", "", {"/api/show": {"capabilities": ["completion", "tools"]}}),
    "lm studio since 0.4": (
        *("lm_studio/any", "/v1"),
        {"/api/v1/models": {"models": [{"key": "any", "capabilities": {"vision": True}}]}},
    ),
    "lm studio since 0.4, text only": (
        *("lm_studio/any", "/v1"),
        {"/api/v1/models": {"models": [{"key": "any", "loaded_instances": 3, "capabilities": {"vision": False}}]}},
    ),
    "lm studio": ("lm_studio/any", "/v1", {"/api/v0/models": {"data": [{"id": "any", "type": "vlm"}]}}),
    "lm studio, text only": ("lm_studio/any", "/v1", {"/api/v0/models": {"data": [{"id": "any", "type": "llm"}]}}),
    "one that says nothing": (
        "openai/gpt-4o",
        "/v1",
        {"/props": {"modalities": "all"}, "/api/show": [], "/api/v0/models": 1},
    ),
}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("server", "takes"), list(zip(SERVERS, (True, False) * 4 + (True,), strict=True)), ids=[*SERVERS]
)
async def test_a_server_says_whether_its_model_takes_images(worker: ModelProcess, server: str, takes: bool) -> None:
    name, path, pages = SERVERS[server]
    async with ModelDouble([says("a pier")], pages=pages) as double:
        model = ModelClient(ModelSettings(name, api_base=double.root + path, timeout=30, window=9_000), worker)
        await model.window()
        await listen(model, REQUEST)
        forbidden = ModelClient(ModelSettings(name, api_base=double.root + path, vision=False), worker)
        await forbidden.window()
    said = str(double.requests[0].body["messages"])
    assert (base64.b64encode(SHOT).decode() in said) is takes
    assert (model.count_image(64, 48) > 0) is takes and not forbidden.count_image(64, 48)


def test_what_was_counted_before_the_server_said_so_is_counted_anew() -> None:
    shown = False
    counter = TokenCounter(image=lambda width, height: 255 if shown else 0)
    blind = counter.message(ASKED)
    shown = True
    assert counter.message(ASKED) == blind
    counter.forget_images()
    assert counter.message(ASKED) > 255 > blind


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("missing", [False, True])
async def test_words_stand_for_what_is_not_shown(worker: ModelProcess, missing: bool) -> None:
    async with ModelDouble([says("I see none")]) as double:
        model = model_at(double, worker, "openai/double", vision=missing)
        await listen(model, msgspec.structs.replace(REQUEST, images={}) if missing else REQUEST)
    assert "[image shot.png 64×48]" in str(double.requests[0].body["messages"][-1])
    assert "image_url" not in str(double.requests[0].body) and "base64" not in str(double.requests[0].body)


@pytest.mark.parametrize(
    ("name", "vision", "takes"),
    [
        ("anthropic/claude-sonnet-4-5", None, True),
        ("openai/gpt-4o", None, True),
        ("openai/gpt-3.5-turbo", None, False),
        ("hosted_vllm/qwen", None, False),
        ("hosted_vllm/qwen", True, True),
        ("openai/gpt-4o", False, False),
    ],
)
def test_who_takes_images(name: str, vision: bool | None, takes: bool) -> None:
    assert images.takes_images(ModelSettings(name=name, vision=vision)) is takes


@pytest.mark.parametrize(
    ("dialect", "name", "size", "tokens"),
    [
        (dialects.ANTHROPIC, "claude", (1092, 1092), 1590),  # the table of Anthropic's guide
        (dialects.ANTHROPIC, "claude", (200, 200), 54),
        (dialects.ANTHROPIC, "claude", (8000, 8000), 1600),
        (dialects.OPENAI, "gpt-4o", (1024, 1024), 765),  # the examples of OpenAI's guide
        (dialects.OPENAI, "gpt-4o", (2048, 4096), 1105),
        (dialects.OPENAI, "gpt-4o-mini", (1024, 1024), 25501),
        (dialects.OPENAI, "gpt-4.1-mini", (1024, 1024), 1659),
        (dialects.GEMINI, "gemini", (300, 300), 258),
        (dialects.GEMINI, "gemini", (1000, 700), 516),
        (dialects.LOCAL, "llava", (512, 512), 255),
    ],
)
def test_each_family_counts_its_own_way(
    dialect: dialects.Dialect, name: str, size: tuple[int, int], tokens: int
) -> None:
    assert images.token_count(dialect, name, *size) == tokens


@given(
    st.sampled_from([dialects.ANTHROPIC, dialects.OPENAI, dialects.GEMINI, dialects.LOCAL]),
    st.integers(0, 8000),
    st.integers(0, 8000),
    st.text(max_size=10_000),
)
def test_the_bytes_never_matter(dialect: dialects.Dialect, width: int, height: int, body: str) -> None:
    counter = TokenCounter(image=partial(images.token_count, dialect, "model"))
    assert (
        counter.part(Image(f"data:image/png;base64,{body}", width, height))
        == counter.part(Image("x", width, height))
        > 0
    )


def test_an_image_that_is_not_shown_costs_its_words() -> None:
    blind = TokenCounter(image=lambda width, height: 0)
    assert 0 < blind.part(Image("attachments/a.png", 4000, 4000, "a.png")) < 20
