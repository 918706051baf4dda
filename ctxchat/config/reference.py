"""Generates the shipped `config.toml` (every option, commented out at its default), the documentation's tables of keys and
options, and the JSON Schema for editors. `python -m ctxchat.config.reference` writes the first two."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config.atomic import write_text
from ctxchat.config.keys import ACTIONS
from ctxchat.config.option_table import Option, facts, members, options
from ctxchat.config.schema import Settings, Table, own_names
from ctxchat.config.schema.option import NOW
from ctxchat.config.toml_positions import literal

BEGIN, END = "<!-- table: {} -->", "<!-- end of table -->"


def keys_table() -> str:
    """The Markdown table of all actions with their standard keys. Those of the other presets are on the keys screen."""
    return _table(("", "in `[keys]`", "usual"), [(a.help, f"`{a.id}`", _keys(a.keys)) for a in ACTIONS])


def options_table() -> str:
    """The Markdown table of all options: allowed values and help."""
    listed = [o for o in options() if not o.key.startswith("keys.")]
    rows = [(f"`{o.key}`", limits(o), f"{o.facts.help} {o.facts.effect}".strip()) for o in listed]
    return _table(("option", "may be", "what it does"), rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "keys.md": ("keys", keys_table),
    "options.md": ("options", options_table),
}
"""The page of `docs/`, and its table."""


def page(text: str, name: str, table: str) -> str:
    """The text of a page with its table replaced. Raises ValueError where the marks around the table are missing."""
    before, begin, rest = text.partition(BEGIN.format(name))
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN.format(name)} … {END}")
    return f"{before}{begin}\n{table}{end}{after}"


def _keys(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys) or "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def write_pages(docs: Path) -> None:
    """Write the tables into the pages of this folder. Raises OSError and ValueError."""
    for file, (name, table) in TABLES.items():
        write_text(docs / file, page((docs / file).read_text(encoding="utf-8"), name, table()), mode=0o644)


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


def limits(option: Option) -> str:
    """The allowed values and default of an option: `0.3 to 0.98 (share of the limit); default 0.8`."""
    unit = f" ({option.facts.unit})" if option.facts.unit else ""
    named = "*" in option.path or option.path[:2] == ("context", "summary_model")
    # the help of its table says so
    said_for_table = len(option.path) > 1 and facts(members(Settings)[option.path[0]].type).trust
    trust = "; trusted folders only" if option.facts.trust and not said_for_table else ""
    trust = "; your own settings only" if option.facts.own else trust
    counts = "" if option.facts.counts == NOW or named else f"; counts {option.facts.counts}"
    rewrites = "; rewrites what was sent" if option.facts.rewrites else ""
    return f"{option.allowed}{unit}; {_default(option)}{trust}{counts}{rewrites}"


def _default(option: Option) -> str:
    """The default of an option, in words."""
    if option.required:
        return "required"
    return (
        "left out by default" if option.default is None else f"default {literal(msgspec.to_builtins(option.default))}"
    )


HEAD = """\
ctxchat settings: every option there is, at its default, with what it does and what it may be.

