"""The window that is really there: from servers as they answer, from settings, from the catalogue, or assumed and said so."""

from __future__ import annotations

import pytest

from ctxchat.core.budget import Window
from ctxchat.models.discovery import LocalServer, discover, local_servers
from ctxchat.models.settings import ModelSettings
from ctxchat.models.windows import (
    ASSUMED_WINDOW_TOKENS,
    OLLAMA_ASKED_TOKENS,
    OLLAMA_DEFAULT_TOKENS,
    STATED,
    detect,
    from_models,
)
from tests.doubles.http_model import ModelDouble

LLAMA_CPP = {"/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}}
VLLM = {"/v1/models": {"data": [{"id": "qwen", "max_model_len": 24_576}, {"id": "other", "max_model_len": 9}]}}
LM_STUDIO = {
    "/api/v0/models": {
        "data": [
            {"id": "qwen", "type": "llm", "max_context_length": 131_072, "loaded_context_length": 8192},
            {"id": "nomic", "type": "embeddings", "max_context_length": 2048},
        ]
    },
    "/v1/models": {"data": [{"id": "qwen"}, {"id": "nomic"}]},
}
LM_STUDIO_NEW = {
    "/api/v1/models": {
        "models": [
            {
                "key": "qwen",
                "type": "llm",
                "max_context_length": 131_072,
                "loaded_instances": [
                    {"id": "qwen", "config": {"context_length": 16_384}},
                    {"id": "qwen:2", "config": {"context_length": 4096}},
                ],
            },
            {"key": "gemma", "type": "llm", "max_context_length": 8192, "loaded_instances": []},
            {"key": "nomic", "type": "embedding", "max_context_length": 2048, "loaded_instances": [3]},
        ]
    },
    **LM_STUDIO,
}
SHOWN = {
    "model_info": {"llama.context_length": 131_072},
    "parameters": "stop  x\nnum_ctx                        6144\n",
}
OLLAMA = {
    "/api/tags": {"models": [{"name": "llama3:latest"}]},
    "/api/ps": {"models": [{"name": "llama3:latest", "model": "llama3:latest", "context_length": 2048}]},
    "/api/show": SHOWN,
}
OLLAMA_IDLE = {**OLLAMA, "/api/ps": {"models": []}}
PLAIN_SHOWN = {"model_info": {"llama.context_length": 131_072}}

CASES = [
    ("llama.cpp", "openai/qwen", "/v1", LLAMA_CPP, 0, Window(4096, "loaded")),
    ("loaded beats configured", "openai/qwen", "/v1", LLAMA_CPP, 99_000, Window(4096, "loaded")),
    ("configured below what is loaded counts", "openai/qwen", "/v1", LLAMA_CPP, 3000, Window(3000, "configured")),
    ("vllm", "hosted_vllm/qwen", "/v1", VLLM, 0, Window(24_576, "loaded")),
    ("lm studio", "lm_studio/qwen", "/v1", LM_STUDIO, 0, Window(8192, "loaded")),
    ("lm studio since 0.4", "lm_studio/qwen", "/v1", LM_STUDIO_NEW, 0, Window(16_384, "loaded")),
    ("lm studio, the second that is loaded", "lm_studio/qwen:2", "/v1", LM_STUDIO_NEW, 0, Window(4096, "loaded")),
    ("lm studio, not loaded", "lm_studio/gemma", "/v1", LM_STUDIO_NEW, 0, Window(ASSUMED_WINDOW_TOKENS, "assumed")),
    ("a silent server, configured", "openai/qwen", "/v1", {}, 5000, Window(5000, "configured")),
    ("a silent server", "openai/qwen", "/v1", {}, 0, Window(ASSUMED_WINDOW_TOKENS, "assumed")),
    (
        "a name of the catalogue on an own server",
        "openai/gpt-4o",
        "/v1",
        {},
        0,
        Window(ASSUMED_WINDOW_TOKENS, "assumed"),
    ),
    ("ollama, running", "ollama_chat/llama3", "", OLLAMA, 0, Window(2048, "loaded")),
    ("ollama is asked for what is configured", "ollama_chat/llama3", "", OLLAMA, 9000, Window(9000, "configured")),
    ("not for more than it was trained for", "ollama_chat/llama3", "", OLLAMA, 999_999, Window(131_072, "configured")),
    ("ollama, the model's own file", "ollama_chat/llama3", "", OLLAMA_IDLE, 0, Window(6144, "loaded")),
    (
        "ollama, nothing said",
        "ollama_chat/llama3",
        "",
        {**OLLAMA_IDLE, "/api/show": PLAIN_SHOWN},
        0,
        Window(OLLAMA_ASKED_TOKENS, "loaded"),
    ),
    ("ollama in OpenAI's style", "openai/llama3", "/v1", OLLAMA, 9000, Window(2048, "loaded")),
    ("the same, not running", "openai/llama3", "/v1", OLLAMA_IDLE, 0, Window(6144, "loaded")),
    (
        "the same, unsaid",
        "openai/llama3",
        "/v1",
        {"/api/ps": {"models": []}},
        0,
        Window(OLLAMA_DEFAULT_TOKENS, "assumed"),
    ),
    (
        "nonsense",
        "openai/qwen",
        "/v1",
        {"/props": [], "/v1/models": {"data": [3, {"id": "qwen", "meta": 1}]}},
        0,
        Window(ASSUMED_WINDOW_TOKENS, "assumed"),
    ),
]


@pytest.mark.parametrize("name", STATED)
def test_a_list_of_models_may_call_the_window_by_any_of_its_names(name: str) -> None:
    assert from_models({"data": [{"id": "m", name: 9000}, {"id": "n", name: 1}]}, "m") == 9000
    assert from_models({"data": [{"id": "m", "meta": {name: 9000}, "context_length": 0}]}, "m") == 9000
    assert from_models({"data": [{"id": "m", "n_ctx": 4096, "max_context_length": 131_072}]}, "m") == 4096
    assert from_models({"data": [{"id": "m", name: "9000"}, {"id": "n"}]}, "m") == 0


@pytest.mark.parametrize(
    ("name", "path", "pages", "configured", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
async def test_a_servers_window(name: str, path: str, pages, configured: int, expected: Window) -> None:
    async with ModelDouble(pages=pages) as double:
        assert await detect(ModelSettings(name=name, api_base=double.root + path, window=configured)) == expected


async def test_a_providers_window_comes_from_settings_or_catalogue() -> None:
    assert await detect(ModelSettings(name="openai/gpt-4o")) == Window(128_000, "catalogue")
    assert await detect(ModelSettings(name="gpt-4o")) == Window(128_000, "catalogue")
    assert await detect(ModelSettings(name="gpt-4o", window=50_000)) == Window(50_000, "configured")
    assert await detect(ModelSettings(name="openrouter/no/such")) == Window(ASSUMED_WINDOW_TOKENS, "assumed")


async def test_an_address_of_ones_own_in_a_providers_form_leads_to_that_providers_models() -> None:
    for name, window in (("azure/gpt-4o", 128_000), ("anthropic/claude-sonnet-4-5", 200_000)):
        settings = ModelSettings(name=name, api_base="http://127.0.0.1:9")
        assert await detect(settings) == Window(window, "catalogue")


async def test_a_server_that_hangs_or_is_away_costs_a_moment() -> None:
    double = ModelDouble()
    await double.start()
    await double.stop()
    settings = ModelSettings(name="openai/x", api_base=double.base_url)
    assert await detect(settings) == Window(ASSUMED_WINDOW_TOKENS, "assumed")


async def test_discovery_lists_what_runs_and_whose_key_is_set() -> None:
    async with (
        ModelDouble(pages=OLLAMA) as ollama,
        ModelDouble(pages=LM_STUDIO) as studio,
        ModelDouble(pages=VLLM) as vllm,
        ModelDouble(pages=LM_STUDIO_NEW) as newer,
    ):
        servers = [
            LocalServer("lm_studio", newer.root),
            LocalServer("ollama_chat", ollama.root),
            LocalServer("lm_studio", studio.root),
            LocalServer("hosted_vllm", vllm.root),
            LocalServer("llamafile", "http://127.0.0.1:1"),
        ]
        found = await discover(servers, {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": " "})
    rows = {model.name: model for model in found}
    assert rows["ollama_chat/llama3:latest"].window == 2048
    assert "lm_studio/gemma" in rows, "not loaded yet, but to be had"
    assert rows["lm_studio/qwen"].window_source == "loaded" and "lm_studio/nomic" not in rows
    assert rows["hosted_vllm/qwen"].api_base == vllm.base_url
    claude = next(model for model in found if model.provider == "Anthropic")
    assert claude.window_source == "catalogue" and claude.window >= 200_000
    assert claude.input_cost and claude.output_cost and claude.output_cost > claude.input_cost
    assert "ANTHROPIC_API_KEY" in claude.note and not claude.api_base
    assert not any(model.provider == "OpenAI" for model in found)


async def test_discovery_with_nothing_there() -> None:
    assert await discover([LocalServer("hosted_vllm", "http://127.0.0.1:1")], {}) == ()


def test_ollama_is_looked_for_where_its_variable_says() -> None:
    assert local_servers({"OLLAMA_HOST": "0.0.0.0"})[0].root == "http://127.0.0.1:11434"
    for told, root in (
        (":7000", "127.0.0.1:7000"),
        ("::1", "[::1]:11434"),
        ("[::]:9", "127.0.0.1:9"),
        ("box/p", "box:11434/p"),
    ):
        assert local_servers({"OLLAMA_HOST": told})[0].root == f"http://{root}"
    assert local_servers({"OLLAMA_HOST": "https://box"})[0].root == "https://box", "its own port only without a scheme"
    assert local_servers({"OLLAMA_HOST": "http://box:7000/"})[0].root == "http://box:7000"
    assert local_servers({})[0].root == "http://127.0.0.1:11434"
