"""API keys: from the environment, else from the system's keyring where the `keyring` package is there. Never stored here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence

from ctxchat.core.errors import ModelError
from ctxchat.models.settings import ModelSettings

Lookup = Callable[[str], str]
"""The value of a variable, empty where there is none."""

KEYRING_SERVICE = "ctxchat"


def lookup(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """A key by the name of its variable. Asking a keyring may block: call it off the event loop."""
    return environment.get(name, "").strip() or _from_keyring(name)


def where(names: Sequence[str], environment: Mapping[str, str], *, keyring: bool) -> str:
    """Where a key lies under one of these names, in words; empty where it lies nowhere. May block where the keyring is asked."""
    if found := next((name for name in names if environment.get(name, "").strip()), ""):
        return f"key in {found}"
    return "key in the keyring" if keyring and any(_from_keyring(name) for name in names) else ""


def key_for(settings: ModelSettings, find: Lookup = lookup) -> str:
    """The key to send with a request; empty where litellm finds its own way. Raises ModelError that names the variable."""
    if settings.api_key_env:
        names = (settings.api_key_env,)
    else:
        names = settings.provider.keys
        if settings.provider.local or (names and settings.api_base):
            return "none"  # clients insist on one; a server of one's own does not look at it
    for name in names:
        if value := find(name):
            return value
    if not names:
        return ""
    raise ModelError(
        f"No API key for {settings.name}: {names[0]} is not set.",
        f"Set {' or '.join(names)} in the environment, put it into the system's keyring (`keyring set {KEYRING_SERVICE} "
        f"{names[0]}`, with the keyring package), or name another variable with api_key_env.",
        kind="auth",
    )


def _from_keyring(name: str) -> str:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except Exception:  # a keyring without a backend raises its own kinds; no key is the answer
        return ""
