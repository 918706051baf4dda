"""The settings as a JSON Schema, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxchat.config.options import facts, members
from ctxchat.config.schema import Settings, own_names


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, made from the types of the settings."""
    schema: dict[str, Any] = msgspec.json.schema(Settings)
    tables: dict[str, Any] = schema["$defs"]
    tables["AgentSettings"]["properties"]["context"] = {"$ref": "#/$defs/ContextSettings"}
    for name, field in members(type(Settings().context)).items():
        words = own_names(facts(field.type).names)
        if words:
            part = tables["ContextSettings"]["properties"][name]
            part.get("items", part)["examples"] = list(words)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctxchat config.toml", **schema}
