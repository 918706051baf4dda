"""Lists every option with its value, default and origin, for `config show`, the settings screen and advice."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxchat.config.effective import Loaded
from ctxchat.config.layers import Origin
from ctxchat.config.option_table import Option, find_option, options
from ctxchat.config.problems import KeyPath, key_text
from ctxchat.config.trees import get, leaves


class OptionRow(msgspec.Struct, frozen=True):
    """One option in force. `value` and `default` are plain values as TOML has them, None for no value."""

    key: str
    value: Any
    default: Any
    origin: Origin
    option: Option


def rows(loaded: Loaded) -> tuple[OptionRow, ...]:
    """Every option with a fixed key, in the order of the schema, then those set under names that the person chose."""
    tree = msgspec.to_builtins(loaded.settings)
    paths: list[KeyPath] = [o.path for o in options() if "*" not in o.path]
    paths += [path for path, _ in leaves(tree) if path not in paths]
    located = ((path, find_option(path)) for path in paths)
    return tuple(_row(loaded, tree, path, option) for path, option in located if option)


def _row(loaded: Loaded, tree: dict[str, Any], path: KeyPath, option: Option) -> OptionRow:
    """An option with its value, default and origin."""
    default = _as_list(msgspec.to_builtins(option.default))
    value = get(tree, path)
    if value is None and "*" not in option.path:
        value = default
    return OptionRow(key_text(path), _as_list(value), default, loaded.origin(key_text(path)), option)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
