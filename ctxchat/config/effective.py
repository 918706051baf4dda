"""Loads the settings in force: defaults, the person's file, the trusted project's file, environment and flags, the later over the
earlier.

No content of a file raises an error: every mistake becomes a `Problem`, and the last good settings stay in force.
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
"""Problems shown one by one at the start. A file that was never meant as settings may have hundreds."""


class Loaded(msgspec.Struct, frozen=True):
    """The settings in force and where they come from.

    `origins` has the source of every dotted key that is set. `problems` has all mistakes; `broken` those of the person's and the
    project's files, because of which the person's file is not used, and the project's only in part. `keys` are the keyboard keys
    in force. `project` is the part of the project's files that needs trust and `trust` what was trusted of the folder; where they
    differ, the keys in `untrusted` do not count. `files` are to be watched for edits, whether they exist or not. `rules` has the
    source of each of `permissions.rules`. `prompts` are the skills and command files in force, the project's first; `left_out`
    says which skills, commands, hooks, agents and servers in files of their own cannot be used, `without_effect` what else is in
    such files and counts for nothing here. `others_hooks` has file and
    command of each of the person's hooks that was set up for another agent and runs here as well.
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
    without_effect: tuple[str, ...] = ()

    def origin(self, key: str) -> Origin:
        """The source of the value of a dotted key."""
        return self.origins.get(key, DEFAULT)

    @property
    def trusted(self) -> bool:
        """Whether the project's settings are now what was trusted."""
        return self.trust is not None and self.trust.digest == self.project.digest

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentences to show a person at the start, with remedies."""
        sentences = [p.brief for p in self.problems[:MAX_NAMED_PROBLEMS]]
        if more := len(self.problems) - len(sentences):
            sentences.append(f"And {more} more: `ctxchat config check` lists them all.")
        if any(o.layer == "last good" for o in self.origins.values()):
            sentences.append("Using the last good settings until the file is corrected.")
        elif self.problems:
            sentences.append("What is wrong counts as not set until it is corrected.")
        if self.untrusted:
            sentences.append(f"{self.files[1].parent.parent}: {self._why_not()}: {', '.join(self.untrusted)}")
        elif self.left_out:
            parts = count(len(self.left_out), "part")
            sentences.append(
                f"{parts} of skills, commands, hooks, agents and servers left out: `ctxchat trust` says why."
            )
        return tuple(sentences)

    def _why_not(self) -> str:
        """Why the project's settings that need trust are not in force, for a person."""
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
    """Read all files, variables and flags.

    `workspace` is the folder whose project file counts, `config` a file to read instead of the person's own. `flags` has values
    by dotted key. `known` gives the names that plug-ins add to `strategies`, `providers`, `transforms` and `tools`; without it
    they come from the installed entry points.
    """
    known = known or entry_points
    folder = paths.config_dir(environ)
    backup = None if config else paths.data_dir(environ) / "last-good-config.toml"
    user = config or paths.user_file(folder)
    own = _user_layer(user, backup, known, missing_is_wrong=config is not None)
    others = own.tree.get("customizations", DEFAULTS.customizations) == "all"
    of_user = collect(_chosen(user_places(folder, environ), others))
    of_project = collect(_chosen(project_places(workspace), others)) if workspace else Customizations()
    project, untrusted, wanted, given = _project_layer(workspace, folder, known, of_project)
    above = (project, environment_layer(environ, known), flags_layer(flags or {}, known))
    layers = [with_customizations("user", own, of_user, known)]
    tree = layers[0].tree
    for layer in above:
        layers.append(agreeing(tree, layer))
        upper = layers[-1].tree
        tree = merge(_without_replaced_servers(tree, upper) if layer is project else tree, upper)
    settings = build(tree)
    origins = {key_text(path): layer.where(path) for layer in layers for path, _ in leaves(layer.tree)}
    keymap = keys.resolve(settings.keys, settings.interface.keys)
    problems = [p for layer in layers for p in layer.problems]
    problems += [_with_origin(p, origins) for p in keymap.problems]
    if theme_problem := unknown_theme(settings.theme, folder):
        problems.append(_with_origin(theme_problem, origins))
    if problem := trust_problem(folder):
        problems.append(problem)
    files = list(dict.fromkeys(p.file for p in problems))
    problems.sort(key=lambda p: (files.index(p.file), p.line))  # in the order in which a person reads the files
    watched = (user,) if workspace is None else (user, paths.project_file(workspace), *wanted.files)
    watched = (*watched, *of_user.watched, *of_project.watched)
    prompts = (*(of_project.prompts if given and given.digest == wanted.digest else ()), *of_user.prompts)
    broken = (*layers[0].problems, *layers[1].problems)
    rules = tuple(
        layer.where((*RULES, index)) for layer in layers for index, _ in enumerate(get(layer.tree, RULES) or ())
    )
    return Loaded(
        settings,
        origins,
        tuple(problems),
        keymap,
        untrusted,
        watched,
        wanted,
        given,
        broken,
        rules,
        prompts,
        (*of_project.problems, *of_user.problems),
        _others_hooks(of_user, folder),
        (*of_project.without_effect, *of_user.without_effect),
    )