This file is the reference and is written by ctxchat. Your own settings are in config.toml of your settings folder
(`ctxchat config path`); put there only what you want different. Later ones win: defaults, your file, the project's file
(.ctxchat/config.toml, where what is marked "trusted folders" counts in those only), environment (CTXCHAT_CONTEXT__KEEP_RECENT=6),
flags. `ctxchat config check` names every mistake with its line; `ctxchat config show` tells where each value comes from."""

EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "models.*": (
        '[models."ollama_chat/qwen3:8b"]',
        {"api_base": "http://localhost:11434", "window": 32768, "keep_reasoning": True, "vision": True},
    ),
    "context.sections.*": ("[context.sections.tools]", {"budget": 12000}),
    "keys.*": ("[keys]", {}),
    "agents.*": (
        "[agents.reviewer]",
        {
            "description": "Reads a change and says what is wrong with it.",
            "model": "openai/gpt-6-luna",
            "effort": "low",
            "prompt": "Review the change. Name file and line. Change nothing.",
            "tools": ["read_file", "grep"],
            "disallowed_tools": [],
            "skills": ["release"],
            "permissions": "read-only",
            "max_rounds": 30,
            "context": {"keep_recent": 6},
        },
    ),
    "hooks.*": (
        "[[hooks]]",
        {
            "event": "turn_finished",
            "action": "compact_context",
            "name": "tidy up early",
            "when": {"context_pressure": 0.6, "not": {"turn_count": 3}},
            "cooldown": 3,
        },
    ),
    "mcp.*": (
        "[mcp.files]",
        {
            "command": "my-mcp-server",
            "args": ["--read-only"],
            "env": {"LEVEL": "1"},
            "headers_env": {"Authorization": "MY_TOKEN"},
        },
    ),
}


def render() -> str:
    """The whole reference as text. Lines that begin with `# ` are prose; the others, without their `#`, are TOML."""
    lines = [f"# {line}".rstrip() for line in HEAD.splitlines()]
    for table, group in _groups():
        header, values = EXAMPLES.get(table, (f"[{table}]" if table else "", {}))
        lines += ["", ""]
        if header:
            lines += [
                *_prose(_table_help(table)),
                header if table == "keys.*" or not table.endswith("*") else f"#{header}",
            ]
        if table == "keys.*":
            lines += [line for a in ACTIONS for line in ("", f"# {a.help}.", f"#{a.id} = {literal(a.keys)}")]
            continue
        for option in group:
            lines += ["", *_prose(f"{option.facts.help} {option.facts.effect}".strip()), *_prose(limits(option))]
            lines.append(f"#{option.path[-1]} = {literal(_value(option, values))}")
    return "\n".join(lines).replace("\n\n\n\n", "\n\n\n") + "\n"


def _groups() -> Iterator[tuple[str, list[Option]]]:
    """The options by table; the conditions of hooks are a single option."""
    tables: dict[str, list[Option]] = {}
    for option in options():
        table = ".".join(option.path[:-1])
        if table == "hooks.*.when":
            continue
        tables.setdefault("keys.*" if table == "keys" else table, []).append(option)
    tables["hooks.*"].insert(3, next(o for o in _hook_when()))
    yield from tables.items()


def _hook_when() -> Iterator[Option]:
    """The options for a hook's conditions, as a single row."""
    from ctxchat.config.schema import HookSettings

    field = members(HookSettings)["when"]
    when = facts(field.type)
    words = ", ".join(o.path[-1] for o in options() if o.key.startswith("hooks.*.when."))
    yield Option(
        ("hooks", "*", "when"),
        dict,
        {},
        msgspec.structs.replace(when, help=f"{when.help} Conditions: {words}.", trust=True),
    )


def _table_help(table: str) -> str:
    """The help of a table of options: that of its innermost part."""
    at: type[Table] = Settings
    help = ""
    trust, counts = False, NOW
    for part in (p for p in table.split(".") if p != "*"):
        field = members(at)[part]
        help, trust = facts(field.type).help, trust or facts(field.type).trust
        counts = facts(field.type).counts
        inner = field.type.__args__[0] if hasattr(field.type, "__args__") else field.type
        at = inner if isinstance(inner, type) and issubclass(inner, Table) else at
    help += " In a project's file: trusted folders only." if trust else ""
    return help + (f" Counts {counts}." if counts != NOW else "")


def _value(option: Option, example: dict[str, Any]) -> Any:
    if option.path[-1] in example:
        return example[option.path[-1]]
    return [] if option.default is None else msgspec.to_builtins(option.default)


def _prose(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text[:1].upper() + text[1:], 110)]


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    write_text(Path(sys.argv[1]) if len(sys.argv) > 1 else root / "config.toml", render(), mode=0o644)
    if len(sys.argv) == 1:
        write_pages(root / "docs")
