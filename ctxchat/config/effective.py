"""The settings in force: defaults, the person's file, the trusted project's file, environment, flags, in that order.

Never raises for what a file holds: whatever is wrong is a `Problem`, and the last good settings stay in force.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.config import keys, paths
from ctxchat.config.atomic import write_text
from ctxchat.config.check import KnownNames
from ctxchat.config.consistency import build
from ctxchat.config.customizations.collect import Customizations, collect
from ctxchat.config.customizations.places import CustomizationFolder, project_places, user_places
from ctxchat.config.layers import (
    Layer,
    Origin,
    agreeing,
    environment_layer,
    file_layer,
    flags_layer,
    with_customizations,
)
from ctxchat.config.option_table import find_option
from ctxchat.config.problems import KeyPath, Problem, key_text
from ctxchat.config.schema import DEFAULTS, Settings
from ctxchat.config.toml_positions import parse_key
from ctxchat.config.trees import Tree, get, leaves, merge, split_trust
from ctxchat.config.trust import Content, Trusted, content, trust_problem, trusted
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.quantities import count

DEFAULT = Origin("default")

RULES = ("permissions", "rules")

MAX_NAMED_PROBLEMS = 4
"""Problems that are told at the start, one by one; there may be hundreds in a file that is something else."""


class Loaded(msgspec.Struct, frozen=True):
    """The settings in force and where they come from.

    `origins` holds every dotted key that somebody set. `problems` are all there are, at once. `keys` are the keys in
    force. `project` is what of the project's file needs trust, `trust` what was trusted of the folder; where these are not the
    same, `untrusted` are the keys that do not count. `files` are the ones to watch for edits, whether they exist or not. `broken`
    are the problems that a file cannot be used as it is for: the person's own then does not count, and a project's only in part.
    `rules` says of each of `permissions.rules` who set it. `prompts` are the skills and command files that count, the project's
    first; `left_out` says what of skills, commands, hooks, agents and servers in files of their own cannot be used.
    `others_hooks` are the person's own hooks that were set up for another agent and run here, too: file and command.
    """

    settings: Settings
    origins: dict[str, Origin]
    problems: tuple[Problem, ...]
    keys: keys.KeyMap
    untrusted: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    project: Content = Content()
    trust: Trusted | None = None
    broken: tuple[Problem, ...] = ()
    rules: tuple[Origin, ...] = ()
    prompts: tuple[PromptFile, ...] = ()
    left_out: tuple[Problem, ...] = ()
    others_hooks: tuple[tuple[str, str], ...] = ()

    def origin(self, key: str) -> Origin:
        """Who set this dotted key."""
        return self.origins.get(key, DEFAULT)

    @property
    def trusted(self) -> bool:
        """What the project's settings hold now is what was trusted."""
        return self.trust is not None and self.trust.digest == self.project.digest

    @property
    def notices(self) -> tuple[str, ...]:
        """Everything a person should be told at the start, a sentence each, with its remedy."""
        told = [p.brief for p in self.problems[:MAX_NAMED_PROBLEMS]]
        if more := len(self.problems) - len(told):
            told.append(f"And {more} more: `ctxchat config check` lists them all.")
        if any(o.layer == "last good" for o in self.origins.values()):
            told.append("Using the last good settings until the file is corrected.")
        elif self.problems:
            told.append("What is wrong counts as not set until it is corrected.")
        if self.untrusted:
            told.append(f"{self.files[1].parent.parent}: {self._why_not()}: {', '.join(self.untrusted)}")
        elif self.left_out:
            parts = count(len(self.left_out), "part")
            told.append(f"{parts} of skills, commands, hooks, agents and servers left out: `ctxchat trust` says why.")
        return tuple(told)

    def _why_not(self) -> str:
        if self.trust is None:
            return "not in force until you trust this folder (/trust)"
        if self.trust.digest:
            return "changed since you trusted it, not in force until you have looked at it again (/trust)"
        return "the folder was trusted before it counted what is in here, not in force until you have looked at it (/trust)"


def load_settings(
    workspace: Path | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    known: KnownNames | None = None,
) -> Loaded:
    """Read everything anew.

    `workspace` is the folder whose project file counts, `config` a file to read instead of the person's own. `flags` are
    dotted keys with values. `known` tells what plug-ins add to the open lists (`strategies`, `providers`, `transforms`,
    `tools`); without it the installed entry points are asked.
    """
    known = known or entry_points
    folder = paths.config_dir(environ)
    backup = None if config else paths.data_dir(environ) / "last-good-config.toml"
    user = config or paths.user_file(folder)
    own = _user_layer(user, backup, known, missing_is_wrong=config is not None)
    others = own.tree.get("customizations", DEFAULTS.customizations) == "all"
    theirs = collect(_chosen(user_places(folder, environ), others))
    found = collect(_chosen(project_places(workspace), others)) if workspace else Customizations()
    project, untrusted, wants, given = _project_layer(workspace, folder, known, found)
    above = (project, environment_layer(environ, known), flags_layer(flags or {}, known))
    layers = [with_customizations("user", own, theirs, known)]
    tree = layers[0].tree
    for layer in above:
        layers.append(agreeing(tree, layer))
        kept = layers[-1].tree
        tree = merge(_without_replaced(tree, kept) if layer is project else tree, kept)
    settings = build(tree)
    origins = {key_text(path): layer.where(path) for layer in layers for path, _ in leaves(layer.tree)}
    keymap = keys.resolve(settings.keys, settings.interface.keys)
    problems = [p for layer in layers for p in layer.problems]
    problems += [_placed(p, origins) for p in keymap.problems]
    if no_theme := unknown_theme(settings.theme, folder):
        problems.append(_placed(no_theme, origins))
    if trouble := trust_problem(folder):
        problems.append(trouble)
    files = list(dict.fromkeys(p.file for p in problems))
    problems.sort(key=lambda p: (files.index(p.file), p.line))  # as one reads them, whoever found what
    watched = (user,) if workspace is None else (user, paths.project_file(workspace), *wants.files)
    watched = (*watched, *theirs.watched, *found.watched)
    counting = (*(found.prompts if given and given.digest == wants.digest else ()), *theirs.prompts)
    broken = (*layers[0].problems, *layers[1].problems)
    rules = tuple(
        layer.where((*RULES, place)) for layer in layers for place, _ in enumerate(get(layer.tree, RULES) or ())
    )
    return Loaded(
        settings,
        origins,
        tuple(problems),
        keymap,
        untrusted,
        watched,
        wants,
        given,
        broken,
        rules,
        counting,
        (*found.problems, *theirs.problems),
        _others_hooks(theirs, folder),
    )


