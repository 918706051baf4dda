"""Logins to MCP servers, kept in a keyring or in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.tools.mcp.login_store import LoginStore, StoredLogin


class Keyring:
    """A keyring in memory; one that is `locked` fails."""

    def __init__(self, locked: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = locked

    def set_password(self, service: str, name: str, text: str) -> None:
        if self.locked:
            raise RuntimeError("locked")
        self.kept[service, name] = text

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.mark.parametrize("locked", [False, True])
def test_a_login_goes_to_the_keyring_where_that_works_else_to_a_file(tmp_path: Path, locked: bool):
    keyring = Keyring(locked)
    store, login = LoginStore(tmp_path / "logins", keyring), StoredLogin("a", 5.0, "r", "https://x/token", "me")
    store.write("https://x/mcp", login)
    assert store.read("https://x/mcp") == login and store.read("https://y/mcp") is None
    assert store.path("https://x/mcp").exists() == locked and bool(keyring.kept) != locked
    assert store.delete("https://x/mcp") and store.read("https://x/mcp") is None
