"""Decides whether an error is an overflow (the prompt did not fit the model's context window), and which sizes it names.

Pure: goes by names of classes, statuses, codes and texts, whatever object they come in; imports no provider's library.
"""

from __future__ import annotations

import re

from ctxchat.core.overflow import denials, wordings
from ctxchat.core.overflow.denials import denied, metered
from ctxchat.core.overflow.reading import ErrorDetails, readings
from ctxchat.core.overflow.sizes import named_prompt, named_window, room_for_output
from ctxchat.core.overflow.wordings import BARE, NUMBERS, SIZE, SIZE_CODE, WEAK, too_long

_NEVER_STATUS = {401, 402, 403, 407, 408, 429}
_NEVER_KIND = {"rate_limit", "quota", "auth", "settings", "content_filter", "timeout", "limit"}
_NEVER_NAME = {
    *("RateLimitError", "AuthenticationError", "PermissionDeniedError", "ContentPolicyViolationError"),
    *("BudgetExceededError", "Timeout", "APITimeoutError", "TimeoutException", "TimeoutError", "ThrottlingException"),
}
_OVERFLOW_NAME = re.compile(r"context_?(?:window|length|size|limit)?_?(?:overflow|exceeded)", re.I)


def is_context_overflow(error: object, *, estimated_tokens: int | None = None, window: int | None = None) -> bool:
    """True where a server refused a prompt because it was longer than its window, or answered one that was.

    `error` may be an exception of any library (with its causes), a body, an event of a stream, a reply, or a text.
    `estimated_tokens` is our own count of the prompt and `window` the window as far as known, both in tokens. With both, a
    refusal without a reason counts as an overflow if the prompt is at least half the window, and one because the body is too
    large only then.

    For each error of a chain, the outermost first, these are checked in order: an error code for overflows; what is never one
    (rates, quotas, keys, filters, the output limit); the text; then status and size. Never raises.
    """
    share = estimated_tokens / window if estimated_tokens is not None and window else None
    for reading in readings(error):
        verdict = _verdict(reading, share, window or 0)
        if verdict is not None:
            return verdict
    return False


def stated_window(error: object) -> int:
    """The window in tokens that an overflow names; 0 where it names none or the error is no overflow."""
    return named_window(_refusal(error))


def overflow_code(code: str, words: str = "") -> bool:
    """True where an error code stands for an overflow. It counts for more than the text and than a status 429, which a gateway
    may have set; but not where the text `words` names a rate or a quota.
    """
    return _coded([code], words)


def stated_prompt(error: object) -> int:
    """The prompt in tokens as the server counted it, by an overflow; 0 where it names no number or only a lower bound."""
    return named_prompt(_refusal(error))


def output_excess(error: object, *, estimated_tokens: int | None = None) -> int:
    """The longest reply in tokens that would fit, where the server says that the prompt fits but not the prompt and the requested
    reply together; 0 otherwise. Where the server names only a lower bound of the prompt, our own count `estimated_tokens` is
    used.
    """
    return room_for_output(_refusal(error), estimated_tokens)


def _refusal(error: object) -> str:
    """The text of the first error in a chain that says anything about overflows, where it is one; empty where it is none."""
    for reading in readings(error):
        verdict = _verdict(reading, None, 0)
        if verdict is not None:
            return reading.words if verdict else ""
    return ""


def _verdict(reading: ErrorDetails, share: float | None, window: int) -> bool | None:
    """Whether an error is an overflow; None where it does not tell. `share` is our count of the prompt as a share of the window,
    None where that is not known; `window` is in tokens, 0 where not known."""
    words = reading.words
    if reading.kind == "overflow" or _coded(reading.codes, words):
        return True
    if _never(reading, words):
        return False
    if window and (reading.total > window or (reading.prompt >= 0.99 * window and not reading.said)):
        return True
    if too_long(words) or named_prompt(words) > named_window(words) > 0 or _names_overflow(reading.names):
        return True
    if 413 in reading.statuses or SIZE.search(words) or any(SIZE_CODE.fullmatch(code) for code in reading.codes):
        return share is None or share >= 0.5
    if WEAK.search(words) or (
        400 in reading.statuses and all(len(text) < 500 and BARE.match(text) for text in reading.reasons)
    ):
        return True if share is not None and share >= 0.5 else None
    return None


def _names_overflow(names: set[str]) -> bool:
    return any(_OVERFLOW_NAME.search(name) for name in names)


def _coded(codes: list[str], words: str) -> bool:
    """True where one of the codes stands for an overflow and neither codes nor text name a rate or a quota."""
    coded = any(code in NUMBERS or wordings.CODE.match(code.replace("-", "_")) for code in codes)
    return coded and not metered(codes, words)


def _never(reading: ErrorDetails, words: str) -> bool:
    """True for an error that is certainly something else than an overflow."""
    return bool(
        reading.kind in _NEVER_KIND
        or reading.statuses & _NEVER_STATUS
        or reading.names & _NEVER_NAME
        or any(denials.CODE.search(code) for code in reading.codes)
        or denied(words)
    )
