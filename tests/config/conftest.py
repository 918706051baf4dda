"""A person's folders, fresh for each test, and nothing of the real environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ctxchat.config.effective import Loaded, load_settings


class Home:
    """A settings folder, a data folder and a workspace."""

    def __init__(self, root: Path) -> None:
        self.config, self.data, self.workspace = root / "config", root / "data", root / "work"
        for folder in (self.config, self.workspace / ".ctxchat"):
            folder.mkdir(parents=True)
        self.file = self.config / "config.toml"
        self.project = self.workspace / ".ctxchat" / "config.toml"

    def load(self, flags: Mapping[str, object] | None = None, **variables: str) -> Loaded:
        environ = {"CTXCHAT_CONFIG_DIR": str(self.config), "CTXCHAT_DATA_DIR": str(self.data), **variables}
        return load_settings(self.workspace, environ=environ, flags=flags)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture(scope="session")
def fresh_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Home]:
    """For property tests: a new home each time it is called."""
    return lambda: Home(tmp_path_factory.mktemp("home"))
