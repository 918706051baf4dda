"""An overflow is told in whatever object it comes: any SDK's exception, chains, groups, bodies, streams, anything at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.overflow import is_context_overflow, output_excess, stated_prompt, stated_window
from tests.core.test_overflow import ApiError
from tests.examples import examples

SAID = "Input is too long for requested model."
OTHER = "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 217 instead."


def held(**attributes: object) -> Exception:
    """An error whose text says nothing, with what a library keeps beside it."""
    error = RuntimeError("the call failed")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def shapes(said: str) -> Iterator[tuple[str, object]]:
    """One sentence in the shapes that gateways, SDKs and streams give it."""
    error = {"message": said, "type": "invalid_request_error", "param": None, "code": None}
    body = json.dumps({"error": error})
    noted = RuntimeError("the call failed")
    noted.add_note(said)
    grouped = ExceptionGroup("two", [ValueError("other"), ExceptionGroup("inner", [RuntimeError(said)])])
    yield from (
        ("note", noted),
        ("group", grouped),
        ("args", Exception(400, {"error": error})),
        ("status and body", (400, body)),
    )
    for name in (
        "details",
        "reason",
        "description",
        "data",
        "content",
        "error_msg",
        "response_body",
        "http_body",
        "json_body",
    ):
        yield name, held(**{name: said})
    yield from (("bytes kept", held(content=body.encode())), ("body kept", held(data={"error": error})))
    for name in ("original_error", "last_error", "cause", "inner", "whatever_it_is_called"):
        yield name, held(**{name: RuntimeError(said)})
    yield "errors kept", held(errors=[RuntimeError("other"), RuntimeError(said)])
    yield "FastAPI", {"detail": [{"type": "value_error", "loc": ["body"], "msg": said}]}
    yield "Cloudflare", {"errors": [{"code": 5021, "message": said}], "success": False, "result": {}, "messages": []}
    yield "MiniMax", {"base_resp": {"status_code": 2013, "status_msg": said}}
    yield "Bedrock's stream", {"validationException": {"message": said}}
    yield "OpenRouter", {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": body}}}
    yield (
        "JSON-RPC",
        {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal error", "data": {"details": said}}},
    )
    yield (
        "responses",
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": said}},
        },
    )
    told = 'data: {"id": "1", "choices": [{"delta": {"content": "Hello"}}]}\n\n'
    yield "after some text", f"{told * 9}data: {body}\n\ndata: [DONE]\n\n"
    yield "lines of JSON", f'{{"message": {{"role": "assistant", "content": "Hi"}}}}\n{json.dumps({"error": said})}\n'
    yield "comment first", f": PROCESSING\n\nevent: error\ndata: {body}\n\n".encode()
    yield "cut off", body[:-5]
    yield "twice JSON", json.dumps(body)


@pytest.mark.parametrize(("name", "error"), list(shapes(SAID)))
def test_a_refusal_in_every_shape(name: str, error: object) -> None:
    assert is_context_overflow(error), name


@pytest.mark.parametrize(("name", "error"), list(shapes(OTHER)))
def test_another_error_in_every_shape(name: str, error: object) -> None:
    assert not is_context_overflow(error), name


def test_a_sentence_without_spaces_is_no_code() -> None:
    assert is_context_overflow({"error": {"code": 400, "reason": "输入的token数量超过了模型上下文长度限制"}})


def test_what_a_stream_said_before_it_broke_is_no_evidence() -> None:
    told = 'data: {"choices": [{"delta": {"content": "prompt is too long: 9001 tokens > 8192 maximum"}}]}\n\n'
    assert not is_context_overflow(f'{told}data: {{"error": {{"message": "Overloaded"}}}}\n\n')
    assert not is_context_overflow(held(generated_content="prompt is too long: 9001 tokens > 8192 maximum"))


def test_a_class_named_for_it_does_not_beat_what_the_words_speak_of() -> None:
    """litellm raises its class by parts of words, so for long tool names and pictures too."""

    class ContextWindowExceededError(Exception):
        status_code = 400

    for said in (
        OTHER,
        "messages.5.content.2.image.source.base64: image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes",
    ):
        assert not is_context_overflow(
            ContextWindowExceededError(f"litellm.ContextWindowExceededError: OpenAIException - {said}")
        )
    assert is_context_overflow(ContextWindowExceededError("litellm.ContextWindowExceededError: see the body"))


def test_the_outermost_error_that_says_something_decides() -> None:
    inner, outer = ApiError("maximum context length is 8192 tokens", 400), ApiError("Rate limit reached", 429)
    outer.__context__ = inner
    assert not is_context_overflow(outer)
    silent = RuntimeError("failed")
    silent.__context__ = inner
    assert is_context_overflow(silent)
    lost = ApiError("Connection error.")
    lost.original_exception = inner  # type: ignore[attr-defined]
    assert is_context_overflow(lost)
    assert is_context_overflow(ExceptionGroup("two", [ValueError("other"), inner]))


def test_botocore_litellm_and_httpx_shapes() -> None:
    class ClientError(Exception):
        response = {"Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."}}

    class ContextWindowExceededError(Exception):
        status_code = 400

    class Unread:
        status_code = 400

        @property
        def text(self) -> str:
            raise RuntimeError("the response was not read")

        def json(self) -> dict[str, object]:
            return {"error": {"message": "prompt is too long"}}

    assert is_context_overflow(ClientError())
    assert is_context_overflow(ContextWindowExceededError("too much"))
    assert is_context_overflow(SimpleNamespace(response=Unread()))
    assert not is_context_overflow(ApiError("nothing", 500))


# ── anything at all ──

texts = st.text(max_size=60) | st.sampled_from(
    ["prompt is too long", "max_tokens", "429", "{", '{"error":', "\\u4e2d", "²", "1 + 2 > 3", "context"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts | st.sampled_from(["error", "message", "code", "usage", "choices"]), inner)
    ),
    max_leaves=12,
)
errors = st.builds(ApiError, texts, st.integers(-1, 700), anything) | st.builds(Exception, anything)


@given(anything | errors, st.none() | st.integers(-5, 10**9), st.none() | st.integers(-5, 10**9))
@examples(75, 300)
def test_it_never_raises(value: object, tokens: int | None, window: int | None) -> None:
    assert is_context_overflow(value, estimated_tokens=tokens, window=window) in (True, False)
    assert (
        stated_window(value) >= 0 and stated_prompt(value) >= 0 and output_excess(value, estimated_tokens=tokens) >= 0
    )


@given(st.lists(errors, min_size=1, max_size=6), st.data())
def test_chains_may_run_in_circles(chain: list[Exception], draw: st.DataObject) -> None:
    for error in chain:
        for name in ("__cause__", "__context__", "original_exception", "error"):
            setattr(
                error, name, draw.draw(st.sampled_from([None, *chain]) if name[0] == "_" else st.sampled_from(chain))
            )
    assert is_context_overflow(chain[0]) in (True, False)


class Evil:
    """Raises at whatever is done to it."""

    def __getattribute__(self, name: str) -> object:
        raise ValueError(name)

    __str__: Callable[..., str] = object.__str__


def test_objects_that_raise() -> None:
    assert not is_context_overflow(Evil())
    assert not is_context_overflow({"error": Evil(), "message": [Evil()]})
    assert is_context_overflow(["prompt is too long", Evil()])
