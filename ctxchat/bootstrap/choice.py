"""From a model's name to the model, with what settings and flags say of it."""

from __future__ import annotations

import msgspec

from ctxchat.config.schema import Settings
from ctxchat.core.budget import Window
from ctxchat.core.ports import ModelPort
from ctxchat.models.offline import OFFLINE_NAME, OFFLINE_WINDOW, OfflineAssistant
from ctxchat.models.process import Worker
from ctxchat.models.tokenizers import counter


class Overrides(msgspec.Struct, frozen=True):
    """What the command line says of the model: address, the key's variable, window in tokens; empty or 0 where it does not."""

    api_base: str = ""
    api_key_env: str = ""
    window: int = 0


def model_port(name: str, settings: Settings, overrides: Overrides, worker: Worker) -> ModelPort:
    """The model by litellm's name; `offline` is short for the built-in assistant. Raises UsageError for a name nobody serves."""
    known = settings.of_model(name)
    window = overrides.window or known.window or settings.context.max_tokens
    if name.partition("/")[0] == OFFLINE_NAME.partition("/")[0]:
        return OfflineAssistant(
            counter(OFFLINE_NAME), window=Window(window, "configured") if window else OFFLINE_WINDOW
        )
    from ctxchat.models.litellm_client import LitellmModel
    from ctxchat.models.settings import ModelSettings

    made = ModelSettings(
        name=name,
        api_base=overrides.api_base or known.api_base,
        api_key_env=overrides.api_key_env or known.api_key_env,
        window=window,
        max_output=known.max_output,
        timeout=known.timeout,
        extra=dict(known.extra),
        fallback=known.fallback,
        keep_reasoning=known.keep_reasoning,
    )
    return LitellmModel(made, worker)


def price(model: str, prompt: int, completion: int) -> float:
    """US dollars for a call of this size by litellm's price list; 0 where it has no price. Reads the list the first time."""
    from ctxchat.models.catalogue import prices

    known = prices(model)
    return ((known.input or 0.0) * prompt + (known.output or 0.0) * completion) / 1e6
