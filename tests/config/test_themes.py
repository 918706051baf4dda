"""Shipped themes are readable everywhere; a person's broken ones are reported together."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxchat
from ctxchat.config.colours import contrast, from_lch, ink_on, lch, luminance, mix, normal, readable
from ctxchat.config.themes import FALLBACK, PATTERNS, load_themes, make_theme, read_theme, unreadable
from ctxchat.core.sections import SECTIONS

SHIPPED = load_themes()
TUI = Path(ctxchat.__file__).parent / "tui"
COLOUR = re.compile(r"#[0-9a-f]{6}")
HEX = st.integers(0, 0xFFFFFF).map(lambda n: f"#{n:06x}")


def test_enough_are_shipped_and_all_are_right() -> None:
    assert SHIPPED.problems == ()
    assert {"dark", "light", "high-contrast", "colourblind", "mono"} < set(SHIPPED.themes)
    assert len(SHIPPED.themes) >= 8
    assert {t.dark for t in SHIPPED.themes.values()} == {True, False}
    assert all(t.name == Path(t.file).stem for t in SHIPPED.themes.values())


@pytest.mark.parametrize("theme", [*SHIPPED.themes.values(), FALLBACK], ids=lambda t: t.name + (t.file and " file"))
def test_every_text_is_readable_and_every_colour_plain(theme) -> None:
    assert unreadable(theme) == ()
    colours = [
        v for v in (getattr(theme, f) for f in theme.__struct_fields__) if isinstance(v, str) and v.startswith("#")
    ]
    assert len(colours) == 15
    assert all(COLOUR.fullmatch(c) for c in [*colours, *theme.gauge.values(), *theme.gauge_ink.values()])
    assert set(theme.gauge) == set(theme.gauge_ink) == set(theme.patterns) == set(SECTIONS)
    assert theme.dark == (luminance(theme.background) < 0.18)


@pytest.mark.parametrize("theme", [*SHIPPED.themes.values(), FALLBACK], ids=lambda t: t.name)
def test_neighbours_on_the_gauge_differ_in_lightness(theme) -> None:
    order = [s for s in SECTIONS if s not in ("reserved", "free")]
    for left, right in pairwise(order):
        assert abs(lch(theme.gauge[left])[0] - lch(theme.gauge[right])[0]) > 0.05, (left, right)


SAID = ("user", "assistant", "tool_results")


@pytest.mark.parametrize("theme", [*SHIPPED.themes.values(), FALLBACK], ids=lambda t: t.name)
def test_what_fills_the_window_stands_out_and_the_summary_never_more(theme) -> None:
    seen = {name: contrast(theme.gauge[name], theme.background) for name in (*SAID, "summary")}
    assert all(seen[name] >= 3 for name in SAID), seen  # what WCAG asks of what is no text
    assert seen["summary"] < max(seen[name] for name in SAID)
    assert lch(theme.gauge["summary"])[1] <= max(lch(theme.gauge[name])[1] for name in SAID)


def test_high_contrast_is_high() -> None:
    theme = SHIPPED.themes["high-contrast"]
    inks = (theme.foreground, theme.muted, theme.primary, theme.success, theme.warning, theme.error)
    assert min(contrast(ink, theme.panel) for ink in inks) >= 7


def test_signs_differ_so_that_colour_is_not_needed() -> None:
    assert len(set(PATTERNS.values())) == len(SECTIONS)


@settings(max_examples=60, deadline=None)  # each looks for readable colours of a whole theme
@given(back=HEX, fore=HEX, primary=HEX)
def test_any_three_colours_make_a_whole_theme(back: str, fore: str, primary: str) -> None:
    theme = make_theme({"background": back, "foreground": fore, "primary": primary}, "x")
    assert set(theme.gauge) == set(SECTIONS)
    assert all(contrast(theme.gauge_ink[s], theme.gauge[s]) >= 4.5 for s in SECTIONS)


@given(back=HEX, ink=HEX)
def test_ink_can_always_be_found(back: str, ink: str) -> None:
    assert contrast(ink_on(back, ink), back) >= 4.5
    assert contrast(readable(ink, back), back) >= 4.5


@given(colour=HEX)
def test_lightness_and_hue_lead_back_to_the_colour(colour: str) -> None:
    back = from_lch(*lch(colour))
    assert all(abs(int(colour[i : i + 2], 16) - int(back[i : i + 2], 16)) <= 2 for i in (1, 3, 5))


def test_colours_as_written() -> None:
    assert normal("#AbC") == "#aabbcc" and normal("rgb(1, 2,3)") == "#010203"
    for bad in ("#12", "red", "#12345g", "rgb(1,2,300)", "", "#1234567", "[red]"):
        with pytest.raises(ValueError, match="is no colour"):
            normal(bad)
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and mix("#000000", "#ffffff", 0.5) == "#808080"


def test_broken_themes_are_reported_together_and_the_right_ones_load(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "good.toml").write_text(
        'background = "#111"\nforeground = "#eee"\nprimary = "#88f"\naccent = "#f80"\nsurface = "#222"\n'
    )
    (folder / "lacks.toml").write_text('background = "#111"\nforeground = "#eee"\n')
    (folder / "bad.toml").write_text(
        """\
