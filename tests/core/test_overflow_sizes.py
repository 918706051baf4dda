"""What a refusal tells of sizes: the window, and the room beside an input that fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow import output_excess, stated_prompt, stated_window
from ctxchat.core.overflow.sizes import named_prompt, named_window

WINDOWS = [
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 8192),
    ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length", 200_000),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 533603 tokens.", 272_000),
    ("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
    ("Please reduce the length of the messages or completion. Current length is 12034 while limit is 8192", 8192),
    (
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens.",
        32_768,
    ),
    ("The prompt is too long: 40177, model maximum context length: 32767", 32_767),
    ("Prompt contains 66385 tokens, too large for model with 32768 maximum context length", 32_768),
    ("The input (516368 tokens) is longer than the model's context length (262144 tokens).", 262_144),
    ("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).", 59_862),
    ("The decoder prompt (length 9001) is longer than the maximum model length of 8192.", 8192),
    ("request (21953 tokens) exceeds the available context size (16384 tokens), try increasing it", 16_384),
    ("cannot truncate prompt with n_keep (13575) >= n_ctx (4096)", 4096),
    ("Requested tokens (5012) exceed context window of 4096", 4096),
    ("However, the model is loaded with context length of only 7866 tokens, prompt too long", 7866),
    ("Context length 9012 is greater than max_seq_len 8192", 8192),
    ("prompt token count of 138898 exceeds the limit of 64000", 64_000),
    ("Range of input length should be [1, 30720]", 30_720),
    ("Your request exceeded model token limit: 262144 (requested: 291351)", 262_144),
    ("number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.", 202_752),
    ("Input validation error: `inputs` must have less than 2048 tokens. Given: 2222", 2048),
    ("Request exceeds context window of 8,192 tokens", 8192),
    ("Model context window is 128k tokens, you requested 256k tokens", 128_000),
    ("输入过长，最大长度为 30720", 30_720),
    ("prompt too long; exceeded max context length by 100918 tokens", 0),
    ("Your input exceeds the context window of this model.", 0),
    ("Malformed input request: expected maxLength: 50000, actual: 61280, please reformat your input", 0),
    ("the max input characters is 20000 characters, input too long", 0),
    ("Rate limit reached: context length 8192, Limit 30000 tokens per min", 0),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS)
def test_the_window_that_is_named(text: str, window: int) -> None:
    assert stated_window(text) == window
    assert (
        stated_window(ModelError(text, kind="bad_request", status=400, body=json.dumps({"error": {"message": text}})))
        == window
    )


def test_a_window_in_a_field_of_its_own() -> None:
    body = {
        "error": {"type": "exceed_context_size_error", "message": "too long", "n_prompt_tokens": 9001, "n_ctx": 8192}
    }
    assert stated_window(body) == 8192
    assert stated_window(ModelError("too long", kind="overflow", status=400, body=json.dumps(body))) == 8192


def test_what_refusals_name_in_the_file() -> None:
    sizes: list[tuple[str, int, int]] = json.loads((Path(__file__).parent / "overflow_sizes.json").read_text())["sizes"]
    wrong = [row for row in sizes if (named_window(row[0]), named_prompt(row[0])) != (row[1], row[2])]
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"


PROMPTS = [
    ("prompt is too long: 213462 tokens > 200000 maximum", 213_462),
    ("maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 9001),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 188_240),
    (
        "maximum context length is 8192 tokens. You requested 9000 tokens (7000 in the messages, 192 in the functions, and "
        "1808 in the completion).",
        7192,
    ),
    (
        "maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least "
        "134145 input tokens, for a total of at least 262145 tokens.",
        0,
    ),
    ("Your input exceeds the context window of this model.", 0),
    ("Rate limit reached: 30000 tokens per min, prompt is too long: 40000 tokens > 30000", 0),
]


@pytest.mark.parametrize(("text", "prompt"), PROMPTS)
def test_the_prompt_as_the_server_counted_it(text: str, prompt: int) -> None:
    assert stated_prompt(text) == prompt


def test_a_prompt_in_a_field_of_its_own() -> None:
    body = {
        "error": {"code": "exceed_context_size_error", "message": "too long", "n_prompt_tokens": 9001, "n_ctx": 8192}
    }
    assert (stated_prompt(body), stated_window(body)) == (9001, 8192)


ROOM = [
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
        11_760,
    ),
    ("prompt 190000 + max_tokens 20000 > context limit 200000", 10_000),
    (
        "maximum context length is 4096. However, you requested 4130 tokens (3130 in the messages, 1000 in the completion).",
        966,
    ),
    (
        "maximum context length is 4096, however you requested 4130 tokens (3130 in your prompt; 1000 for the completion).",
        966,
    ),
    (
        "maximum context length is 8192 tokens. You requested 9000 tokens (7000 in the messages, 192 in the functions, and "
        "1808 in the completion).",
        1000,
    ),
    ("`inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`", 512),
    (
        "maximum context length of 202752 tokens. You requested 202941 tokens: 170941 tokens from the input messages and "
        "32000 tokens for the completion.",
        31_811,
    ),
    (
        "maximum context length is 131072 tokens. However, you requested about 140000 tokens (100000 of text input, 8000 of tool "
        "input, 32000 in the output).",
        23_072,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 32768 tokens and "
        "your request has 2000 input tokens (100000 > 32768 - 2000).",
        30_768,
    ),
    (
        "The input token count (11) plus the requested output count (9000) exceeds the model's maximum context length (8192)",
        8181,
    ),
    ("prompt tokens (3021) plus max completion tokens (1500) exceed the context window (4096)", 1075),
    (
        "You passed 5000 input tokens and requested 4096 output tokens. However, the model's context length is only 8192 tokens, "
        "resulting in a maximum input length of 4096 tokens.",
        3192,
    ),
    (
        "You passed 8193 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens.",
        0,
    ),
    (
        "maximum context length is 65536. You requested 69648 tokens (69648 in the messages, 0 in the completion).",
        0,
    ),
    ("input length and `max_tokens` exceed context limit: 201000 + 8192 > 200000", 0),
    (
        "The sum of prompt length (7000.0), query length (0) and max_tokens (2000) should not exceed max_num_tokens (8192)",
        1192,
    ),
    ("prompt is too long: 213462 tokens > 200000 maximum", 0),
    ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 0),
    ("Your input exceeds the context window of this model.", 0),
]


@pytest.mark.parametrize(("text", "room"), ROOM)
def test_room_for_output_beside_an_input_that_fits(text: str, room: int) -> None:
    assert output_excess(text) == room
    assert output_excess(ModelError(text, kind="overflow" if room else "bad_request", status=400, body=text)) == room


def test_a_lower_bound_of_the_input_needs_our_own_count() -> None:
    text = (
        "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your "
        "prompt contains at least 134145 input tokens, for a total of at least 262145 tokens."
    )
    assert output_excess(text) == 0
    assert output_excess(text, estimated_tokens=140_000) == 262_144 - 154_000
    assert output_excess(text, estimated_tokens=250_000) == 0
