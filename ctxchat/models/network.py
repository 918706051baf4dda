"""The network settings of this machine as a model's requests need them: its proxy, its certificates, its address; and what is
wrong with them, before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxchat.core.errors import ModelError, UsageError
from ctxchat.core.network import fault_of_header, proxy_for, whole_address
from ctxchat.models.settings import ModelSettings


def check(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Raises ModelError (`settings`) that names what cannot work, whoever carries the request. Looks at files."""
    try:
        base = whole_address(settings.api_base) or settings.provider.base or "https://provider.example"
    except ValueError as problem:
        raise ModelError(
            f"The address {settings.shown_base!r} of {settings.name} cannot be used: {problem}.",
            "Set api_base (or --api-base) to one such as http://localhost:8080/v1.",
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
        proxy_for(base, environment)
        if base.lower().startswith("https:"):
            check_certificates(environment)
    except UsageError as problem:
        raise ModelError(problem.text, problem.hint, kind="settings") from problem


def check_certificates(environment: Mapping[str, str] = os.environ) -> None:
    """Raises UsageError that names the variable where the certificates it names cannot be read."""
    file, folder = environment.get("SSL_CERT_FILE", ""), environment.get("SSL_CERT_DIR", "")
    hint = "Set it to a file of certificates (PEM), or take it away: then the usual authorities count."
    if file:
        import ssl

        try:
            with Path(file).open("rb"):
                ssl.create_default_context(cafile=file)
        except ssl.SSLError as problem:
            raise UsageError(
                f"The file {file} in SSL_CERT_FILE holds no certificates that can be read.", hint
            ) from problem
        except OSError as problem:
            raise UsageError(f"SSL_CERT_FILE names {file}: {problem.strerror or problem}.", hint) from problem
    elif folder and not Path(folder).is_dir():
        raise UsageError(f"SSL_CERT_DIR names {folder}, which is no folder.", hint)


def client_options(url: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What an httpx client for this URL is made with. Reads certificates where they are looked at. Raises UsageError."""
    secure = url.lower().startswith("https:")
    return {
        "verify": _certificates() if secure else False,
        "proxy": proxy_for(url, environment) or None,
        "trust_env": False,
    }


def _certificates() -> Any:
    import httpx

    check_certificates()
    return httpx.create_ssl_context()
