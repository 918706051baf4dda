"""Builds settings from a valid tree, for the program and for a single agent, and finds values that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ctxchat.config.option_table import find_option
from ctxchat.config.problems import ConfigFault, KeyPath, display_value, key_text, nearest
from ctxchat.config.schema import DEFAULTS, AgentSettings, ContextSettings, Settings
from ctxchat.config.toml_positions import parse_key
from ctxchat.config.trees import Tree, get, nested, overlay
from ctxchat.core.errors import UsageError


def for_agent(settings: Settings, name: str | None = None) -> tuple[Settings, AgentSettings]:
    """The settings for an agent, and its own table (prompt, tools; None in it means the usual ones).

    `name` None means the agent that the settings name, an empty name the usual agent. Raises UsageError for an unknown name.
    """
    name = settings.agent if name is None else name
    if not name:
        return msgspec.structs.replace(settings, agent=""), AgentSettings()
    if name not in settings.all_agents:
        near = nearest(name, settings.all_agents)
        hint = f"Did you mean {near}?" if near else f"Agents: {', '.join(settings.all_agents)}."
        raise UsageError(f"There is no agent {display_value(name)}.", hint)
    agent = settings.all_agents[name]
    permissions = settings.permissions
    if agent.permissions is not None:
        permissions = msgspec.structs.replace(permissions, mode=agent.permissions)
    model = settings.model if agent.model is None else agent.model
    context = agent_context(settings, name)
    return msgspec.structs.replace(settings, agent=name, model=model, permissions=permissions, context=context), agent


_SERVER = re.compile(r"[A-Za-z0-9_-]{1,30}")

_CONTEXT: dict[str, Any] = {
    "compression_trigger": DEFAULTS.context.compression_trigger,
    "target": DEFAULTS.context.target,
    "prepare": {"soft_mark": DEFAULTS.context.prepare.soft_mark},
    "reactive": {
        "micro_trigger": DEFAULTS.context.reactive.micro_trigger,
        "full_trigger": DEFAULTS.context.reactive.full_trigger,
    },
}

_MARKS: tuple[tuple[KeyPath, KeyPath, float], ...] = (
    (("target",), ("compression_trigger",), 0.67),
    (("prepare", "soft_mark"), ("compression_trigger",), 0.8),
    (("reactive", "micro_trigger"), ("reactive", "full_trigger"), 0.92),
)
"""Each mark, the mark it must stay below, and its share of that one where it is not set itself."""


def build(tree: Tree) -> Settings:
    """The settings of a valid tree. Marks that are not set are lowered with those above them."""
    context = tree.get("context", {})
    return msgspec.convert({**tree, "context": lower_marks(context, context)}, Settings)


def with_values(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """The settings with the values of some options replaced, by dotted key. Values from an earlier version are ignored where the
    option, its agent or its model no longer exists."""
    tree = msgspec.to_builtins(settings)
    for key, value in values.items():
        path = parse_key(key)
        if find_option(path) and (path[0] not in ("agents", "models") or get(tree, path[:2]) is not None):
            tree = overlay(tree, nested(path, value))
    try:
        return msgspec.convert(tree, Settings) if values else settings
    except msgspec.ValidationError:
        return settings


def lower_marks(context: Tree, own: Tree) -> Tree:
    """A context table in which marks that `own` does not set are lowered below those that it does."""
    full = overlay(_CONTEXT, context)
    for low, high, share in _MARKS:
        if get(own, low) is None and get(own, high) is not None and get(full, low) >= get(full, high):
            context = overlay(context, nested(low, round(get(full, high) * share, 4)))
    return context


def agent_context(settings: Settings, name: str) -> ContextSettings:
    """The context options of an agent: those it sets itself, and the program's for all others."""
    own = settings.all_agents[name].context
    merged = overlay(msgspec.to_builtins(settings.context), own)
    return msgspec.convert(lower_marks(merged, own), ContextSettings)


def contradictions(settings: Settings) -> list[ConfigFault]:
    """The values that are allowed each by itself but not together."""
    faults = list(_context(settings.context, ("context",)))
    for name, agent in settings.agents.items():
        agent_faults = _context(agent_context(settings, name), ("agents", name, "context"))
        faults += [f for f in agent_faults if get(agent.context, f.path[3:]) is not None]
    if settings.agent and settings.agent not in settings.all_agents:
        near = nearest(settings.agent, settings.all_agents)
        faults.append(
            ConfigFault(("agent",), f"there is no agent {display_value(settings.agent)} in [agents]", nearest=near)
        )
    for name, model in settings.models.items():
        if model.fallback == name:
            faults.append(ConfigFault(("models", name, "fallback"), "is the model itself", "another model"))
    for name, server in settings.mcp.items():
        if not _SERVER.fullmatch(name):  # it becomes part of the names of its tools, which must stay distinct
            faults.append(ConfigFault(("mcp", name), "is no name for a server", "up to 30 letters, digits, - and _"))
        if bool(server.command) == bool(server.url):
            what = "has both a command and a url" if server.url else "has neither a command nor a url"
            faults.append(ConfigFault(("mcp", name, "url" if server.url else "command"), what, "exactly one of them"))
        if like := next(
            (other for other in settings.mcp if name != other and f"{name}__".startswith(f"{other}__")), ""
        ):
            what = f"has tools that could not be told from those of mcp.{like}"
            faults.append(
                ConfigFault(("mcp", name), what, f"needs a name without {like}_ in front", against=("mcp", like))
            )
    return faults


def _context(c: ContextSettings, at: KeyPath) -> Iterator[ConfigFault]:
    """The contradictions among the settings of the context."""
    full = overlay(_CONTEXT, msgspec.to_builtins(c))
    for low, high, _ in _MARKS:
        if low[0] == "prepare" and not c.prepare.enabled:
            continue
        if get(full, low) >= get(full, high):
            what = f"{get(full, low)} is not below {key_text(high)} ({get(full, high)})"
            yield ConfigFault((*at, *low), what, against=(*at, *high))
    for pattern in c.redact:
        try:
            re.compile(pattern)
        except re.error as wrong:
            yield ConfigFault((*at, "redact"), f"{display_value(pattern)} is no regular expression ({wrong})")
    sizes = ("output_reserved", "summary_max_tokens", "facts_max_tokens")
    for name, size in ((name, getattr(c, name)) for name in sizes):
        if size >= c.max_tokens > 0 and size != getattr(DEFAULTS.context, name):
            yield ConfigFault(
                (*at, name), f"{size} does not fit into max_tokens ({c.max_tokens})", against=(*at, "max_tokens")
            )
