"""One source of settings each: a file, the environment, flags; its right values, where they stand, what is wrong."""

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
"""Variables of ours that are no settings."""


class Origin(msgspec.Struct, frozen=True):
    """Who set a value. `place` is a file or a variable, `line` counts from 1, 0 where there is none."""

    layer: LayerName
    place: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """As shown beside the value: `default`, `config.toml:12`, `CTXCHAT_MODEL`."""
        return f"{self.place}:{self.line}" if self.line else self.place or self.layer


class Layer(msgspec.Struct, frozen=True):
    """A right tree, what was wrong with the rest, and where each key stands. `text` is a file's own."""

    tree: Tree
    problems: tuple[Problem, ...]
    where: Callable[[KeyPath], Origin]
    text: str = ""


def file_layer(name: LayerName, path: Path, known: KnownNames, within: Path | None = None) -> Layer:
    """A file's values; none where there is no file, or where it is not valid TOML. One of a project lies `within` its folder."""
    found = read_toml(path, within)
    if found.tree is None:
        problems = (found.problem,) if found.problem else ()
        if found.text:
            problems = _every_mistake(found.text, path, known)
        return Layer({}, problems, lambda _: Origin(name, str(path)), found.text)
    tree, faults = check_settings(found.tree, known)
    if name == "project":
        for key in own_only(tree):
            tree = without(tree, key)
            faults.append(ConfigFault(key, "counts in your own settings only"))
    places = layout(found.text)

    def where(key: KeyPath) -> Origin:
        return Origin(name, str(path), places.line_of(key))

    return Layer(tree, _problems(faults, where), where, found.text)


def _every_mistake(text: str, path: Path, known: KnownNames) -> tuple[Problem, ...]:
    """What is wrong with a text that is not valid TOML: its syntax, and what its right lines hold. What is missing may stand in
    the broken ones."""
    # Not before a file is broken: a start has no time for it.
    from ctxchat.config.toml_recovery import recover

    recovered = recover(text, str(path))
    faults = [fault for fault in check_settings(recovered.tree, known)[1] if not fault.what.startswith("is missing")]
    places = layout(recovered.text)
    rest = _problems(faults, lambda key: Origin("user", str(path), places.line_of(key)))
    return (*recovered.problems, *rest)


def with_customizations(name: LayerName, layer: Layer, found: Customizations, known: KnownNames) -> Layer:
    """The layer over what lies in files of its own beside it: of two of one name the settings' counts. What is wrong with those
    files is no problem of the settings, so a part that is not right is left out."""
    if not found.tree:
        return layer
    tree, _ = check_settings(found.tree, known)
    hooks = len(tree.get("hooks", ()))

    def where(key: KeyPath) -> Origin:
        if key[:1] == ("hooks",) and len(key) > 1 and isinstance(key[1], int) and key[1] >= hooks:
            return layer.where(("hooks", key[1] - hooks, *key[2:]))
        file = "" if get(layer.tree, key) is not None and key[:1] != ("hooks",) else found.file_of(key)
        return Origin(name, file) if file else layer.where(key)

    return msgspec.structs.replace(layer, tree=merge(tree, layer.tree), where=where)


def environment_layer(environ: Mapping[str, str], known: KnownNames) -> Layer:
    """`CTXCHAT_CONTEXT__KEEP_RECENT=6`: two underscores between the parts of a key, values as in TOML or plain words."""
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
    """Values by dotted key, as the command line gave them."""
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
    """The layer without the values that contradict others (its own, or those below), which are named."""
    tree, found = layer.tree, []
    for _ in range(20):
        faults = contradictions(build(merge(below, tree)))
        if not faults:
            break
        for fault in faults:
            own = [p for p in (fault.path, fault.against) if p and get(tree, p) is not None]
            blamed = own[0] if own else fault.path
            found.append(msgspec.structs.replace(fault, path=blamed))
            tree = without(tree, blamed) if own else without(tree, fault.path[:2])
    else:
        tree = {}
    problems = sorted((*layer.problems, *_problems(found, layer.where)), key=lambda p: p.line)
    return msgspec.structs.replace(layer, tree=tree, problems=tuple(problems))


def _problems(faults: list[ConfigFault], where: Callable[[KeyPath], Origin]) -> tuple[Problem, ...]:
    made = [(where(f.path), f) for f in faults]
    made.sort(key=lambda pair: pair[0].line)
    return tuple(Problem(f.what, key_text(f.path), f.allowed, f.nearest, at.place, at.line) for at, f in made)


def _from_text(text: str, option: Option) -> Any:
    if bare(option.type) is str:
        return text
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError, KeyError):
        listed = option.allowed.startswith("a list")
        return [part.strip() for part in text.split(",") if part.strip()] if listed else text
