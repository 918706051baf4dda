"""Logins to MCP servers, by the address of the server: in the system's keyring where the `keyring` package has one that works,
else each in a file for its owner only. Knows nothing of how they come about."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from filelock import AsyncFileLock

from ctxchat import atomic_write

FOLDER = "logins"
"""Beside the servers' logs."""

KEYRING_SERVICE = "ctxchat"

EXPIRY_MARGIN_S = 30.0
"""Seconds before it expires from which on an access token is refreshed: a call may be on its way for that long."""

LOCK_TIMEOUT_S = 20.0
"""Seconds to wait for another session that refreshes the same login."""


class StoredLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a login: an access token, when it expires (seconds since 1970, 0 if unknown), and what is needed to refresh
    it: the refresh token, the address, the client's id and secret; `method` is how the client identifies itself there."""

    access_token: str
    expires_at: float = 0.0
    refresh_token: str = ""
    token_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    method: str = ""
    resource: str = ""

    @property
    def expired(self) -> bool:
        """Whether the access token has to be refreshed."""
        return bool(self.expires_at) and time.time() > self.expires_at - EXPIRY_MARGIN_S


class LoginStore:
    """The stored logins, in a folder or in the keyring (the system's, if none is given). Blocks."""

    def __init__(self, folder: Path, keyring: Any = None) -> None:
        self._folder = folder
        with suppress(ImportError):
            keyring = keyring or import_module("keyring")
        self._keyring = keyring

    def path(self, url: str) -> Path:
        """The file of a login, where it is in one."""
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"

    def read(self, url: str) -> StoredLogin | None:
        """The login to that address, None for none."""
        found = self._of_keyring(url)
        if not found:
            with suppress(OSError):
                found = self.path(url).read_text("utf-8")
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(found, type=StoredLogin)
        return None

    def write(self, url: str, login: StoredLogin) -> None:
        """Keep it in place of the one before. Raises OSError."""
        text = msgspec.json.encode(login).decode()
        # Without a backend a keyring raises its own kinds, as where the text is too long for it.
        with suppress(Exception):
            self._keyring.set_password(KEYRING_SERVICE, _entry(url), text)
            if self._of_keyring(url) == text:
                self.path(url).unlink(missing_ok=True)
                return
        with suppress(Exception):  # as above; what it still has would be read first
            self._keyring.delete_password(KEYRING_SERVICE, _entry(url))
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder.chmod(0o700)
        if self.path(url).is_symlink():
            self.path(url).unlink()
        atomic_write.write_atomically(self.path(url), text.encode(), mode=0o600)

    def delete(self, url: str) -> bool:
        """Delete it; False where there is none."""
        there = self.read(url) is not None
        with suppress(Exception):  # as above
            self._keyring.delete_password(KEYRING_SERVICE, _entry(url))
        self.path(url).unlink(missing_ok=True)
        return there

    def lock(self, url: str) -> AsyncFileLock:
        """Held while a login is refreshed: nobody else does so meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return AsyncFileLock(self.path(url).with_suffix(".lock"), timeout=LOCK_TIMEOUT_S, mode=0o600)

    def _of_keyring(self, url: str) -> str:
        with suppress(Exception):  # as above
            return self._keyring.get_password(KEYRING_SERVICE, _entry(url)) or ""
        return ""


def _entry(url: str) -> str:
    return f"mcp login {url}"
