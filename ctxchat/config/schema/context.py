"""What the model is shown; when room is made and how: inside a turn, for tool results, after a refusal, ahead of time; who writes
summaries."""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Literal

from msgspec import Meta

from ctxchat.config.schema.option import PROVIDERS, Table, opt
from ctxchat.core.compilers import ConversationSection
from ctxchat.core.options import USUAL, AutoCold, AutoCompact


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
        int, opt("At most this many compactions in one turn; 0 for none.", unit="calls", ge=0, le=20)
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
    max_cost: Annotated[
        float,
        opt(
            "Before the trigger a summary is made ahead only where it costs at most so much.",
            unit="US dollars",
            effect="More: also in large windows of dear models, whether it is needed then or not.",
            ge=0.0,
            le=1_000.0,
        ),
    ] = USUAL.prepare_cost


class SectionSettings(Table, frozen=True):
    """One section of the window."""

    budget: Annotated[
        int, opt("Above this the section turns amber; 0 for no budget.", unit="tokens", ge=0, le=100_000_000)
    ] = 0


BudgetSection = Literal[
    "system", "tools", "memory", "injected", "summary", "pinned", "user", "assistant", "tool_results", "draft"
]


class ContextSettings(Table, frozen=True):
    """What the model is shown, and when room is made."""

    max_tokens: Annotated[
        int,
        opt(
            "The window to count with; 0 detects what the model really has.",
            unit="tokens",
            effect="Lower than the real window: compaction comes earlier, calls cost less.",
            ge=0,
            le=100_000_000,
        ),
    ] = 0
    max_output: Annotated[
        int,
        opt(
            "Longest reply, thoughts included; 0 leaves it to the model. What the model can write, and what is left of its "
            "window, may be less.",
            unit="tokens",
            effect="More: longer replies and calls in one piece.",
            ge=0,
            le=10_000_000,
        ),
    ] = 32_000
    output_reserved: Annotated[
        int,
        opt(
            "Planned for the reply: the conversation leaves so much of the window free, at most a quarter of it. How long a "
            "reply may be, `max_output` says.",
            unit="tokens",
            effect="More: room for longer replies, less for the conversation.",
            ge=0,
            le=10_000_000,
        ),
    ] = USUAL.output_reserved
    strategy: Annotated[str, opt("How room is made.", names="strategies")] = USUAL.strategy
    keep_recent: Annotated[
        int,
        opt(
            "Newest messages that stay as they are; the cut moves back so that calls and their results stay together.",
            unit="messages",
            effect="More: the recent talk stays word for word, each compaction frees less.",
            ge=1,
            le=10_000,
        ),
    ] = USUAL.keep_recent
    keep_turns: Annotated[
        int,
        opt(
            "Newest turns that the strategy `sliding_window` leaves in view.",
            unit="turns",
            effect="More: more of the talk stays, each compaction frees less.",
            ge=1,
            le=1000,
        ),
    ] = USUAL.keep_turns
    working_limit: Annotated[
        int,
        opt(
            "Compaction is due here, though the window would hold more; 0 for where the model's price rises with the length of a "
            "request, but 272,000 at most in a window of more than 400,000.",
            unit="tokens",
            effect="Lower: requests are cheaper and quicker, compaction comes earlier. As large as the window: it may be filled.",
            ge=0,
            le=100_000_000,
        ),
    ] = USUAL.working_limit
    compression_trigger: Annotated[
        float,
        opt(
            "Compaction starts here (and 13,000 tokens, or a quarter of the limit, before the end at the latest).",
            unit="share of the limit",
            effect="Higher: fewer compactions, less room when one is due.",
            ge=0.1,
            le=0.98,
        ),
    ] = USUAL.compression_trigger
    target: Annotated[
        float,
        opt(
            "Compaction frees down to here.",
            unit="share of the limit",
            effect="Lower: more is archived at once, longer until the next time.",
            ge=0.05,
            le=0.95,
        ),
    ] = USUAL.target
    summary_max_tokens: Annotated[
        int,
        opt(
            "Longest summary; an eighth of the limit at most, less where little is folded or the target leaves less room.",
            unit="tokens",
            effect="More: more is remembered, less is freed.",
            ge=200,
            le=100_000,
        ),
    ] = USUAL.summary_max_tokens
    facts_max_tokens: Annotated[
        int,
        opt(
            "What stays word for word beside a summary, your messages and facts; an eighth of the limit at most, less where the "
            "target leaves less room.",
            unit="tokens",
            effect="More: more is known exactly, less is freed.",
            ge=200,
            le=100_000,
        ),
    ] = USUAL.facts_max_tokens
    working_set: Annotated[
        float,
        opt(
            "What files touched last may take after a compaction, shown as they are on disk now; 0 for none.",
            unit="share of the limit",
            effect="More: fewer files are read again, each compaction frees less.",
            ge=0.0,
            le=0.5,
        ),
    ] = USUAL.working_set
    auto_compact: Annotated[
        AutoCompact,
        opt(
            "Compact by itself, ask first, or never. A request the server refuses as too long is made smaller in every mode."
        ),
    ] = USUAL.auto_compact
    auto_cold: Annotated[
        AutoCold,
        opt(
            "When the server no longer holds the conversation and a summary stands ready: say what both ways cost under the "
            "message and leave it to you, put the summary in first, or send without a word."
        ),
    ] = USUAL.auto_cold
    min_messages: Annotated[int, opt("No compaction by itself below this.", unit="messages", ge=1, le=10_000)] = (
        USUAL.min_messages
    )
    compiler: Annotated[
        Literal["all_sections", "current_tool_trace"] | Annotated[tuple[ConversationSection, ...], Meta(min_length=1)],
        opt(
            "What of the conversation the model sees: all, tool calls of the current turn only, or chosen sections.",
            rewrites="messages",
        ),
    ] = "all_sections"
    shown_tokens: Annotated[
        int,
        opt(
            "At most so much of the conversation is shown, the newest; 0 for all.",
            unit="tokens",
            rewrites="messages",
            ge=0,
            le=100_000_000,
        ),
    ] = 0
    redact: Annotated[
        tuple[str, ...],
        opt(
            "Regular expressions: what they match in the conversation is `[redacted]` to the model.",
            rewrites="messages",
        ),
    ] = ()
    inject: Annotated[
        tuple[str, ...],
        opt("Notes that the model reads before the first message; what changes is told with your next one."),
    ] = ()
    providers: Annotated[
        tuple[str, ...],
        opt(
            "What stands around, in this order: told before the first message, and what changes of it with your next one.",
            names="providers",
        ),
    ] = PROVIDERS
    transforms: Annotated[
        tuple[str, ...],
        opt("What edits each request before it is sent, left to right.", names="transforms", rewrites="messages"),
    ] = ()
    provider_compaction: Annotated[
        bool,
        opt(
            "Have summaries written by the provider's own compaction, where its text can be read (Anthropic's); where it is "
            "refused, and where the server holds nothing, as usual."
        ),
    ] = False
    summary_model: Annotated[SummaryModel, opt("Who writes summaries.")] = SummaryModel()
    reactive: Annotated[Reactive, opt("Compaction between the rounds of one long turn.")] = Reactive()
    tool_results: Annotated[ToolResults, opt("What becomes of the results of tools.")] = ToolResults()
    emergency: Annotated[Emergency, opt("When a server refuses a request as too long.")] = Emergency()
    prepare: Annotated[Prepare, opt("Summaries made ahead, beside your typing.")] = Prepare()
    sections: Annotated[dict[BudgetSection, SectionSettings], opt("Budgets of single sections, by name.")] = {}
