"""The gauge: its layout at every width, and the widget that draws it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import ComposeResult
from textual.theme import Theme

from ctxchat.config.colours import contrast
from ctxchat.config.themes import load_themes
from ctxchat.core.budget import Window, WindowSource, make_budget
from ctxchat.core.context_usage import ContextUsage, PriceRise
from ctxchat.core.sections import OUTSIDE, SECTIONS, Section, SectionName
from ctxchat.presentation.bar import TARGET, TRIGGER, Cell, layout_bar
from ctxchat.presentation.usage_text import PARTS, sentence, uncounted
from ctxchat.tui.widgets.gauge import Gauge, words_beside
from tests.tui.harbour import HarbourSession, state
from tests.tui.panel_app import PanelApp


def bar_text(cells: Sequence[Cell]) -> str:
    """A bar as a terminal without colours shows it."""
    return "".join(cell.char for cell in cells)


INSIDE = [name for name in SECTIONS if name not in OUTSIDE]


def figures_of(
    tokens: dict[SectionName, int], window: int, reserved: int, source: WindowSource = "catalogue"
) -> ContextUsage:
    """Figures with these tokens in each part."""
    budget = make_budget(Window(window, source), reserved, 0.8, 0.5)
    used = sum(tokens.values())
    parts = {**tokens, "reserved": budget.reserved, "free": max(0, budget.limit - used)}
    return ContextUsage(
        model="m",
        window=window,
        window_source=source,
        reserved_output=budget.reserved,
        limit=budget.limit,
        used=used,
        estimated=True,
        pressure=budget.pressure(used),
        trigger_tokens=budget.trigger,
        target_tokens=budget.target,
        forecast_turns=None,
        compactions=0,
        cost_usd=0.0,
        sections=tuple(Section(n, parts.get(n, 0)) for n in SECTIONS),
    )


@st.composite
def any_figures(draw: st.DrawFn) -> ContextUsage:
    window = draw(st.sampled_from([1, 7, 512, 8_192, 200_000, 2_000_000]))
    size = st.one_of(st.just(0), st.integers(0, max(1, window // 4)), st.integers(0, window * 2))
    tokens = {name: draw(size) for name in INSIDE}
    return figures_of(tokens, window, draw(st.integers(0, window)))


@given(any_figures(), st.integers(0, 260), st.integers(0, 4_000_000))
def test_the_bar_is_exactly_as_wide_as_asked(context_usage: ContextUsage, width: int, ghost: int) -> None:
    cells = layout_bar(context_usage, width, ghost)
    assert len(cells) == width
    assert len(bar_text(cells)) == width


@given(any_figures(), st.integers(1, 260))
def test_parts_stand_in_their_order_each_in_one_piece(context_usage: ContextUsage, width: int) -> None:
    order = [SECTIONS.index(c.section) for c in layout_bar(context_usage, width)]
    free, reserved = SECTIONS.index("free"), SECTIONS.index("reserved")
    assert order == sorted(order, key=lambda place: {free: 90, reserved: 91}.get(place, place))


@given(any_figures(), st.integers(20, 260))
def test_the_fill_is_to_scale_and_its_cells_are_of_the_largest_parts(context_usage: ContextUsage, width: int) -> None:
    cells = layout_bar(context_usage, width)
    held = {name for name in INSIDE if context_usage.tokens(name)}
    shown = {c.section for c in cells} - OUTSIDE
    room = next((i for i, c in enumerate(cells) if c.section in OUTSIDE), width)
    assert shown <= held
    assert shown == held or len(shown) == room  # a cell each as far as cells go
    columns = sum(c.section != "reserved" for c in cells)
    fill = room + next((c.eighths for c in cells if c.eighths), 0) / 8
    ticks = [i for i, c in enumerate(cells) if c.tick]
    if context_usage.used < context_usage.limit and room > 1 and room not in ticks and room - 1 not in ticks:
        assert abs(fill - context_usage.used * columns / context_usage.limit) <= 1
    if shown != held:
        assert min(context_usage.tokens(n) for n in shown) >= max(context_usage.tokens(n) for n in held - shown)
        assert context_usage.used < context_usage.limit or room < len(held)


@given(any_figures(), st.integers(20, 260))
def test_the_fill_passes_a_tick_exactly_when_the_tokens_do(context_usage: ContextUsage, width: int) -> None:
    cells = layout_bar(context_usage, width)
    for i, cell in enumerate(cells):
        if cell.tick:
            mark = context_usage.trigger_tokens if cell.tick == "trigger" else context_usage.target_tokens
            assert (cell.section != "free") == (context_usage.used >= mark), (i, cell)


@given(any_figures(), st.integers(0, 260), st.integers(0, 400_000), st.integers(1, 400_000))
def test_where_what_is_held_ends_and_the_price_rises_is_on_the_bar_and_moves_nothing(
    context_usage: ContextUsage, width: int, held: int, above: int
) -> None:
    context_usage = msgspec.structs.replace(context_usage, price_step=PriceRise(above, 2.0))
    cells, plain = layout_bar(context_usage, width, held=held), layout_bar(context_usage, width)
    assert len(cells) == width and [c.section for c in cells] == [c.section for c in plain]
    marks = [c for c in cells if c.tick == "held"]
    assert len(marks) <= 1 and all(c.section not in OUTSIDE for c in marks)
    assert not any(c.tick == "step" for c in cells) or above < context_usage.limit


@given(any_figures(), st.integers(20, 260))
def test_over_the_limit_nothing_is_free_and_under_it_something_is(context_usage: ContextUsage, width: int) -> None:
    cells = layout_bar(context_usage, width)
    free = any(c.section == "free" for c in cells)
    assert (
        free == (context_usage.used < context_usage.limit)
        or context_usage.used == context_usage.limit
        or context_usage.limit < 4
    )
    if context_usage.used > context_usage.limit and context_usage.reserved_output:
        assert any(c.over for c in cells)


@given(any_figures(), st.integers(20, 260), st.floats(0.01, 0.99))
def test_a_ghost_is_the_end_of_the_fill(context_usage: ContextUsage, width: int, rest: float) -> None:
    cells = layout_bar(context_usage, width, int(context_usage.used * rest))
    ghosts = [i for i, c in enumerate(cells) if c.ghost]
    fill = [i for i, c in enumerate(cells) if c.section not in OUTSIDE]
    assert ghosts == (fill[-len(ghosts) :] if ghosts else [])
    assert len(ghosts) < max(1, len(fill)), "something always stays"


def test_a_window_that_is_not_known_shows_no_share() -> None:
    context_usage = msgspec.structs.replace(HarbourSession().context_usage, window=0, limit=0)
    assert bar_text(layout_bar(context_usage, 30)) == PARTS["free"].letter * 30


@given(
    any_figures(), st.integers(0, 260), st.integers(0, 9_000_000), st.floats(0, 0.5), st.sets(st.sampled_from(INSIDE))
)
def test_marks_change_no_scale(
    context_usage: ContextUsage, width: int, claimed: int, band: float, warned: set[SectionName]
) -> None:
    sections = tuple(msgspec.structs.replace(s, budget=int(s.name in warned)) for s in context_usage.sections)
    marked = msgspec.structs.replace(context_usage, claimed_window=claimed, band=band, sections=sections)
    cells = layout_bar(marked, width)
    assert len(cells) == len(bar_text(cells)) == width
    inside = [c for c in cells if not c.beyond]
    assert len(cells) - len(inside) <= width // 4
    assert [c.section for c in inside] == [c.section for c in layout_bar(context_usage, len(inside))]
    assert all(c.section == "free" for c in cells if c.soft)
    assert {c.section for c in cells if c.warn} <= {s.name for s in marked.over_budget}


def test_the_error_a_budget_and_a_learned_limit_read_without_colour() -> None:
    context_usage = figures_of({"tools": 4_000, "user": 9_000}, 40_000, 4_000)
    assert (
        bar_text(layout_bar(msgspec.structs.replace(context_usage, band=0.25), 40))
        == "TTTTUUUUUUUUU:::··╎········╷········▒▒▒▒"
    )
    sections = tuple(msgspec.structs.replace(s, budget=3_000 * (s.name == "tools")) for s in context_usage.sections)
    assert bar_text(layout_bar(msgspec.structs.replace(context_usage, sections=sections), 40)).startswith(
        "TTT!UUUUUUUUU··"
    )
    knowledge = msgspec.structs.replace(context_usage, claimed_window=50_000)
    assert bar_text(layout_bar(knowledge, 50)) == "TTTTUUUUUUUUU·····╎········╷········▒▒▒▒┃         "
    assert bar_text(layout_bar(knowledge, 20)) == bar_text(layout_bar(context_usage, 20)), "no room for it"


@pytest.mark.parametrize(("width", "said"), [(140, "tools over budget"), (80, "tools over"), (40, "T!"), (20, "T!")])
def test_a_part_over_its_budget_is_told_beside_the_bar_at_every_width(width: int, said: str) -> None:
    context_usage = figures_of({"tools": 4_000, "user": 9_000}, 40_000, 4_000)
    sections = tuple(msgspec.structs.replace(s, budget=3_000 * (s.name == "tools")) for s in context_usage.sections)
    text = words_beside(msgspec.structs.replace(context_usage, sections=sections), width)
    assert text.strip().startswith(f"{said}  ~36 %") and len(text) < width
    assert said not in words_beside(context_usage, width)


@pytest.mark.parametrize(
    ("width", "said"), [(140, "server cut ~3.1k"), (80, "server cut ~3.1k"), (40, "cut!"), (20, "cut!")]
)
def test_a_prompt_that_the_server_cut_is_told_beside_the_bar_at_every_width(width: int, said: str) -> None:
    context_usage = msgspec.structs.replace(figures_of({"tools": 4_000, "user": 9_000}, 40_000, 4_000), cut=3_100)
    text = words_beside(context_usage, width)
    assert text.strip().startswith(f"{said}  ~36 %") and len(text) < width
    assert "The server cut ~3.1k tokens" in sentence(context_usage)


def test_the_error_is_told_in_points_of_the_limit_where_there_is_room() -> None:
    context_usage = msgspec.structs.replace(figures_of({"user": 18_000}, 40_000, 4_000), band=0.06)
    assert words_beside(context_usage, 120).strip() == "~50 ±3 %  ~18.0k/36.0k"
    assert words_beside(context_usage, 60).strip() == "~50 %  ~18.0k/36k"
    sure = msgspec.structs.replace(context_usage, band=0.0, estimated=False)
    assert len(words_beside(sure, 120)) == len(words_beside(context_usage, 120)), (
        "the bar does not jump when a server counts"
    )


def test_the_reading_is_in_order_how_full_how_sure_of_what_what_is_amiss_what_next() -> None:
    context_usage = figures_of({"tools": 4_000, "user": 14_000}, 40_000, 4_000, "learned")
    sections = tuple(msgspec.structs.replace(s, budget=3_000 * (s.name == "tools")) for s in context_usage.sections)
    context_usage = msgspec.structs.replace(
        context_usage, band=0.06, sections=sections, claimed_window=128_000, forecast_span=(4, 9)
    )
    assert sentence(context_usage) == (
        "The context is 50 % full, give or take 3 percent: about 18.0k of 36.0k tokens. 4.0k more are reserved for the reply, "
        "in a window of 40.0k, learned from a rejection instead of 128.0k. Largest: you 14.0k, tools 4.0k. "
        "Tools 4.0k: 1.0k over the budget of 3.0k. Compaction starts after 9.0k more. About 4–9 turns until compaction."
    )


def test_it_reads_without_colour() -> None:
    tokens = dict.fromkeys(INSIDE, 1_000)
    assert bar_text(layout_bar(figures_of(tokens, 40_000, 4_000), 40)) == "STMIΣPUAR~········╎········╷········▒▒▒▒"
    assert (
        bar_text(layout_bar(figures_of({"user": 9_000}, 40_000, 4_000), 40, 4_000))
        == "UUUUuuuuu·········╎········╷········▒▒▒▒"
    )


@given(any_figures(), st.integers(4, 300))
def test_the_words_fit_and_the_percentage_always_shows(context_usage: ContextUsage, width: int) -> None:
    text = words_beside(context_usage, width)
    assert len(text) <= width
    if width >= 20:
        assert "%" in text or (uncounted(context_usage) and "…" in text)


class GaugeApp(PanelApp):
    def __init__(self, context_usage: ContextUsage, ghost: int = 0) -> None:
        super().__init__()
        self.context_usage, self.ghost = context_usage, ghost
        self.clicked: list[str] = []

    def compose(self) -> ComposeResult:
        yield Gauge(self.context_usage, ghost=self.ghost)

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        self.clicked.append(event.name)


@pytest.mark.parametrize("width", [20, 40, 80, 120, 5, 1])
async def test_one_line_at_any_width(width: int) -> None:
    app = GaugeApp(HarbourSession(state(20)).context_usage)
    async with app.run_test(size=(width, 5)):
        line = app.query_one(Gauge).render_line(0)
        assert line.cell_length == width == len(line.text)
        if width >= 20:
            assert line.text.rstrip().endswith(("%", "k"))


async def test_a_click_names_the_part_and_hovering_tells_its_tokens() -> None:
    app = GaugeApp(HarbourSession(state(20)).context_usage)
    async with app.run_test(size=(80, 5), tooltips=True) as pilot:
        gauge = app.query_one(Gauge)
        bar = gauge.render_line(0).text
        place = bar.index("R")
        await pilot.click(gauge, offset=(place, 0))
        await pilot.click(gauge, offset=(78, 0))  # the words beside it are no part
        assert app.clicked == ["tool_results"]
        await pilot.hover(gauge, offset=(place, 0))
        assert str(gauge.tooltip).startswith("tool results: ~")


@pytest.mark.parametrize("theme", sorted(load_themes().themes))
async def test_ticks_are_seen_wherever_they_stand(theme: str) -> None:
    part: SectionName
    for part in ("user", "assistant", "tool_results"):
        app = GaugeApp(figures_of({part: 34_000}, 40_000, 4_000))
        async with app.run_test(size=(80, 5)) as pilot:
            app.wear(theme)
            await pilot.pause()
            line = app.query_one(Gauge).render_line(0)
            ticks = [(s.text, s.style) for s in line if s.text in (TARGET, TRIGGER)]
            assert [text for text, _ in ticks] == [TARGET, TRIGGER]
            for _, style in ticks:
                assert style and style.color and style.bgcolor
                ink, ground = (c.get_truecolor().hex for c in (style.color, style.bgcolor))
                assert contrast(ink, ground) >= 4.5


async def test_due_and_over_are_told_apart_and_never_by_colour_alone() -> None:
    context_usage = figures_of({"user": 1_000}, 40_000, 4_000)
    app = GaugeApp(context_usage)
    async with app.run_test(size=(100, 5)) as pilot:
        gauge = app.query_one(Gauge)
        states = []
        for used in (
            1_000,
            context_usage.trigger_tokens - 100,
            context_usage.trigger_tokens,
            context_usage.limit + 500,
        ):
            gauge.show_usage(figures_of({"user": used}, 40_000, 4_000))
            await pilot.pause()
            states.append(({c for c in gauge.classes if c.startswith("-")}, gauge.render_line(0).text))
        assert [s[0] for s in states] == [set(), set(), {"-due"}, {"-due", "-over"}]
        assert " over " in states[3][1] and "·" not in states[3][1]


async def test_no_color_leaves_letters_alone() -> None:
    app = GaugeApp(HarbourSession(state(20)).context_usage)
    app.no_color = True
    async with app.run_test(size=(80, 5)):
        line = app.query_one(Gauge).render_line(0)
        assert len({s.style.bgcolor for s in line if s.style}) == 1, "one ground for all"
        assert "R" in line.text and "╷" in line.text


async def test_a_theme_brings_its_own_signs_and_colours() -> None:
    app = GaugeApp(figures_of({"user": 9_000}, 40_000, 4_000))
    theme = Theme("odd", "#88aaff", variables={"gauge-sign-user": str(ord("█")), "gauge-user": "#123456"})
    async with app.run_test(size=(80, 5)) as pilot:
        app.register_theme(theme)
        app.theme = "odd"
        await pilot.pause()
        first = next(iter(app.query_one(Gauge).render_line(0)))
        assert first.text.startswith("██") and first.style is not None
        assert first.style.bgcolor is not None and first.style.bgcolor.name == "#123456"
