"""Whether an error means that the prompt did not fit the context window, and what the refusal tells of sizes.

`verdict` decides; `reading` gathers what an error says; `wordings` and `denials` know the words in which servers say that a
prompt is too long, or that something else is wrong; `sizes` reads the numbers. Imports no provider's library; never raises.
"""

from ctxchat.core.overflow.verdict import (
    is_context_overflow,
    output_excess,
    overflow_code,
    stated_prompt,
    stated_window,
)

__all__ = ["is_context_overflow", "output_excess", "overflow_code", "stated_prompt", "stated_window"]
