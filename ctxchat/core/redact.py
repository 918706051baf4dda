"""Takes what looks like a secret out of a text that leaves the store: exports, logs, reports. Text in, text out."""

from __future__ import annotations

import re

_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.S),
    ),
    ("token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*")),
    ("AWS key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})")),
    ("GitLab token", re.compile(r"\bglpat-[\w-]{20,}")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("Slack webhook", re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]{10,}")),
    ("Google key", re.compile(r"\bAIza[\w-]{35}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    # OpenAI, Anthropic, OpenRouter, Stripe and the many that do as they do.
    ("API key", re.compile(r"\b(?:sk|rk|pk)[-_](?:(?:ant|proj|or|live|test|svcacct)[-_])?[\w-]{16,}")),
    ("bearer token", re.compile(r"(?i)(?<=\bbearer )[\w.~+/-]{12,}=*")),
    ("credentials", re.compile(r"(?i)(?<=\bauthorization: basic )[A-Za-z0-9+/]{6,}=*")),
    ("password", re.compile(r"(?<=://)[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{1,256}(?=@)")),
)

_ASSIGNED = re.compile(
    r"""(?ix) \b( [\w-]{0,64}? (?: passw(?:or)?d | passphrase | secret(?:[_-]?access)?(?:[_-]?key)? | api[_-]?key
        | access[_-]?(?:key|token) | auth[_-]?token | client[_-]?secret ) \\*["']? \s{0,4} [:=] \s{0,4} \\*["']? ) (
        [^\s"'`,;&<>(){}\[\]\\$]{4,512} )"""
)


def redact(text: str) -> str:
    """The text with secrets replaced by a word that says what stood there. What it takes out of a JSON string leaves
    valid JSON."""
    for name, pattern in _SECRETS:
        text = pattern.sub(f"[redacted {name}]", text)
    return _ASSIGNED.sub(_keep_name, text)


def _keep_name(match: re.Match[str]) -> str:
    return match[0] if match[2].startswith("[redacted") else f"{match[1]}[redacted]"
