"""Whatever a model wrote as arguments: an object, or none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.call_arguments import MAX_NESTING_LEVELS, fields_of
from ctxchat.core.openai import whole_arguments

JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), st.lists, max_leaves=8)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_an_object_is_read(fields: dict[str, object]) -> None:
    assert fields_of(json.dumps(fields)) == fields and fields_of("") == {}


@pytest.mark.parametrize("text", ["{broken", "[1]", "1", "nul", '{"a":"\ud800"}', "[" * 100_000, '{"a":' * 100_000])
def test_what_is_none_is_quoted_whole_for_a_provider(text: str) -> None:
    assert fields_of(text) is None
    assert json.loads(whole_arguments(text))["_broken"].startswith(text[:4])


@pytest.mark.parametrize("deep", [MAX_NESTING_LEVELS - 1, MAX_NESTING_LEVELS + 1, 900])
def test_a_nest_without_end_is_no_object(deep: int) -> None:
    read = fields_of('{"a":' + "[" * deep + "]" * deep + "}")
    assert (read is None) == (deep >= MAX_NESTING_LEVELS)
