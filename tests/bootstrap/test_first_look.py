"""The first start: what is found here is offered, once; where nothing is found, one line says how to connect a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ctxchat.bootstrap.remembered import NOTHING_FOUND, first_look
from ctxchat.models.discovery import FoundModel, LocalServer, discover, offers, usual_base
from ctxchat.storage.database import Database
from tests.doubles.http_model import ModelDouble

OLLAMA = {
    "/api/tags": {"models": [{"name": "nomic-embed-text:latest"}, {"name": "llama3:latest"}, {"name": "qwen3:8b"}]},
    "/api/ps": {"models": []},
    "/api/show": {"model_info": {"llama.context_length": 131_072}},
}
LLAMA_CPP = {"/props": {"default_generation_settings": {"n_ctx": 16_384}}}


async def test_every_place_is_offered_once_with_its_window_and_price(tmp_path: Path) -> None:
    async with ModelDouble(pages=OLLAMA) as ollama, ModelDouble(pages=LLAMA_CPP, model="qwen") as llama:
        places = (
            LocalServer("ollama_chat", ollama.root),
            LocalServer("llamafile", llama.root),
            LocalServer("hosted_vllm", "http://127.0.0.1:9"),
        )

        async def found() -> tuple[FoundModel, ...]:
            return await discover(places, {"ANTHROPIC_API_KEY": "k"})

        with Database(tmp_path) as database:
            look = await first_look("", database, found)
            again = await first_look("", database, found)
        assert not ollama.requests and not llama.requests, "nobody is asked to chat"
    models = [o.model for o in look.offers]
    assert [(m.provider, m.name) for m in models[:2]] == [
        ("Ollama", "ollama_chat/llama3:latest"),
        ("llama.cpp", "llamafile/qwen"),
    ]
    assert (models[1].window, models[1].window_source) == (16_384, "loaded")
    assert models[2].provider == "Anthropic" and models[2].note == "key in ANTHROPIC_API_KEY" and models[2].input_cost
    assert [o.others for o in look.offers] == [1, 0, 3]
    assert not again.offers and not again.note, "whoever did not answer is not asked again"


async def test_a_model_that_is_set_ends_the_matter_before_anybody_is_asked(tmp_path: Path) -> None:
    async def never() -> tuple[FoundModel, ...]:
        raise AssertionError("nobody is to be asked")

    with Database(tmp_path) as database:
        look = await first_look("offline/assistant", database, never)
    assert not look.offers and not look.note


async def test_nothing_found_is_said_once_and_looked_for_again_at_the_next_start(tmp_path: Path) -> None:
    asked = 0

    async def nothing() -> tuple[FoundModel, ...]:
        nonlocal asked
        asked += 1
        return await discover([LocalServer("llamafile", "http://127.0.0.1:9")], {})

    with Database(tmp_path) as database:
        looks = [await first_look("", database, nothing) for _ in range(2)]
    assert [look.note for look in looks] == [NOTHING_FOUND, ""] and asked == 2


def test_a_server_that_only_embeds_is_not_offered() -> None:
    row = FoundModel("ollama_chat/nomic-embed-text", "Ollama", True, 2048, "loaded", note="running at x")
    assert offers([row]) == ()


def test_ollama_is_found_where_its_variable_says() -> None:
    assert usual_base("ollama_chat/x", {"OLLAMA_HOST": "10.0.0.7"}) == "http://10.0.0.7:11434"
    assert usual_base("ollama_chat/x", {}) == "" == usual_base("openai/x", {"OLLAMA_HOST": "10.0.0.7"})


def test_keys_in_the_keyring_are_found_where_a_person_waits_for_it(tmp_path: Path) -> None:
    ring = "def get_password(service, name):\n    return 'sk' if (service, name) == ('ctxchat', 'OPENAI_API_KEY') else None\n"
    tmp_path.joinpath("keyring.py").write_text(ring)
    code = (
        "from ctxchat.models.discovery import with_keys\n"
        "from ctxchat.models.settings import key_for\n"
        "from ctxchat.models.settings import ModelSettings\n"
        "assert with_keys({}) == []\n"
        "assert {m.note for m in with_keys({}, keyring=True)} == {'key in the keyring'}\n"
        "print(key_for(ModelSettings('openai/gpt-5-mini')))\n"
    )
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environ["PYTHONPATH"] = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2])))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert (ran.stdout.strip(), ran.stderr) == ("sk", "")
