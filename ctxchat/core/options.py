"""How an agent behaves, as one frozen value with its defaults: settings, agent and strategies take theirs from here."""

from __future__ import annotations

from typing import Literal

import msgspec

AutoCompact = Literal["auto", "ask", "off"]

AutoCold = Literal["ask", "compact", "send"]
"""What becomes of a message where the server holds nothing any more and a summary stands ready."""


class StrategyOptions(msgspec.Struct, frozen=True):
    """What strategies go by. Sizes in tokens.

    `keep_recent` messages at the end stay as they are; `keep_turns` is the same for the sliding window. `summary_max_tokens` and
    `facts_max_tokens` cap what takes the place of folded groups (small windows get less). The newest `recent_results` stay whole
    when older ones are shrunk, as far as they hold no more than `recent_result_tokens` together (0 for no cap).
    `micro_batch_groups` go at a time inside a long turn, and its newest `preserve_recent_rounds` stay.
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
    """All of an agent. Shares are of the limit, sizes in tokens, times in seconds.

    `tool_result_tokens` caps one result in the view (and never more than a quarter of the limit); the rest goes to a file.
    `micro_trigger` and `full_trigger` act between the rounds of a turn, at most `reactive_per_turn` times. `section_budgets` are
    of single sections, by name. `working_limit` is where a compaction is due though more would fit, 0 for where the model's price
    rises first, and for `LARGE_WINDOW_LIMIT` at most in a large window.
    `prepare_cost` is what a summary made ahead may cost in US dollars.
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
"""Every option where nobody set another."""
