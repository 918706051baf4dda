"""The certificates that the environment names for connections over TLS, read once for every client, and what is wrong with them.

One of `VARIABLES` counts, the first that is set; without any the authorities of the client's library count."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxchat.core.errors import UsageError

if TYPE_CHECKING:
    import ssl

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Read in this order: OpenSSL's own, then those that Python's and curl's programs share. The last two name a file or a folder."""

_FILES = ("SSL_CERT_FILE", "SSL_VERIFY", "SSL_CERTIFICATE")
"""Those that may name no folder."""

_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")
"""What OpenSSL calls certificates in a folder, by a hash of whom they are of."""

_HINT = "Set it to a file of certificates (PEM), or take it away: then the usual authorities count."


def named_context(environment: Mapping[str, str] = os.environ) -> ssl.SSLContext | None:
    """What trusts the named certificates and no others; None where none are named. Reads files. Raises UsageError that names
    the variable."""
    variable, place = _named(environment)
    return _trusting(variable, place) if place else None


def check_litellms(environment: Mapping[str, str], *, aws: bool) -> None:
    """Raises UsageError that names the variable for certificates in variables that litellm alone reads, or (`aws`) Amazon's
    library below it, where they cannot be what they should. Reads files."""
    if (verify := environment.get("SSL_VERIFY", "").strip()) and verify.lower() not in {"true", "false"}:
        _trusting("SSL_VERIFY", verify)  # litellm trusts the usual ones then, and says nothing
    if place := environment.get("SSL_CERTIFICATE", "").strip():
        import ssl

        (file,) = _files("SSL_CERTIFICATE", place)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(file, password="")  # else it would ask the terminal
        except (OSError, ValueError) as problem:
            raise UsageError(
                f"SSL_CERTIFICATE names {place}, which does not hold your own certificate and its key.",
                "Set it to a file with both (PEM), the key without a passphrase, or take it away.",
            ) from problem
    if aws and (place := environment.get("AWS_CA_BUNDLE", "").strip()):
        _trusting("AWS_CA_BUNDLE", place)


def _trusting(variable: str, place: str) -> ssl.SSLContext:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for file in _files(variable, place):
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            continue  # of a folder, the others count
        except OSError as problem:
            raise UsageError(f"{variable} names {file}: {problem.strerror or problem}.", _HINT) from problem
    if not context.cert_store_stats()["x509"]:
        raise UsageError(f"{variable} names {place}, which holds no certificates that can be read.", _HINT)
    return context


def client_options(library: Any, url: str, proxy: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What a client of httpx (or of httpx2: the `library`) for a URL behind a proxy is made with: certificates are looked at by
    what is named, the proxy's too. Reads files. Raises UsageError."""
    secure, secure_proxy = url.lower().startswith("https:"), proxy.startswith("https:")
    named = named_context(environment) if secure or secure_proxy else None
    return {
        "verify": (named or library.create_ssl_context(trust_env=False)) if secure else False,
        "proxy": library.Proxy(proxy, ssl_context=named if secure_proxy else None) if proxy else None,
        "trust_env": False,
    }


def named_files(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The files of the named certificates, for a library that reads one variable only; none where none are named. Raises
    UsageError."""
    variable, place = _named(environment)
    return _files(variable, place) if place else []


def _named(environment: Mapping[str, str]) -> tuple[str, str]:
    return next(((name, value) for name in VARIABLES if (value := environment.get(name, "")).strip()), ("", ""))


def _files(variable: str, place: str) -> list[Path]:
    """The file, or those of the folders that OpenSSL would look for. Raises UsageError where there is none."""
    folders = [Path(folder) for folder in place.split(os.pathsep)] if variable == "SSL_CERT_DIR" else [Path(place)]
    try:
        kinds = [stat.S_IFMT(folder.stat().st_mode) for folder in folders if folder.exists() or len(folders) == 1]
        if variable != "SSL_CERT_DIR" and kinds == [stat.S_IFREG]:
            return [Path(place)]
        if variable in _FILES or stat.S_IFDIR not in kinds:
            wanted = "folder" if variable == "SSL_CERT_DIR" else "file"
            hint = _HINT.replace("a file of certificates (PEM)", f"a {wanted} of certificates (PEM)")
            raise UsageError(f"{variable} names {place}, which is no {wanted}.", hint)
        inside = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
        found = [file for file in inside if _HASHED.fullmatch(file.name) and file.is_file()]
    except OSError as problem:
        raise UsageError(f"{variable} names {place}: {problem.strerror or problem}.", _HINT) from problem
    if not found:
        raise UsageError(
            f"{variable} names {place}, where no file has a name that OpenSSL looks for.",
            f"`openssl rehash {place}` names the certificates there so; or set SSL_CERT_FILE to a file of them.",
        )
    return found
