"""One decision on a server's own code for an overflow: the kind that a failure gets is what the core says of it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow import is_context_overflow
from ctxchat.models.failures import failure


class SdkError(Exception):
    """Shaped like an SDK's."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"Error code: {status} - {body}")
        self.status_code, self.body = status, body


@pytest.mark.parametrize("status", [400, 413, 429, 500])
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("slow down", "overflow"),
        ("The prompt has too many tokens.", "overflow"),
        (
            "maximum context length is 4096, you requested 4130 tokens (3130 in the messages, 1000 in the completion)",
            "bad_request",
        ),
    ],
)
def test_a_code_is_believed_whatever_the_status(status: int, words: str, kind: str) -> None:
    failed = failure(1, SdkError(status, {"code": "context_length_exceeded", "message": words}), began=False)
    error = ModelError(failed.text, failed.hint, kind=failed.kind, status=status, code=failed.code, body=failed.body)
    assert failed.kind == kind
    assert is_context_overflow(error)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Rate limit reached for gpt-4 on tokens per min (TPM): Limit 30000, Requested 31000.", "rate_limit"),
        ("You exceeded your current quota: insufficient_quota", "quota"),
    ],
)
def test_a_rate_or_quota_beside_it_speaks_louder(words: str, kind: str) -> None:
    failed = failure(1, SdkError(429, {"code": "context_length_exceeded", "message": words}), began=False)
    error = ModelError(failed.text, failed.hint, kind=failed.kind, status=429, code=failed.code, body=failed.body)
    assert failed.kind == kind
    assert not is_context_overflow(error)