def _others_hooks(theirs: Customizations, folder: Path) -> tuple[tuple[str, str], ...]:
    """File and command of each hook that does not lie in our own folder."""
    hooks = [(theirs.file_of(("hooks", n)), hook["command"]) for n, hook in enumerate(theirs.tree.get("hooks", ()))]
    return tuple((file, command) for file, command in hooks if Path(file).parent != folder)


def _chosen(places: Iterable[CustomizationFolder], others: bool) -> tuple[CustomizationFolder, ...]:
    return tuple(place for place in places if others or place.made_for == "ctxchat")


def _without_replaced(tree: Tree, project: Tree) -> Tree:
    """The person's settings without the servers that a project has one of its own by the name of: none gets the headers and
    variables that were meant for another."""
    anew = {name for name, server in project.get("mcp", {}).items() if server.get("command") or server.get("url")}
    servers = {name: server for name, server in tree.get("mcp", {}).items() if name not in anew}
    return {**tree, "mcp": servers} if anew else tree


def changes(before: Settings, after: Settings) -> tuple[tuple[str, object, object], ...]:
    """What differs, as dotted key, old and new value (None where it is left out)."""
    old, new = (dict(leaves(msgspec.to_builtins(s))) for s in (before, after))  # defaults are left out of these
    pairs = ((k, old.get(k, _default(k)), new.get(k, _default(k))) for k in {**old, **new})
    return tuple((key_text(k), was, now) for k, was, now in pairs if was != now)


def entry_points(names: str) -> Collection[str]:
    """What installed plug-ins add to an open list."""
    from importlib.metadata import entry_points as installed

    return {entry.name for entry in installed(group=f"ctxchat.{names}")}


def _default(path: KeyPath) -> object:
    option = find_option(path)
    return msgspec.to_builtins(option.default) if option else None


def _user_layer(path: Path, backup: Path | None, known: KnownNames, missing_is_wrong: bool) -> Layer:
    """The person's file; where something is wrong with it, its last good copy if there is one, else what is right of it."""
    layer = agreeing({}, file_layer("user", path, known))
    if missing_is_wrong and not layer.problems and not path.exists():
        return msgspec.structs.replace(layer, problems=(Problem("is not there", file=str(path)),))
    if backup is None:
        return layer
    if layer.problems:
        good = agreeing({}, file_layer("last good", backup, known))
        return msgspec.structs.replace(good, problems=layer.problems) if good.text and not good.problems else layer
    with suppress(OSError, UnicodeError):
        _remember(layer, backup)
    return layer


def _remember(layer: Layer, backup: Path) -> None:
    if not layer.text:
        backup.unlink(missing_ok=True)
    elif not backup.exists() or backup.read_text(encoding="utf-8") != layer.text:
        write_text(backup, layer.text)


def _project_layer(
    workspace: Path | None, folder: Path, known: KnownNames, found: Customizations
) -> tuple[Layer, tuple[str, ...], Content, Trusted | None]:
    """The project's file as far as it counts, the keys that do not, what needs trust, and what was trusted."""
    if workspace is None:
        return Layer({}, (), lambda _: DEFAULT), (), Content(), None
    layer = file_layer("project", paths.project_file(workspace), known, within=workspace)
    layer = with_customizations("project", layer, found, known)
    harmless, held = split_trust(layer.tree)
    wants = content(workspace, {key: get(layer.tree, parse_key(key)) for key in held}, found.prompts)
    given = trusted(folder, workspace)
    if given and given.digest == wants.digest:
        return layer, (), wants, given
    kinds = Counter(prompt.kind for prompt in found.prompts)
    waiting = (*held, *(count(number, kind) for kind, number in kinds.items()))
    return msgspec.structs.replace(layer, tree=harmless), waiting, wants, given


def unknown_theme(name: str, folder: Path) -> Problem | None:
    """What is wrong with a theme's name that nothing is called by. Reads theme files only where ours have none of that name."""
    if name.isprintable() and not set(name) & set("/\\.") and (paths.shipped() / "themes" / f"{name}.toml").is_file():
        return None
    from ctxchat.config.themes import load_themes

    return load_themes(folder).unknown(name)


def _placed(problem: Problem, origins: Mapping[str, Origin]) -> Problem:
    at = origins.get(
        problem.key, origins.get("interface.keys", DEFAULT) if problem.key.startswith("keys.") else DEFAULT
    )
    return msgspec.structs.replace(problem, file=at.place, line=at.line)
