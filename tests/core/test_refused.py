"""What servers blame in a refused request, in their own words."""

from __future__ import annotations

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.refused import blamed_tool, blames_media

TOOLS = ("read_file", "shell", "s__make", "s__make_all")


def refused(words: str, status: int = 400, kind: str = "bad_request", code: str = "") -> ModelError:
    return ModelError("The server refused.", kind=kind, status=status, body=words, code=code)


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("Invalid schema for function 's__make': schema must have type 'object'", "s__make"),  # OpenAI
        ("tools.3.custom.input_schema: JSON schema is invalid", "s__make_all"),  # Anthropic
        (
            "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[a]: missing field",
            "s__make",
        ),
        ('{"loc": ["body", "tools", 2], "msg": "schema of s__make is none"}', "s__make"),
        ("Invalid schema for function 'unknown': no", ""),
        ("Function call is missing a thought_signature in functionCall parts: `read_file` schema", ""),
        ("messages.3.content.0: tool_result without tool_use for read_file, see schema", ""),
        ("Your schema is fine, the model is not", ""),
    ],
)
def test_a_blamed_tool(words: str, tool: str) -> None:
    assert blamed_tool(refused(words), TOOLS) == tool
    assert blamed_tool(refused(words, 429, "rate_limit"), TOOLS) == ""


@pytest.mark.parametrize(
    ("problem", "blames"),
    [
        (refused("Could not process image"), True),  # Anthropic
        (refused("You uploaded an unsupported image. Please make sure your image is valid."), True),  # OpenAI
        (
            refused("image input is not supported - you may need to provide the mmproj", 500, "server"),
            True,
        ),  # llama.cpp
        (refused("No endpoints found that support image input", 404, "not_found"), True),  # OpenRouter
        (refused("messages.0.content.1.document.source: The PDF specified was not valid"), True),
        (refused("图片输入格式/解析错误", code="1210"), True),  # GLM
        (refused("Your input image may contain content that is not allowed.", kind="content_filter"), True),  # Azure
        (refused("The response was filtered due to the prompt.", kind="content_filter"), False),
        (refused("Invalid value: temperature"), False),
        (refused("too many images a minute", 429, "rate_limit"), False),
        (refused("the image store is down", 503, "server"), False),
    ],
)
def test_blamed_content(problem: ModelError, blames: bool) -> None:
    assert blames_media(problem) is blames
