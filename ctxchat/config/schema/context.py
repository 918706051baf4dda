"""What the model is shown, and the marks at which room is made."""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Literal

from msgspec import Meta

from ctxchat.config.schema.compaction import Emergency, Prepare, Reactive, SummaryModel, ToolResults
from ctxchat.config.schema.option import PROVIDERS, Table, opt
from ctxchat.core.compilers import ConversationSection
from ctxchat.core.options import USUAL


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
            "The window to reckon with; 0 detects what the model really has.",
            unit="tokens",
            effect="Lower than the real window: compaction comes earlier, calls cost less.",
            ge=0,
            le=100_000_000,
        ),
    ] = 0
    output_reserved: Annotated[
        int,
        opt(
            "Kept free for the reply, at most a quarter of the window.",
            unit="tokens",
            effect="More: longer replies are safe, less room for the conversation.",
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
            effect="Lower: more is put away at once, longer until the next time.",
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
        Literal["auto", "ask", "off"],
        opt(
            "Compact by itself, ask first, or never. A request the server refuses as too long is mended in every mode."
        ),
    ] = USUAL.consent
    min_messages: Annotated[int, opt("No compaction by itself below this.", unit="messages", ge=1, le=10_000)] = (
        USUAL.min_messages
    )
    compiler: Annotated[
        Literal["all_sections", "current_tool_trace"] | Annotated[tuple[ConversationSection, ...], Meta(min_length=1)],
        opt("What of the conversation the model sees: all, tool calls of the current turn only, or chosen sections."),
    ] = "all_sections"
    shown_tokens: Annotated[
        int,
        opt(
            "At most so much of the conversation is shown, the newest; 0 for all.", unit="tokens", ge=0, le=100_000_000
        ),
    ] = 0
    redact: Annotated[
        tuple[str, ...],
        opt("Regular expressions: what they match in the conversation is `[redacted]` to the model.", trust=True),
    ] = ()
    inject: Annotated[
        tuple[str, ...], opt("Notes that stand before the messages in each request, after the summary.", trust=True)
    ] = ()
    providers: Annotated[
        tuple[str, ...],
        opt(
            "What is put in anew with each request, in this order; what changes most comes last.",
            names="providers",
            trust=True,
        ),
    ] = PROVIDERS
    transforms: Annotated[
        tuple[str, ...],
        opt("What edits each request before it is sent, left to right.", names="transforms", trust=True),
    ] = ()
    summary_model: Annotated[SummaryModel, opt("Who writes summaries.", trust=True)] = SummaryModel()
    reactive: Annotated[Reactive, opt("Compaction between the rounds of one long turn.")] = Reactive()
    tool_results: Annotated[ToolResults, opt("What becomes of the results of tools.")] = ToolResults()
    emergency: Annotated[Emergency, opt("When a server refuses a request as too long.")] = Emergency()
    prepare: Annotated[Prepare, opt("Summaries made ahead, beside your typing.")] = Prepare()
    sections: Annotated[dict[BudgetSection, SectionSettings], opt("Budgets of single sections, by name.")] = {}
