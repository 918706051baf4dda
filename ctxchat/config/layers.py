"""Reads each source of settings (a file, the environment, flags) into a layer: valid values, their origins, and problems."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxchat.config.check import KnownNames, check_settings
from ctxchat.config.consistency import build, contradictions
from ctxchat.config.customizations.collect import Customizations
from ctxchat.config.option_table import Option, bare, find_option, options
from ctxchat.config.problems import ConfigFault, KeyPath, Problem, key_text, nearest
from ctxchat.config.toml_file import read_toml
from ctxchat.config.toml_positions import layout, parse_key
from ctxchat.config.trees import Tree, get, merge, nested, overlay, own_only, without

LayerName = Literal["default", "user", "last good", "project", "environment", "command line"]

PREFIX = "CTXCHAT_"
NOT_OPTIONS = frozenset({"CTXCHAT_CONFIG_DIR", "CTXCHAT_DATA_DIR"})
"""Variables of ctxchat that are no settings."""


class Origin(msgspec.Struct, frozen=True):
    """The source of a value. `place` is a file or a variable; `line` counts from 1, 0 where there is none."""

    layer: LayerName
    place: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """The source as shown beside the value: `default`, `config.toml:12`, `CTXCHAT_MODEL`."""
        return f"{self.place}:{self.line}" if self.line else self.place or self.layer


class Layer(msgspec.Struct, frozen=True):
    """One source of settings: its valid values as a tree, its problems, and a function that gives the origin of a key. `text` is
    the content of a file."""

    tree: Tree
    problems: tuple[Problem, ...]
    where: Callable[[KeyPath], Origin]
    text: str = ""


def file_layer(name: LayerName, path: Path, known: KnownNames, within: Path | None = None) -> Layer:
    """The layer of a file; without values where the file is missing or no valid TOML. A project's file must be `within` its
    folder."""
    file = read_toml(path, within)
    if file.tree is None:
        problems = (file.problem,) if file.problem else ()
        if file.text:
            problems = _every_mistake(file.text, path, known)
        return Layer({}, problems, lambda _: Origin(name, str(path)), file.text)
    tree, faults = check_settings(file.tree, known)
    if name == "project":
        for key in own_only(tree):
            tree = without(tree, key)
            faults.append(ConfigFault(key, "counts in your own settings only"))
    positions = layout(file.text)

    def where(key: KeyPath) -> Origin:
        return Origin(name, str(path), positions.line_of(key))

    return Layer(tree, _problems(faults, where), where, file.text)


def _every_mistake(text: str, path: Path, known: KnownNames) -> tuple[Problem, ...]:
    """All problems of a text that is not valid TOML: its syntax, and mistakes in its valid lines. Missing values are not
    reported: they may be in the broken lines."""
    # Imported only for a broken file, to keep the start fast.
    from ctxchat.config.toml_recovery import recover

    recovered = recover(text, str(path))
    faults = [fault for fault in check_settings(recovered.tree, known)[1] if not fault.what.startswith("is missing")]
    positions = layout(recovered.text)
    value_problems = _problems(faults, lambda key: Origin("user", str(path), positions.line_of(key)))
    return (*recovered.problems, *value_problems)


def with_customizations(name: LayerName, layer: Layer, customizations: Customizations, known: KnownNames) -> Layer:
    """The layer with agents, servers and hooks from files of their own added; of two with the same name that of the settings
    counts. Invalid parts of these files are left out here: `Customizations.problems` reports them."""
    if not customizations.tree:
        return layer
    tree, _ = check_settings(customizations.tree, known)
    hooks = len(tree.get("hooks", ()))

    def where(key: KeyPath) -> Origin:
        if key[:1] == ("hooks",) and len(key) > 1 and isinstance(key[1], int) and key[1] >= hooks:
            return layer.where(("hooks", key[1] - hooks, *key[2:]))
        file = "" if get(layer.tree, key) is not None and key[:1] != ("hooks",) else customizations.file_of(key)
        return Origin(name, file) if file else layer.where(key)

    return msgspec.structs.replace(layer, tree=merge(tree, layer.tree), where=where)


def environment_layer(environ: Mapping[str, str], known: KnownNames) -> Layer:
    """The layer of environment variables such as `CTXCHAT_CONTEXT__KEEP_RECENT=6`: two underscores separate the parts of a key;
    values are TOML or plain text."""
    raw: Tree = {}
    problems: list[Problem] = []
    variables: dict[KeyPath, str] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in NOT_OPTIONS:
            continue
        path = tuple(name[len(PREFIX) :].lower().split("__"))
        option = find_option(path)
        if option is None:
            names = [PREFIX + o.key.upper().replace(".", "__") for o in options() if "*" not in o.path]
            problems.append(Problem("is no setting", nearest=nearest(name, names), file=name))
            continue
        variables[path] = name
        raw = overlay(raw, nested(path, _from_text(environ[name], option)))

    def where(key: KeyPath) -> Origin:
        return Origin("environment", variables.get(key, "environment"))

    tree, faults = check_settings(raw, known)
    return Layer(tree, (*problems, *_problems(faults, where)), where)


def flags_layer(flags: Mapping[str, object], known: KnownNames) -> Layer:
    """The layer of the command line's flags, given as values by dotted key."""
    raw: Tree = {}
    problems: list[Problem] = []
    for key, value in flags.items():
        try:
            raw = overlay(raw, nested(parse_key(key), value))
        except ValueError as error:
            problems.append(Problem(str(error), file="command line"))
    tree, faults = check_settings(raw, known)

    def where(_: KeyPath) -> Origin:
        return Origin("command line", "command line")

    return Layer(tree, (*problems, *_problems(faults, where)), where)


def agreeing(below: Tree, layer: Layer) -> Layer:
    """The layer without values that contradict others in it or in the tree `below`; each is reported as a problem."""
    tree, all_faults = layer.tree, []
    for _ in range(20):
        faults = contradictions(build(merge(below, tree)))
        if not faults:
            break
        for fault in faults:
            in_layer = [p for p in (fault.path, fault.against) if p and get(tree, p) is not None]
            blamed = in_layer[0] if in_layer else fault.path
            all_faults.append(msgspec.structs.replace(fault, path=blamed))
            tree = without(tree, blamed) if in_layer else without(tree, fault.path[:2])
    else:
        tree = {}
    problems = sorted((*layer.problems, *_problems(all_faults, layer.where)), key=lambda p: p.line)
    return msgspec.structs.replace(layer, tree=tree, problems=tuple(problems))


def _problems(faults: list[ConfigFault], where: Callable[[KeyPath], Origin]) -> tuple[Problem, ...]:
    located = sorted(((where(f.path), f) for f in faults), key=lambda pair: pair[0].line)
    return tuple(Problem(f.what, key_text(f.path), f.allowed, f.nearest, at.place, at.line) for at, f in located)


def _from_text(text: str, option: Option) -> Any:
    """The value of a variable: TOML if it parses, else text; a list may be given as `a, b`."""
    if bare(option.type) is str:
        return text
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError, KeyError):
        listed = option.allowed.startswith("a list")
        return [part.strip() for part in text.split(",") if part.strip()] if listed else text
