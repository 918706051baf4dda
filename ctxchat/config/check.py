"""Whether a settings tree is right: unknown keys, wrong values, contradictions. Values in, values and faults out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, get_args

import msgspec

from ctxchat.config.options import Shape, allowed, facts, members, shape
from ctxchat.config.problems import KeyPath, key_text, nearest, shown
from ctxchat.config.schema import DEFAULTS, OWN_NAMES, ContextSettings, HookSettings, Settings, Table

KnownNames = Callable[[str], Collection[str]]
"""The words of an open list (`strategies`, `providers`, `transforms`, `tools`) besides our own; asked only when needed."""


class Fault(msgspec.Struct, frozen=True):
    """What is wrong at one place of a tree. `against` is the other place of a contradiction."""

    path: KeyPath
    what: str
    allowed: str = ""
    nearest: str = ""
    against: KeyPath = ()


class _Wrong(Exception):
    """The value cannot stay."""


def check(tree: dict[str, Any], known: KnownNames) -> tuple[dict[str, Any], list[Fault]]:
    """The right part of a settings tree, in plain values, and everything that is wrong with the rest."""
    faults: list[Fault] = []
    return _table(tree, Settings, (), faults, known), faults


def build(tree: dict[str, Any]) -> Settings:
    """The settings of a right tree; marks that nobody set stay below the ones somebody lowered."""
    context = tree.get("context", {})
    return msgspec.convert({**tree, "context": settle(context, context)}, Settings)


def settle(context: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A context table in which lowering a mark takes along the marks below it that `own` does not set itself."""
    full = overlay(_CONTEXT, context)
    for low, high, share in _MARKS:
        if get(own, low) is None and get(own, high) is not None and get(full, low) >= get(full, high):
            context = overlay(context, nested(low, round(get(full, high) * share, 4)))
    return context


def agent_context(settings: Settings, name: str) -> ContextSettings:
    """The context options of an agent: its own, field by field, over the application's."""
    own = settings.agents[name].context
    merged = overlay(msgspec.to_builtins(settings.context), own)
    return msgspec.convert(settle(merged, own), ContextSettings)


def contradictions(settings: Settings) -> list[Fault]:
    """Values that are each allowed but not together."""
    faults = list(_context(settings.context, ("context",)))
    for name, agent in settings.agents.items():
        found = _context(agent_context(settings, name), ("agents", name, "context"))
        faults += [f for f in found if get(agent.context, f.path[3:]) is not None]
    if settings.agent and settings.agent not in settings.agents:
        near = nearest(settings.agent, settings.agents)
        faults.append(Fault(("agent",), f"there is no agent {shown(settings.agent)} in [agents]", nearest=near))
    for name, model in settings.models.items():
        if model.fallback == name:
            faults.append(Fault(("models", name, "fallback"), "is the model itself", "another model"))
    for name, server in settings.mcp.items():
        if bool(server.command) == bool(server.url):
            what = "has both a command and a url" if server.url else "has neither a command nor a url"
            faults.append(Fault(("mcp", name, "url" if server.url else "command"), what, "exactly one of them"))
    return faults


