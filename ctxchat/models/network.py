"""Checks the network settings that a model's requests need (address, headers, proxy, certificates) before anything is sent, so
that a mistake is named instead of failing somewhere in a library."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ctxchat.certificates import check_litellms, named_context
from ctxchat.core.errors import ModelError, UsageError
from ctxchat.core.network import fault_of_header, proxy_for, whole_address
from ctxchat.models.discovery import usual_base
from ctxchat.models.openai_servers import address_elsewhere
from ctxchat.models.settings import ModelSettings


def check_network_settings(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ModelError (`settings`), which names the setting that cannot work, whichever transport is used. Reads files of
    certificates."""
    variable, address = _address(settings, environment)
    try:
        base = whole_address(address) or "https://provider.example"
    except ValueError as problem:
        place = f"in {variable}" if variable else repr(settings.shown_base)
        raise ModelError(
            f"The address {place} of {settings.name} cannot be used: {problem}.",
            f"Set {variable or 'api_base (or --api-base)'} to one such as http://localhost:8080/v1.",
            kind="settings",
        ) from problem
    headers = settings.extra.get("extra_headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if fault := fault_of_header(f"{name}{value}"):
            raise ModelError(
                f"The header {str(name)!r} of {settings.name} cannot be sent: {fault}.",
                "Mend it under extra_headers.",
                kind="settings",
            )
    try:
        proxy = proxy_for(base, environment)
        if base.lower().startswith("https:") or proxy.startswith("https:"):
            named_context(environment)
            check_litellms(environment, aws=settings.provider.prefix in {"bedrock", "sagemaker"})
    except UsageError as problem:
        raise ModelError(problem.text, problem.hint, kind="settings") from problem


def _address(settings: ModelSettings, environment: Mapping[str, str]) -> tuple[str, str]:
    """The environment variable that sets the address of a model's server, and the address. The variable is empty where the
    settings set it; the address is empty for the provider's own."""
    if settings.api_base:
        ollama = usual_base(settings.name, environment) == settings.api_base
        return "OLLAMA_HOST" if ollama else "", settings.api_base
    if settings.provider.base:
        return "", settings.provider.base
    return address_elsewhere(settings.provider.prefix, environment)
