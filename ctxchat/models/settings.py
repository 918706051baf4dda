"""The settings of one model (name, address, window, limits), and the look-up of its API key: in the environment, else in the
system's keyring where the `keyring` package is installed. No key is kept in these values."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.network import fault_of_header, whole_address
from ctxchat.models.providers import Provider, provider_of


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of one model.

    `name` is litellm's (`anthropic/claude-…`, `ollama_chat/llama3.1`). `api_base` is the address of the person's own server; to
    such an address a key is sent only where `api_key_env` names its variable, so that it never gets another provider's key.
    `window` and `max_output` are in tokens; 0 means to detect it, and the model's own limit. `timeout` is the longest time
    without a byte, in seconds. `extra` are parameters that are sent unchanged. `fallback` is the model to use when this one
    fails. `keep_reasoning` None: as the provider requires. `vision` None: images are sent where the server or the catalogue says
    that the model accepts them.
    """

    name: str
    api_base: str = ""
    api_key_env: str = ""
    window: int = 0
    max_output: int = 0
    timeout: float = 300.0
    extra: dict[str, object] = {}
    fallback: str = ""
    keep_reasoning: bool | None = None
    vision: bool | None = None

    @property
    def provider(self) -> Provider:
        """The provider that serves it. Raises UsageError where no provider has its prefix."""
        return provider_of(self.name)

    @property
    def model(self) -> str:
        """The name without the provider's prefix, as the server knows it."""
        head, slash, rest = self.name.partition("/")
        return rest if slash and head == self.provider.prefix else self.name

    @property
    def base(self) -> str:
        """The address that requests go to, with a scheme and without a slash at the end; empty for the provider's own. An invalid
        one is given unchanged; `network.check_network_settings` tells what is wrong with it."""
        try:
            return whole_address(self.api_base) or self.provider.base.rstrip("/")
        except ValueError:
            return self.api_base.strip().rstrip("/")

    @property
    def place(self) -> str:
        """`base` without a query."""
        return self.base.partition("?")[0].rstrip("/")

    @property
    def shown_base(self) -> str:
        """`place` without a login, as it may be shown."""
        scheme, mark, rest = self.place.partition("://")
        place, slash, path = rest.partition("/")
        return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"


Lookup = Callable[[str], str]
"""A function from an environment variable's name to its value, which is empty where it is not set."""

KEYRING_SERVICE = "ctxchat"


def lookup(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """A key by the name of its variable; empty for none. A keyring may block, so call this off the event loop."""
    return environment.get(name, "").strip() or _from_keyring(name)


def where(names: Sequence[str], environment: Mapping[str, str], *, keyring: bool) -> str:
    """Where a key with one of these names was found, in words for a person; empty where it was not. May block with `keyring`."""
    if found := next((name for name in names if environment.get(name, "").strip()), ""):
        return f"key in {found}"
    return "key in the keyring" if keyring and any(_from_keyring(name) for name in names) else ""


def key_for(settings: ModelSettings, find: Lookup = lookup) -> str:
    """The key to send with a request; empty where litellm authenticates by itself. Raises ModelError, which names the variable,
    where it is missing or cannot be sent."""
    if settings.api_key_env:
        names = (settings.api_key_env,)
    else:
        names = settings.provider.keys
        if settings.provider.local or (names and settings.api_base):
            return "none"  # clients require a key; a local server ignores it
    for name in names:
        if value := find(name):
            if fault := fault_of_header(value):
                raise ModelError(f"The key in {name} is none: {fault}.", "Copy it there once more.", kind="auth")
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
    """A key from the system's keyring; empty where there is none."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except Exception:  # a keyring without a backend raises its own kinds; no key is the answer
        return ""
