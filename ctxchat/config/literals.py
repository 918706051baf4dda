"""Values as TOML writes them, on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def literal(value: Any) -> str:
    """A text, number, truth value, list or table as one line of TOML. Raises TypeError for anything else."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(literal(v) for v in value)}]"
        case Mapping():
            pairs = ", ".join(f"{bare_key(str(k))} = {literal(v)}" for k, v in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a settings file")


def bare_key(part: str) -> str:
    """One part of a key, in quotes where it needs them."""
    return part if _BARE.fullmatch(part) else literal(part)