def _others_hooks(of_user: Customizations, folder: Path) -> tuple[tuple[str, str], ...]:
    """File and command of each hook whose file is not in ctxchat's own folder."""
    hooks = [(of_user.file_of(("hooks", n)), hook["command"]) for n, hook in enumerate(of_user.tree.get("hooks", ()))]
    return tuple((file, command) for file, command in hooks if Path(file).parent != folder)


def _chosen(places: Iterable[CustomizationFolder], others: bool) -> tuple[CustomizationFolder, ...]:
    """The folders to read: those made for other agents only with `others`."""
    return tuple(place for place in places if others or place.made_for == "ctxchat")


def _without_replaced_servers(tree: Tree, project: Tree) -> Tree:
    """The person's settings without the servers that the project replaces by its own of the same name. Merged, the project's
    server would get the headers and variables meant for the person's."""
    replaced = {name for name, server in project.get("mcp", {}).items() if server.get("command") or server.get("url")}
    servers = {name: server for name, server in tree.get("mcp", {}).items() if name not in replaced}
    return {**tree, "mcp": servers} if replaced else tree


def changes(before: Settings, after: Settings) -> tuple[tuple[str, object, object], ...]:
    """The differences between two settings: dotted key, old and new value (None for no value)."""
    old, new = (dict(leaves(msgspec.to_builtins(s))) for s in (before, after))  # `to_builtins` leaves out defaults
    pairs = ((k, old.get(k, _default(k)), new.get(k, _default(k))) for k in {**old, **new})
    return tuple((key_text(k), was, now) for k, was, now in pairs if was != now)


def entry_points(names: str) -> Collection[str]:
    """The names that installed plug-ins add to a list: `strategies`, `providers`, `transforms` or `tools`."""
    from importlib.metadata import entry_points as installed

    return {entry.name for entry in installed(group=f"ctxchat.{names}")}


def _default(path: KeyPath) -> object:
    option = find_option(path)
    return msgspec.to_builtins(option.default) if option else None


def _user_layer(path: Path, backup: Path | None, known: KnownNames, missing_is_wrong: bool) -> Layer:
    """The layer of the person's file. Where it has mistakes: of its last good copy (`backup`) if there is one, else of its valid
    part. `missing_is_wrong` makes a missing file a problem."""
    layer = agreeing({}, file_layer("user", path, known))
    if missing_is_wrong and not layer.problems and not path.exists():
        return msgspec.structs.replace(layer, problems=(Problem("is not there", file=str(path)),))
    if backup is None:
        return layer
    if layer.problems:
        last_good = agreeing({}, file_layer("last good", backup, known))
        usable = last_good.text and not last_good.problems
        return msgspec.structs.replace(last_good, problems=layer.problems) if usable else layer
    with suppress(OSError, UnicodeError):
        _save_backup(layer, backup)
    return layer


def _save_backup(layer: Layer, backup: Path) -> None:
    """Keep the text of valid settings, which stay in force while the file is broken."""
    if not layer.text:
        backup.unlink(missing_ok=True)
    elif not backup.exists() or backup.read_text(encoding="utf-8") != layer.text:
        write_text(backup, layer.text)


def _project_layer(
    workspace: Path | None, folder: Path, known: KnownNames, customizations: Customizations
) -> tuple[Layer, tuple[str, ...], Content, Trusted | None]:
    """The layer of the project's file as far as it counts, the keys that do not count, the content that needs trust, and what was
    trusted."""
    if workspace is None:
        return Layer({}, (), lambda _: DEFAULT), (), Content(), None
    layer = file_layer("project", paths.project_file(workspace), known, within=workspace)
    layer = with_customizations("project", layer, customizations, known)
    harmless, held = split_trust(layer.tree)
    wanted = content(workspace, {key: get(layer.tree, parse_key(key)) for key in held}, customizations.prompts)
    given = trusted(folder, workspace)
    if given and given.digest == wanted.digest:
        return layer, (), wanted, given
    kinds = Counter(prompt.kind for prompt in customizations.prompts)
    untrusted = (*held, *(count(number, kind) for kind, number in kinds.items()))
    return msgspec.structs.replace(layer, tree=harmless), untrusted, wanted, given


def unknown_theme(name: str, folder: Path) -> Problem | None:
    """The problem with a theme's name that does not exist, else None. Theme files are only read where no shipped theme has that
    name."""
    if name.isprintable() and not set(name) & set("/\\.") and (paths.shipped() / "themes" / f"{name}.toml").is_file():
        return None
    from ctxchat.config.themes import load_themes

    return load_themes(folder).unknown(name)


def _with_origin(problem: Problem, origins: Mapping[str, Origin]) -> Problem:
    """The problem with the file and line that set its key."""
    at = origins.get(
        problem.key, origins.get("interface.keys", DEFAULT) if problem.key.startswith("keys.") else DEFAULT
    )
    return msgspec.structs.replace(problem, file=at.place, line=at.line)
