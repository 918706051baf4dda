"""What is set for one model: where it is, whose key, how much. Values only."""

from __future__ import annotations

import msgspec

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
        """The address requests go to, without a slash at the end; empty for the provider's own."""
        return (self.api_base or self.provider.base).rstrip("/")

    @property
    def shown_base(self) -> str:
        """As `base`, without a login."""
        scheme, mark, rest = self.base.partition("://")
        place, slash, path = rest.partition("/")
        return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"
