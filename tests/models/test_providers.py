"""Names and keys: whose model it is, and a clear word where a name or a key is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ctxchat.core.errors import ModelError, UsageError
from ctxchat.models import catalogue
from ctxchat.models.providers import PROVIDERS, provider_of
from ctxchat.models.settings import ModelSettings, key_for


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("gpt-4o", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("openrouter/meta/llama", "openrouter"),
        ("snowflake/claude", "snowflake"),
    ],
)
def test_who_serves_it(name: str, prefix: str) -> None:
    assert provider_of(name).prefix == prefix


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("antropic/claude-x", "anthropic/claude-x"),
        ("gpt4o", "gpt-4o"),
        ("olama_chat/llama3", "ollama_chat/llama3"),
        ("zzz/qqq", "provider/model"),
    ],
)
def test_wrong_names_are_told_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UsageError) as caught:
        provider_of(name)
    assert nearest in caught.value.hint and name in caught.value.text


def test_what_is_offered_is_in_the_catalogue() -> None:
    known = [f"{p.prefix}/{offer}" for p in PROVIDERS.values() for offer in p.offers]
    missing = [name for name in known if not catalogue.catalogue_model(name)]
    assert missing == ["openrouter/openrouter/auto"]  # it chooses among all, so it has no entry of its own


def test_keys() -> None:
    environment = {"OPENAI_API_KEY": "sk", "GOOGLE_API_KEY": "g", "MINE": "m"}

    def key(name: str, **more: str) -> str:
        return key_for(ModelSettings(name=name, **more), lambda variable: environment.get(variable, ""))

    assert key("gpt-4o") == "sk" and key("gemini/gemini-2.5-pro") == "g"
    assert key("openai/x", api_base="http://somewhere/v1") == "none"
    assert key("openai/x", api_base="http://somewhere/v1", api_key_env="MINE") == "m"
    assert key("azure/mine", api_base="https://mine.openai.azure.com") == ""
    assert key("bedrock/claude") == "" and key("ollama_chat/llama3") == "none"
    with pytest.raises(ModelError, match="THEIRS is not set"):
        key("openai/x", api_key_env="THEIRS")


def test_prices_are_by_the_million() -> None:
    known = catalogue.prices("anthropic/claude-sonnet-4-5")
    assert known is not None and known.rates.input == 3.0
    assert catalogue.prices("openai/my-own") is None


def test_a_model_is_known_by_each_of_its_providers_names() -> None:
    claude = catalogue.catalogue_model("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert claude is not None and claude.window == 200_000
    assert (
        catalogue.catalogue_model("cohere/command-a-03-2025")
        == catalogue.catalogue_model("cohere_chat/command-a-03-2025")
        is not None
    )
    assert catalogue.catalogue_model("openai/anthropic.claude-sonnet-4-5-20250929-v1:0") is None


def test_nothing_here_imports_litellm() -> None:
    code = (
        "import sys\n"
        "import ctxchat.models.client, ctxchat.models.discovery\n"
        "from ctxchat.models import catalogue, providers\n"
        "assert catalogue.catalogue_model('gpt-4o') and providers.provider_of('gpt-4o')\n"
        "print(*({'litellm', 'httpx', 'tiktoken', 'openai'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == ""
