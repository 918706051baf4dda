"""Tools that Claude loads late: which of them a refusal is taken to mean."""

from __future__ import annotations

from typing import Any

from ctxchat.core.errors import ModelError
from ctxchat.models.deferred_tools import DEFERRED, REFERENCE, refused


def found(*names: str) -> dict[str, Any]:
    return {"role": "tool", "content": [{"type": REFERENCE, "tool_name": name} for name in names]}


def test_a_refusal_that_names_no_tool_means_those_that_no_earlier_request_had() -> None:
    tools = [{"function": {"name": name}, DEFERRED: True} for name in ("a", "b")]
    problem = ModelError("tool_reference is not supported", "", kind="bad_request")
    assert refused({"tools": tools, "messages": [found("a"), found("a", "b")]}, problem) == {"b"}
    assert refused({"tools": tools, "messages": [found("a")]}, problem) == {"a"}
