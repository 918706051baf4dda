"""The options of an agent and of compaction, as frozen values. Their defaults are defined here and nowhere else; the schema of
the settings reads them from here."""

from __future__ import annotations

from typing import Literal

import msgspec

AutoCompact = Literal["auto", "ask", "off"]
"""Whether a compaction that is due starts by itself, after a question, or not at all."""

AutoCold = Literal["ask", "compact", "send"]
"""What to do with a new message where the server's prompt cache has expired and a summary was prepared: ask, compact first (then
less has to be read again at full price), or send it as it is."""


class StrategyOptions(msgspec.Struct, frozen=True):
    """The options of compaction strategies. Sizes are in tokens.

    The newest `keep_recent` messages stay as they are; the strategy `sliding_window` keeps `keep_turns` turns instead.
    `summary_max_tokens` and `facts_max_tokens` limit the summary's text and the exact facts beside it (less in small windows).
    The newest `recent_results` tool results stay whole, as far as they have no more than `recent_result_tokens` together (0: no
    limit). Inside a long turn `micro_batch_groups` groups are folded at a time, and the newest `preserve_recent_rounds` rounds
    stay.
    """

    keep_recent: int = 12
    keep_turns: int = 4
    summary_max_tokens: int = 4000
    facts_max_tokens: int = 4000
    recent_results: int = 4
    recent_result_tokens: int = 0
    preserve_recent_rounds: int = 2
    micro_batch_groups: int = 4


class Options(StrategyOptions, frozen=True):
    """All options of an agent; the settings (`config.schema`) describe each for people. Shares are of the limit (the window less
    `output_reserved`), sizes in tokens, times in seconds.

    `tool_result_tokens` limits a single result in the view, which never gets more than a quarter of the limit; the full text goes
    to a file. `micro_trigger` and `full_trigger` start a compaction between the rounds of a turn, at most `reactive_per_turn`
    times. `section_budgets` limit single sections of the window, by name. `working_limit` makes a compaction due although more
    would fit; 0 means where the model's price first rises, and in a large window at most `LARGE_WINDOW_LIMIT`. `prepare_cost` is
    the most that a summary made ahead may cost, in US dollars.
    """

    output_reserved: int = 4096
    working_limit: int = 0
    compression_trigger: float = 0.75
    target: float = 0.50
    strategy: str = "pipeline"
    auto_compact: AutoCompact = "auto"
    auto_cold: AutoCold = "ask"
    min_messages: int = 4
    working_set: float = 0.05
    tool_result_tokens: int = 8000
    soft_mark: float = 0.60
    prepare: bool = True
    prepare_cost: float = 0.50
    micro_trigger: float = 0.85
    full_trigger: float = 0.92
    reactive_per_turn: int = 3
    emergency_floor: int = 4
    emergency_calls: int = 3
    max_rounds: int = 60
    retries: int = 4
    stream_figures_every: float = 0.25
    section_budgets: dict[str, int] = {}


USUAL = Options()
"""The default options."""
