"""Knows the folders of the person's settings, the program's data, and the files shipped with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ctxchat.core.errors import CtxchatError


def expanded(given: str) -> Path:
    """A path with `~` replaced by the home folder; unchanged where there is no such user."""
    return Path(os.path.expanduser(given))  # noqa: PTH111  (pathlib raises for an unknown user)


def config_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the settings; `CTXCHAT_CONFIG_DIR` overrides the platform's. Not created here."""
    if given := environ.get("CTXCHAT_CONFIG_DIR"):
        return expanded(given)
    import platformdirs

    return platformdirs.user_config_path("ctxchat", appauthor=False)


def data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of sessions and logs; `CTXCHAT_DATA_DIR` overrides the platform's. Not created here."""
    if given := environ.get("CTXCHAT_DATA_DIR"):
        return expanded(given)
    import platformdirs

    return platformdirs.user_data_path("ctxchat", appauthor=False)


def user_file(folder: Path) -> Path:
    """The path of the person's settings in their folder."""
    return folder / "config.toml"


def project_file(workspace: Path) -> Path:
    """The path of a project's settings in its folder."""
    return workspace / ".ctxchat" / "config.toml"


def shipped() -> Path:
    """The folder with the shipped `config.toml` and `themes/`: inside the installed package, or the checkout's root."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_data", package.parent):
        if (folder / "config.toml").is_file() and (folder / "themes").is_dir():
            return folder
    raise CtxchatError("The shipped config.toml and themes are missing.", "Install ctxchat again.")