def overlay(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both trees in one; what is above wins, table by table."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def without(tree: dict[str, Any], path: KeyPath) -> dict[str, Any]:
    """The tree without one place; an element of an array goes whole. Unchanged when the place is not there."""
    if not path or path[0] not in tree:
        return tree
    key = str(path[0])
    value, rest = tree[key], path[1:]
    if rest and isinstance(value, dict):
        return {**tree, key: without(value, rest)}
    if rest and isinstance(value, list) and isinstance(rest[0], int):
        return {**tree, key: [v for i, v in enumerate(value) if i != rest[0]]}
    return {k: v for k, v in tree.items() if k != key}


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
"""Each mark, the one it must stay below, and the share of that it takes where nobody set it."""


def _context(c: ContextSettings, at: KeyPath) -> Iterator[Fault]:
    full = overlay(_CONTEXT, msgspec.to_builtins(c))
    for low, high, _ in _MARKS:
        if get(full, low) >= get(full, high):
            what = f"{get(full, low)} is not below {key_text(high)} ({get(full, high)})"
            yield Fault((*at, *low), what, against=(*at, *high))
    for name, size in (("output_reserved", c.output_reserved), ("summary_max_tokens", c.summary_max_tokens)):
        if size >= c.max_tokens > 0 and size != getattr(DEFAULTS.context, name):
            yield Fault(
                (*at, name), f"{size} does not fit into max_tokens ({c.max_tokens})", against=(*at, "max_tokens")
            )


def get(tree: Any, path: KeyPath) -> Any:
    """What stands at a place of a tree of tables; None when nothing does."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def nested(path: KeyPath, value: Any) -> dict[str, Any]:
    """A tree with one value in it."""
    for part in reversed(path):
        value = {part: value}
    return value


def _table(tree: Any, table: type[Table], at: KeyPath, faults: list[Fault], known: KnownNames) -> dict[str, Any]:
    if not isinstance(tree, dict):
        faults.append(Fault(at, f"is {shown(tree)}", "must be a table"))
        raise _Wrong
    fields = members(table)
    clean: dict[str, Any] = {}
    for name, value in tree.items():
        if name not in fields:
            faults.append(Fault((*at, name), "is unknown", "", nearest(name, fields)))
            continue
        try:
            clean[name] = _value(value, fields[name].type, (*at, name), faults, known)
        except _Wrong:
            continue
    if missing := [n for n, field in fields.items() if field.required and n not in tree]:
        faults.extend(Fault((*at, name), "is missing", allowed(fields[name].type)) for name in missing)
    if any(field.required and n not in clean for n, field in fields.items()):
        raise _Wrong
    return clean


def _value(value: Any, tp: Any, at: KeyPath, faults: list[Fault], known: KnownNames) -> Any:
    kind = shape(tp)
    match kind.kind:
        case "table":
            return _table(value, kind.item, at, faults, known)
        case "named":
            return _named(value, kind, at, faults, known)
        case "array":
            return _array(value, kind, at, faults, known)
        case "leaf":
            return _leaf(value, tp, at, faults, known)


def _named(value: Any, kind: Shape, at: KeyPath, faults: list[Fault], known: KnownNames) -> dict[str, Any]:
    if not isinstance(value, dict):
        faults.append(Fault(at, f"is {shown(value)}", "must be a table"))
        raise _Wrong
    clean: dict[str, Any] = {}
    for name, inner in value.items():
        if kind.words and name not in kind.words:
            faults.append(
                Fault((*at, name), "is unknown", f"one of {', '.join(kind.words)}", nearest(name, kind.words))
            )
            continue
        if (right := _whole(inner, kind.item, (*at, name), faults, known)) is not None:
            clean[name] = right
    return clean


def _array(value: Any, kind: Shape, at: KeyPath, faults: list[Fault], known: KnownNames) -> list[Any]:
    if not isinstance(value, list):
        faults.append(Fault(at, f"is {shown(value)}", "must be a list of tables"))
        raise _Wrong
    items = [_whole(inner, kind.item, (*at, i), faults, known) for i, inner in enumerate(value)]
    return [item for item in items if item is not None]


def _whole(value: Any, tp: Any, at: KeyPath, faults: list[Fault], known: KnownNames) -> Any:
    """The element if all of it is right, else None: half a hook would do something nobody asked for."""
    before = len(faults)
    try:
        right = _value(value, tp, at, faults, known)
    except _Wrong:
        return None
    if shape(tp).item is HookSettings:
        _check_hook(right, at, faults)
    return right if len(faults) == before else None


def _check_hook(hook: dict[str, Any], at: KeyPath, faults: list[Fault]) -> None:
    need = {"run": "command", "notify": "text", "inject": "text"}.get(hook["action"])
    if need and not hook.get(need, "").strip():
        faults.append(Fault((*at, need), f"is missing for the action {hook['action']}", "must be text"))


def _leaf(value: Any, tp: Any, at: KeyPath, faults: list[Fault], known: KnownNames) -> Any:
    try:
        right = _plain(msgspec.to_builtins(msgspec.convert(value, tp)))
    except (msgspec.ValidationError, OverflowError, RecursionError, TypeError):
        faults.append(Fault(at, f"is {shown(value)}", f"must be {allowed(tp)}", _near_word(value, tp)))
        raise _Wrong from None
    if names := facts(tp).names:
        _check_names(right if isinstance(right, list) else [right], names, at, faults, known)
    return right


def _plain(value: Any) -> Any:
    """Lists where msgspec leaves tuples, as TOML gives them."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _near_word(value: Any, tp: Any) -> str:
    words = [w for w in _words(tp) if isinstance(w, str)]
    return nearest(value, words) if isinstance(value, str) and words else ""


def _words(tp: Any) -> list[Any]:
    args = get_args(tp)
    return [w for a in args for w in (_words(a) if get_args(a) else [a])]


def _check_names(words: Collection[str], names: str, at: KeyPath, faults: list[Fault], known: KnownNames) -> None:
    own = OWN_NAMES.get(names, ())
    foreign = [w for w in words if w and w not in own]
    if not foreign:
        return
    every = (*own, *known(names))
    wrong = [w for w in foreign if w not in every]
    if not every and names == "tools":  # tools are known to the agent only
        return
    if wrong:
        near = nearest(wrong[0], every)
        faults.append(
            Fault(at, f"{shown(wrong[0])} is none of the {names}", f"one of {', '.join(every) or 'none'}", near)
        )
        raise _Wrong
