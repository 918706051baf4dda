"""Colour arithmetic: hex texts, contrast after WCAG 2.1, and hues that look equally strong (OKLCH, Ottosson 2020)."""

from __future__ import annotations

import math
import re

_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_RGB = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")

MIN_CONTRAST = 4.5
"""The contrast WCAG AA asks of text."""


def normal(text: str) -> str:
    """`#rrggbb` of `#rgb`, `#rrggbb` or `rgb(r, g, b)`. Raises ValueError."""
    text = text.strip()
    if _HEX.fullmatch(text):
        digits = text[1:].lower()
        return "#" + ("".join(d * 2 for d in digits) if len(digits) == 3 else digits)
    found = _RGB.fullmatch(text)
    if found and all(int(n) < 256 for n in found.groups()):
        return "#" + "".join(f"{int(n):02x}" for n in found.groups())
    raise ValueError(f"{text!r} is no colour")


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, 0 to 1."""
    r, g, b = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.1, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mix(one: str, other: str, share: float) -> str:
    """`share` (0 to 1) of the way from one to the other."""
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def readable(ink: str, *grounds: str, least: float = MIN_CONTRAST) -> str:
    """The ink, moved towards black or white until it stands out on every ground; the nearest that does."""
    best = ink
    for end in ("#ffffff", "#000000") if luminance(grounds[0]) < 0.18 else ("#000000", "#ffffff"):
        for step in range(51):
            tried = mix(ink, end, step / 50)
            if min(contrast(tried, g) for g in grounds) >= least:
                return tried
            best = max(best, tried, key=lambda c: min(contrast(c, g) for g in grounds))
    return best


def ink_on(ground: str, *wishes: str) -> str:
    """The first wish that is readable on the ground, else black or white, one of which always is."""
    return next(
        (w for w in wishes if contrast(w, ground) >= MIN_CONTRAST),
        max("#000000", "#ffffff", key=lambda c: contrast(c, ground)),
    )


def lch(colour: str) -> tuple[float, float, float]:
    """Lightness (0 to 1), chroma (0 to about 0.3) and hue (degrees) of a colour."""
    r, g, b = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    l_ = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    m_ = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    s_ = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    light = 0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_
    a = 1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_
    bb = 0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_
    return light, math.hypot(a, bb), math.degrees(math.atan2(bb, a)) % 360


def from_lch(light: float, chroma: float, hue: float) -> str:
    """The colour of that lightness and hue with as much of the chroma as a screen can show."""
    while chroma > 0.002 and any(not -0.0005 <= v <= 1.0005 for v in _rgb(light, chroma, hue)):
        chroma *= 0.95
    return "#" + "".join(f"{round(255 * _curved(min(1.0, max(0.0, v)))):02x}" for v in _rgb(light, chroma, hue))


def _rgb(light: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """A colour of the OKLCH space as linear red, green and blue."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    l_ = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m_ = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s_ = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * l_ - 3.3077115913 * m_ + 0.2309699292 * s_,
        -1.2684380046 * l_ + 2.6097574011 * m_ - 0.3413193965 * s_,
        -0.0041960863 * l_ - 0.7034186147 * m_ + 1.7076147010 * s_,
    )


def _linear(v: float) -> float:
    return v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4


def _curved(v: float) -> float:
    return 12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055
