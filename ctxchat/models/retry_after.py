"""How long a server asks to wait before the next try: in its headers, or in its words. Pure, but for the time of day."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

_AGAIN = re.compile(
    r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)|\"retryDelay\": ?\"(\d+(?:\.\d+)?s)\"",
    re.I,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)", re.I)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(chain: Sequence[BaseException], body: str) -> float | None:
    """Seconds, by a header of any error in the chain, else by the words of the body; None where nothing is said."""
    for error in chain:
        headers = [getattr(getattr(error, "response", None), "headers", None)]
        headers += [getattr(error, "litellm_response_headers", None), getattr(error, "headers", None)]
        for found in headers:
            seconds = _from_headers(found) if isinstance(found, Mapping) else None
            if seconds is not None:
                return seconds
    said = _AGAIN.search(body)
    if said is None:
        return None
    return sum(float(n) * _SECONDS[unit.lower()] for n, unit in _SPAN.findall(said[1] or said[2]))


def _from_headers(headers: Mapping[Any, Any]) -> float | None:
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = values.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) * scale
        if value and name == "retry-after" and (date := email.utils.parsedate_tz(value)):
            return max(0.0, email.utils.mktime_tz(date) - time.time())
    return None