background = "night"
foreground = "#eee"
primry = "#88f"
primary = 3
[gauge]
tols = "#111"
system = "x"
[patterns]
user = "UU"
free = "漢"
"""
    )
    (folder / "syntax.toml").write_text("background = \n")
    (folder / "bytes.toml").write_bytes(b"\xff\xfe")
    (folder / "folder.toml").mkdir()
    (folder / "notes.txt").write_text("not a theme")
    found = load_themes(tmp_path)
    assert set(found.themes) - set(SHIPPED.themes) == {"good"}
    told = [p.text.removeprefix(f"{folder}/") for p in found.problems]
    assert told == [
        "bad.toml:1: background: is 'night', must be a colour such as \"#7aa2f7\"",
        "bad.toml:3: primry: is unknown, did you mean primary?",
        'bad.toml:4: primary: is 3, must be a colour such as "#7aa2f7"',
        f"bad.toml:6: gauge.tols: is unknown, one of {', '.join(SECTIONS)}, did you mean tools?",
        "bad.toml:7: gauge.system: is 'x', must be a colour",
        "bad.toml:9: patterns.user: is 'UU', must be one narrow letter or sign",
        "bad.toml:10: patterns.free: is '漢', must be one narrow letter or sign",
        "bytes.toml:1: is not UTF-8 text, save it as UTF-8",
        "folder.toml: is a folder, must be a TOML file",
        'lacks.toml: primary: is missing, a colour such as "#7aa2f7"',
        "syntax.toml:1: is not valid TOML: Invalid value, text in quotes, a number, true, false, or [a, list]",
    ]


def test_a_persons_theme_wins_over_ours_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "mine.toml").write_text(
        'name = "dark"\nbackground = "#000"\nforeground = "#fff"\nprimary = "#0ff"\n'
    )
    found = load_themes(tmp_path)
    assert found.named("dark").background == "#000000" and found.named("nope") == found.named("dark")
    assert found.unknown("dark") is None
    trouble = found.unknown("gruvbx")
    assert trouble and trouble.nearest == "gruvbox"
    for name in ("", "../themes/rose", "a/b", "x\x00y"):
        assert found.named(name) == found.named("dark") and found.unknown(name)


@given(data=st.binary(max_size=80) | st.text(alphabet='bg="#1\n[]{}', max_size=60).map(str.encode))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("t") / "x.toml"
    file.write_bytes(data)
    theme, problems = read_theme(file)
    assert (theme is None) == bool(problems)


DIM = re.compile(r"color: \$foreground (\d+)%|\"\$foreground (\d+)%")


def test_no_style_dims_text_below_what_can_be_read() -> None:
    """What is quiet is `$text-muted`, which every theme has readable; a share of the text's own colour must be readable, too."""
    shares: set[int] = set()
    for file in [*TUI.rglob("*.tcss"), *TUI.rglob("*.py")]:
        for line in file.read_text(encoding="utf-8").splitlines():
            if "border" not in line:
                shares |= {int(a or b) for a, b in DIM.findall(line)}
    assert shares, "the pattern finds nothing"
    for theme in SHIPPED.themes.values():
        for ground in (theme.background, theme.surface, theme.panel):
            for share in shares:
                assert contrast(mix(ground, theme.foreground, share / 100), ground) >= 4.5, (theme.name, share)
