"""Recognises an overflow: an error by which a server says that a prompt did not fit the context window; and reads from it the
sizes that it names. There is no standard for such errors, so this goes by their wording.

`reading` gathers what an error says, `wordings` has the texts by which servers say that a prompt is too long, `denials` those
that mean something else, `sizes` reads numbers, and `verdict` decides. Imports no provider's library; never raises.
"""

from ctxchat.core.overflow.verdict import (
    is_context_overflow,
    output_excess,
    overflow_code,
    stated_prompt,
    stated_window,
)

__all__ = ["is_context_overflow", "output_excess", "overflow_code", "stated_prompt", "stated_window"]
