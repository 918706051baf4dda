"""How and when room is made: inside a turn, for tool results, after a refusal, ahead of time; who writes summaries."""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated

from ctxchat.config.schema.option import Table, opt
from ctxchat.core.options import USUAL


class SummaryModel(Table, frozen=True):
    """Who writes summaries."""

    name: Annotated[str, opt("Model that writes summaries; empty for the one you chat with.")] = ""
    api_base: Annotated[str, opt("Address of its server.")] = ""
    api_key_env: Annotated[str, opt("Environment variable that holds its key.")] = ""
    window: Annotated[int, opt("How much it can hold; 0 asks the server.", unit="tokens", ge=0, le=100_000_000)] = 0


class Reactive(Table, frozen=True):
    """Compaction between the rounds of one long turn."""

    enabled: Annotated[bool, opt("Compact inside a turn as well.")] = True
    micro_trigger: Annotated[
        float,
        opt(
            "From here on the oldest rounds of the turn are folded.",
            unit="share of the limit",
            effect="Higher: fewer interruptions of the cache, less room for the next result.",
            ge=0.05,
            le=0.99,
        ),
    ] = USUAL.micro_trigger
    full_trigger: Annotated[
        float,
        opt(
            "From here on everything foldable before the newest rounds is folded.",
            unit="share of the limit",
            effect="Higher: later, at the risk that the server refuses the request.",
            ge=0.1,
            le=0.99,
        ),
    ] = USUAL.full_trigger
    preserve_recent_rounds: Annotated[int, opt("Newest rounds that are never folded.", unit="rounds", ge=1, le=100)] = (
        USUAL.preserve_recent_rounds
    )
    micro_batch_groups: Annotated[int, opt("Rounds folded in one small step.", unit="groups", ge=1, le=100)] = (
        USUAL.micro_batch_groups
    )
    max_per_turn: Annotated[
        int, opt("At most this many passes in one turn; 0 for none.", unit="calls", ge=0, le=20)
    ] = USUAL.reactive_per_turn


class ToolResults(Table, frozen=True):
    """What becomes of the results of tools."""

    max_tokens: Annotated[
        int,
        opt(
            "A result above this becomes its head and tail; the whole is kept in a file the agent can page through.",
            unit="tokens",
            effect="Lower: more turns fit, the agent reads large files in pieces.",
            ge=200,
            le=1_000_000,
        ),
    ] = USUAL.tool_result_tokens
    keep_recent: Annotated[
        int, opt("Newest results that stay whole when older ones are shrunk.", unit="results", ge=0, le=1000)
    ] = USUAL.recent_results
    max_recent_tokens: Annotated[
        int, opt("What those newest results may hold together; 0 for no cap.", unit="tokens", ge=0, le=10_000_000)
    ] = USUAL.recent_result_tokens


class Emergency(Table, frozen=True):
    """When a server refuses a request as too long."""

    keep_floor: Annotated[int, opt("`keep_recent` is never halved below this.", unit="messages", ge=1, le=1000)] = (
        USUAL.emergency_floor
    )
    max_calls: Annotated[int, opt("At most this many calls before the error is shown.", unit="calls", ge=1, le=10)] = (
        USUAL.emergency_calls
    )


class Prepare(Table, frozen=True):
    """Summaries made ahead, beside your typing."""

    enabled: Annotated[bool, opt("Make the summary before it is needed, so that nobody waits for it.")] = True
    soft_mark: Annotated[
        float,
        opt(
            "From here on a summary is made ahead.",
            unit="share of the limit",
            effect="Lower: ready earlier, made more often.",
            ge=0.05,
            le=0.99,
        ),
    ] = USUAL.soft_mark
