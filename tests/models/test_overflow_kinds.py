"""One decision on an overflow: a failure's kind is what the core says of it, and litellm's own classes change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
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
    failed = failure(SdkError(status, {"code": "context_length_exceeded", "message": words}), began=False)
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
    failed = failure(SdkError(429, {"code": "context_length_exceeded", "message": words}), began=False)
    error = ModelError(failed.text, failed.hint, kind=failed.kind, status=429, code=failed.code, body=failed.body)
    assert failed.kind == kind
    assert not is_context_overflow(error)


OVERFLOWS = (
    "Input is too long for requested model.",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
)
OTHERS = (
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528.",
    "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024.",
)


def told_wrongly() -> list[str]:
    """What of all providers' errors, raised by litellm as classes of its own, is not told as what it is. Imports litellm."""
    import litellm
    from litellm.litellm_core_utils.exception_mapping_utils import exception_type
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    litellm.suppress_debug_info = True
    wrong = []
    for provider in (str(getattr(known, "value", known)) for known in litellm.provider_list):
        for said in (*OVERFLOWS, *OTHERS):
            refusal = BaseLLMException(status_code=400, message=json.dumps({"error": {"message": said}}))
            try:
                exception_type(model="model", original_exception=refusal, custom_llm_provider=provider)
            except Exception as error:  # every provider's class is another
                if is_context_overflow(error) is not (said in OVERFLOWS):
                    wrong.append(f"{provider}: {error!r}")
    return wrong


@pytest.mark.long
def test_for_every_provider_that_litellm_reaches() -> None:
    """In a process of its own: the import is slow, and no other test is to run with it."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import told_wrongly; print(told_wrongly())"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
