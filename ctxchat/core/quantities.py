"""Writes numbers for people in the same way everywhere: on screen, on the command line, in notices."""

from __future__ import annotations


def count(n: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 message`, `1,204 messages`. `many` is the plural where it is not `one` with an `s`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def line_count(text: str) -> int:
    """The number of lines of a text; a line break at its end does not begin another one."""
    return text.count("\n") + (not text.endswith("\n"))


def made_smaller(messages: int, shortened: int, *, wide: bool = True) -> str:
    """What a compaction did to `messages` messages, of which `shortened` only became shorter: `30 messages compacted, 6
    shortened`; without the noun unless `wide`."""
    done = [(messages - shortened, "compacted"), (shortened, "shortened")]
    shown = [(n, word) for n, word in done if n] or done[:1]
    words = [
        f"{count(n, 'message') if wide and not place else f'{n:,}'} {word}" for place, (n, word) in enumerate(shown)
    ]
    return ", ".join(words)


def short(tokens: int) -> str:
    """A number of tokens in short: `412`, `12.3k`, `118.4k`, `1.5M`."""
    size = abs(tokens)
    if size < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if size < 999_950 else f"{tokens / 1_000_000:.1f}M"


def brief(n: int) -> str:
    """A number in as few characters as show its size: `118k`, `9.8k`, `200k`, `2M`."""
    text = short(n)
    if text[-1].isdigit():
        return text
    number, unit = text[:-1], text[-1]
    return f"{float(number):.0f}{unit}" if number.endswith(".0") or abs(float(number)) >= 100 else text


def server_cut(tokens: int) -> str:
    """The warning that a server silently left out `tokens` of a prompt, with the remedy."""
    return (
        f"The server cut ~{short(tokens)} tokens from the prompt without a word: its window is smaller than believed. "
        "Set the window it really has (--window, or `window` in config.toml)."
    )


def percent(ratio: float) -> str:
    """A ratio as `61 %`. Rounded so that it is 100 only for exactly 1: below that at most 99, above it at least 101."""
    whole = int(ratio * 100 + 0.5)
    if ratio < 1:
        whole = min(99, whole)
    elif ratio > 1:
        whole = max(101, whole)
    return f"{max(0, whole)} %"
