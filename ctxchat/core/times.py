"""Converts times between their stored form (ISO 8601, UTC, to the millisecond) and seconds since the epoch (1970). Pure: reads no
clock."""

from __future__ import annotations

import re
from calendar import timegm

_STORED = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?(?:Z|\+00:00)")

DAY_S = 86_400


def epoch(at: str) -> float:
    """A stored time as seconds since the epoch; 0 for a text that is no time."""
    match = _STORED.fullmatch(at)
    if not match:
        return 0.0
    *whole, fraction = match.groups()
    return timegm(tuple(int(part) for part in whole)) + float(f"0.{fraction or 0}")


def iso(second: float) -> str:
    """Seconds since the epoch as a stored time."""
    milliseconds = round(second * 1000)
    days, rest = divmod(milliseconds, DAY_S * 1000)
    # Counted in eras of 400 years that begin in March, so that a leap day is the last of its year (Hinnant, "chrono-Compatible
    # Low-Level Date Algorithms").
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    minutes, rest = divmod(rest, 60_000)
    hour, minute = divmod(minutes, 60)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{rest // 1000:02d}.{rest % 1000:03d}Z"
