"""What is set for one model: where it is, whose key, how much; and the key itself, from the environment, else from the system's
keyring where the `keyring` package is there. No key is ever stored here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.network import fault_of_header, whole_address
from ctxchat.models.providers import Provider, provider_of


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """One model as configured.

    `name` is litellm's (`anthropic/claude-…`, `ollama_chat/llama3.1`). `api_base` is a server of your own; with one,
    a key is sent only when `api_key_env` names its variable, so that no other provider's key reaches it. `window` and
    `max_output` in tokens, 0 for detect and for the model's own. `timeout` in seconds without a byte. `extra` goes to the
    provider as it is. `fallback` names the model to use when this one fails. `keep_reasoning` None: as the provider wants it.
    `vision` None: images are sent where the server says that the model takes them, else where the catalogue knows it.
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
        """Who serves it. Raises UsageError where no provider has that prefix."""
        return provider_of(self.name)

    @property
    def model(self) -> str:
        """The name without the provider's prefix, as the server knows it."""
        head, slash, rest = self.name.partition("/")
        return rest if slash and head == self.provider.prefix else self.name

    @property
    def base(self) -> str:
        """The address requests go to, with a scheme and without a slash at the end; empty for the provider's own. One that is
        none is given as it is: `network.check_network_settings` says what is wrong with it."""
        try:
            return whole_address(self.api_base) or self.provider.base.rstrip("/")
        except ValueError:
            return self.api_base.strip().rstrip("/")

    @property
    def place(self) -> str:
        """As `base`, without what stands behind a question mark."""
        return self.base.partition("?")[0].rstrip("/")

    @property
    def shown_base(self) -> str:
        """As `place`, without a login."""
        scheme, mark, rest = self.place.partition("://")
        place, slash, path = rest.partition("/")
        return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"


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
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except Exception:  # a keyring without a backend raises its own kinds; no key is the answer
        return ""
