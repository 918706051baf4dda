"""What to do about a model that does not answer, through the real litellm: who is away, which key is wrong, what is missing."""

from __future__ import annotations

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.models.client import ModelClient
from ctxchat.models.failures import failure, remedy
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, refuses
from tests.doubles.requests import asks, listen

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOBODY = "http://127.0.0.1:9"


async def told(worker: ModelProcess, settings: ModelSettings, key: str = "sk-wrong") -> ModelError:
    with pytest.raises(ModelError) as caught:
        await listen(ModelClient(settings, worker, lambda name: key), asks("hi"))
    return caught.value


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("ollama_chat/llama3", "ollama serve"),
        ("lm_studio/qwen", "lms server start"),
        ("llamafile/any", "llama-server"),
        ("hosted_vllm/qwen", "vllm serve qwen"),
        ("openai/any", "the address is right"),
        ("anthropic/claude-sonnet-4-5", "the address is right"),
    ],
)
async def test_a_server_that_is_away(worker: ModelProcess, name: str, remedy: str) -> None:
    problem = await told(worker, ModelSettings(name, api_base=NOBODY))
    assert (problem.kind, problem.status) == ("connection", 0)
    assert problem.text == "Cannot connect to 127.0.0.1:9: nobody listens there."
    assert remedy in problem.hint and (NOBODY in problem.hint)


async def test_a_key_that_is_refused_is_named_by_its_variable(worker: ModelProcess) -> None:
    async with ModelDouble([refuses(401, "Incorrect API key provided: sk-wrong")]) as double:
        problem = await told(worker, ModelSettings("openai/any", api_base=double.base_url, api_key_env="MY_KEY"))
        bare = await told(worker, ModelSettings("openai/any", api_base=double.base_url))
    assert problem.kind == "auth" and "MY_KEY was not accepted" in problem.hint
    assert "api_key_env" in bare.hint


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "gemini/gemini-2.5-pro",
            {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
                "details": [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
            },
        ),
        ("openai/any", {"message": "Incorrect API key provided: sk***ng.", "type": "invalid_request_error"}),
        ("openai/any", {"message": "No connected db.", "type": "no_db_connection", "code": "400"}),
    ],
    ids=["gemini", "xai", "litellm's proxy"],
)
async def test_a_key_refused_with_a_400_is_told_as_one(
    worker: ModelProcess, name: str, body: dict[str, object]
) -> None:
    async with ModelDouble([Reply(status=400, error={"error": body})]) as double:
        base = double.base_url if name.startswith("openai/") else double.root
        problem = await told(worker, ModelSettings(name, api_base=base, api_key_env="MY_KEY"))
    assert problem.kind == "auth" and "MY_KEY was not accepted" in problem.hint


@pytest.mark.parametrize(("name", "remedy"), [("litellm_proxy/any", "api_key_env"), ("azure/any", "AZURE_API_KEY")])
async def test_a_provider_without_a_key_we_know_of_is_asked_once(worker: ModelProcess, name: str, remedy: str) -> None:
    problem = await told(worker, ModelSettings(name, api_base=NOBODY if name.startswith("azure") else ""), key="")
    assert problem.kind == "auth" and not problem.transient and remedy in problem.hint


async def test_a_resource_of_azures_without_its_address_is_asked_for_it_once(worker: ModelProcess) -> None:
    problem = await told(worker, ModelSettings("azure/any", extra={"api_key": "sk"}))
    assert problem.kind == "not_found" and "api_base" in problem.hint


async def test_a_package_that_a_provider_needs_is_named_once() -> None:
    problem = failure(ModuleNotFoundError("No module named 'google'"), began=False)
    assert not problem.transient and problem.text == "No module named 'google'"
    assert "google-auth" in remedy(ModelSettings("vertex_ai/gemini-2.5-pro"), problem)
    absent = failure(ValueError("Google Cloud SDK not found. Install it with: …"), began=False)
    assert absent.kind == "not_found" and "google-cloud" in remedy(ModelSettings("vertex_ai/claude-sonnet-4-5"), absent)


async def test_an_account_in_a_cloud_is_told_its_variables() -> None:
    words = "BedrockException Invalid Authentication - Unable to locate credentials"
    problem = failure(RuntimeError(words), began=False)
    assert (problem.kind, problem.text) == ("auth", "Unable to locate credentials")
    assert "AWS_ACCESS_KEY_ID" in remedy(ModelSettings("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"), problem)


async def test_no_key_at_all_names_environment_and_keyring(worker: ModelProcess) -> None:
    problem = await told(worker, ModelSettings("openai/gpt-5-mini"), key="")
    assert "OPENAI_API_KEY is not set" in problem.text and "keyring set ctxchat OPENAI_API_KEY" in problem.hint


async def test_a_model_that_was_not_pulled(worker: ModelProcess) -> None:
    missing = Reply(status=404, error={"error": "model 'llama9' not found"})
    async with ModelDouble([missing]) as double:
        problem = await told(worker, ModelSettings("ollama_chat/llama9", api_base=double.root))
        studio = await told(worker, ModelSettings("lm_studio/qwen", api_base=double.base_url))
    assert problem.kind == "not_found" and "ollama pull llama9" in problem.hint
    assert "lms load qwen" in studio.hint


async def test_an_address_without_its_path(worker: ModelProcess) -> None:
    async with ModelDouble() as double:
        problem = await told(worker, ModelSettings("openai/any", api_base=f"{double.root}/nowhere"))
        other = await told(worker, ModelSettings("cohere_chat/any", api_base=f"{double.root}/nowhere"))
    assert problem.kind == other.kind == "not_found" and "/v1" in problem.hint and "/v1" not in other.hint
