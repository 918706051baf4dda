"""What an option may be, in a few words for a person: range, unit, default, and where it counts. Values in, words out."""

from __future__ import annotations

import msgspec

from ctxchat.config.literals import literal
from ctxchat.config.options import NOW, Option


def limits(option: Option) -> str:
    """`0.3 to 0.98 (share of the limit); default 0.8`."""
    unit = f" ({option.facts.unit})" if option.facts.unit else ""
    named = "*" in option.path or option.path[:2] == ("context", "summary_model")
    trust = "; trusted folders only" if option.facts.trust and not named else ""
    counts = "" if option.facts.counts == NOW or named else f"; counts {option.facts.counts}"
    return f"{option.allowed}{unit}; {_default(option)}{trust}{counts}"


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return (
        "left out by default" if option.default is None else f"default {literal(msgspec.to_builtins(option.default))}"
    )
