"""Every option once: its key, type, range, default, unit, help and effect, as the typed `Settings` the program reads.

The shipped reference, validation, the documentation's table and the editors' JSON Schema are all made from these types.
Knows no file.
"""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ctxchat.config.keys import ActionId, Preset
from ctxchat.core.access import Mode
from ctxchat.core.compilers import ConversationSection
from ctxchat.core.hooks import HookEvent

Unit = Literal[
    "", "tokens", "messages", "share of the limit", "seconds", "turns", "rounds", "results", "groups", "calls"
]
Names = Literal["strategies", "providers", "transforms", "tools"]

OWN_NAMES: dict[str, tuple[str, ...]] = {
    "strategies": (
        "truncate",
        "summarize",
        "sliding_window",
        "drop_tool_calls",
        "shrink_tool_results",
        "drop_superseded",
        "strip_reasoning",
        "token_budget",
        "pipeline",
    ),
    "providers": ("skills", "workspace", "identity"),
    "transforms": (),
}
"""The open lists as they come with the program; plug-ins add to them. Tools are known to the agent only."""


def opt(
    help: str,
    *,
    unit: Unit = "",
    effect: str = "",
    trust: bool = False,
    append: bool = False,
    names: Names | None = None,
    partial: type | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> Meta:
    """The description of one option.

    `effect` says what more or less of it does. `trust`: in a project's file it counts in a trusted folder only.
    `append`: layers add to it instead of replacing it. `names`: the open list its words come from (plug-ins add to it).
    `partial`: a free table that holds any options of this one.
    """
    extra = {"unit": unit, "effect": effect, "trust": trust, "append": append, "names": names, "partial": partial}
    limits: dict[str, Any] = {k: v for k, v in (("ge", ge), ("le", le)) if v is not None}
    return Meta(description=help, extra=extra, **limits)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all tables of the settings have in common."""


# ── models ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class ModelSettings(Table, frozen=True):
    """One model, by litellm's name of it."""

    api_base: Annotated[str, opt("Address of the server, for a local or compatible one.")] = ""
    api_key_env: Annotated[str, opt("Environment variable that holds the key; empty for the provider's usual one.")] = (
        ""
    )
    window: Annotated[int, opt("How much it can hold; 0 asks the server.", unit="tokens", ge=0, le=100_000_000)] = 0
    max_output: Annotated[int, opt("Longest reply; 0 leaves it to the model.", unit="tokens", ge=0, le=10_000_000)] = 0
    timeout: Annotated[
        float, opt("How long to wait for the next piece of a reply.", unit="seconds", ge=1, le=86_400)
    ] = 300.0
    retries: Annotated[
        int, opt("How often a call is tried again after a passing failure.", unit="calls", ge=0, le=20)
    ] = 4
    fallback: Annotated[str, opt("Model to go on with when this one cannot be reached.")] = ""
    keep_reasoning: Annotated[
        bool | None, opt("Send reasoning back with the calls it led to; left out, the provider's habit decides.")
    ] = None
    extra: Annotated[dict[str, Any], opt("More parameters, handed to litellm as they are.")] = {}


class SummaryModel(Table, frozen=True):
    """Who writes summaries."""

    name: Annotated[str, opt("Model that writes summaries; empty for the one you chat with.")] = ""
    api_base: Annotated[str, opt("Address of its server.")] = ""
    api_key_env: Annotated[str, opt("Environment variable that holds its key.")] = ""
    window: Annotated[int, opt("How much it can hold; 0 asks the server.", unit="tokens", ge=0, le=100_000_000)] = 0


# ── context ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Reactive(Table, frozen=True):
    """Compaction between the rounds of one long turn."""

    enabled: Annotated[bool, opt("Compact inside a turn as well.")] = True
    micro_trigger: Annotated[
        float,
        opt(
            "From here on the oldest rounds of the turn are folded.",
            unit="share of the limit",
            effect="Higher: fewer interruptions of the cache, less room for the next result.",
            ge=0.1,
            le=0.99,
        ),
    ] = 0.85
    full_trigger: Annotated[
        float,
        opt(
            "From here on everything foldable before the newest rounds is folded.",
            unit="share of the limit",
            effect="Higher: later, at the risk that the server refuses the request.",
            ge=0.1,
            le=0.99,
        ),
    ] = 0.92
    preserve_recent_rounds: Annotated[int, opt("Newest rounds that are never folded.", unit="rounds", ge=1, le=100)] = 2
    micro_batch_groups: Annotated[int, opt("Rounds folded in one small step.", unit="groups", ge=1, le=100)] = 4
    max_per_turn: Annotated[
        int, opt("At most this many passes in one turn; 0 for none.", unit="calls", ge=0, le=20)
    ] = 3


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
    ] = 8000
    keep_recent: Annotated[
        int, opt("Newest results that stay whole when older ones are shrunk.", unit="results", ge=0, le=1000)
    ] = 4
    max_recent_tokens: Annotated[
        int, opt("What those newest results may hold together; 0 for no cap.", unit="tokens", ge=0, le=10_000_000)
    ] = 0


class Emergency(Table, frozen=True):
    """When a server refuses a request as too long."""

    keep_floor: Annotated[int, opt("`keep_recent` is never halved below this.", unit="messages", ge=1, le=1000)] = 4
    max_calls: Annotated[int, opt("At most this many calls before the error is shown.", unit="calls", ge=1, le=10)] = 3


class Prepare(Table, frozen=True):
    """Summaries made ahead, beside your typing."""

    enabled: Annotated[bool, opt("Make the summary before it is needed, so that nobody waits for it.")] = True
    soft_mark: Annotated[
        float,
        opt(
            "From here on a summary is made ahead.",
            unit="share of the limit",
            effect="Lower: ready earlier, made more often.",
            ge=0.1,
            le=0.99,
        ),
    ] = 0.60


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
    ] = 4096
    strategy: Annotated[str, opt("How room is made.", names="strategies")] = "pipeline"
    keep_recent: Annotated[
        int,
        opt(
            "Newest messages that stay as they are; the cut moves back so that calls and their results stay together.",
            unit="messages",
            effect="More: the recent talk stays word for word, each compaction frees less.",
            ge=1,
            le=10_000,
        ),
    ] = 12
    compression_trigger: Annotated[
        float,
        opt(
            "Compaction starts here (and 13,000 tokens, or a quarter of the limit, before the end at the latest).",
            unit="share of the limit",
            effect="Higher: fewer compactions, less room when one is due.",
            ge=0.1,
            le=0.98,
        ),
    ] = 0.75
    target: Annotated[
        float,
        opt(
            "Compaction frees down to here.",
            unit="share of the limit",
            effect="Lower: more is put away at once, longer until the next time.",
            ge=0.05,
            le=0.95,
        ),
    ] = 0.50
    summary_max_tokens: Annotated[
        int,
        opt("Longest summary.", unit="tokens", effect="More: more is remembered, less is freed.", ge=200, le=100_000),
    ] = 2000
    auto_compact: Annotated[
        Literal["auto", "ask", "off"],
        opt(
            "Compact by itself, ask first, or never. A request the server refuses as too long is mended in every mode."
        ),
    ] = "auto"
    min_messages: Annotated[int, opt("No compaction by itself below this.", unit="messages", ge=1, le=10_000)] = 4
    compiler: Annotated[
        Literal["all_sections", "current_tool_trace"] | Annotated[tuple[ConversationSection, ...], Meta(min_length=1)],
        opt("What of the conversation the model sees: all, tool calls of the current turn only, or chosen sections."),
    ] = "all_sections"
    providers: Annotated[
        tuple[str, ...],
        opt(
            "What is put in anew with each request, in this order; what changes most comes last.",
            names="providers",
            trust=True,
        ),
    ] = OWN_NAMES["providers"]
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


# ── tools, permissions, interface ───────────────────────────────────────────────────────────────────────────────────


class Permissions(Table, frozen=True):
    """What the agent may do without asking."""

    mode: Annotated[
        Mode, opt("`ask`, `read-only`, `auto-edit` (writing inside the folder is free), or `all`.", trust=True)
    ] = "ask"
    rules: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^\s*[^:\s]+\s*:\s*\S", examples=["shell: git status*"])], ...],
        opt("What is allowed without asking, as `tool: pattern` (`shell: git status*`).", trust=True, append=True),
    ] = ()
    sandbox: Annotated[bool, opt("Run shell commands in the system's sandbox where there is one.", trust=True)] = True


class ToolSettings(Table, frozen=True):
    """The agent's tools."""

    shell_timeout: Annotated[float, opt("A command is ended after this.", unit="seconds", ge=1, le=86_400)] = 120.0
    max_output_chars: Annotated[
        int,
        opt("Most characters taken from one tool call; the rest is cut off at the source.", ge=1000, le=100_000_000),
    ] = 400_000
    max_rounds: Annotated[int, opt("Most model calls in one turn.", unit="rounds", ge=1, le=10_000)] = 60
    web: Annotated[bool, opt("Offer the tool that fetches web pages.")] = True


class Interface(Table, frozen=True):
    """The screen."""

    show_reasoning: Annotated[bool, opt("Unfold what the model thinks while it thinks.")] = False
    notifications: Annotated[bool, opt("Tell the terminal when long work is done or an answer is asked for.")] = True
    bell: Annotated[bool, opt("Ring the terminal's bell with it.")] = False
    mouse: Annotated[bool, opt("Take the mouse; off, the terminal selects text as usual.")] = True
    editor: Annotated[str, opt("Your editor's command; empty for $VISUAL or $EDITOR.", trust=True)] = ""
    keys: Annotated[Preset, opt("The set of keys that `[keys]` builds on.")] = "standard"


# ── agents, hooks, servers ──────────────────────────────────────────────────────────────────────────────────────────


class AgentSettings(Table, frozen=True):
    """An agent of your own. What is left out (None) falls back to the application's."""

    description: Annotated[str, opt("When it is the right one, in a sentence.")] = ""
    model: Annotated[str | None, opt("Its model.")] = None
    prompt: Annotated[str | None, opt("Its instructions, in place of the usual ones.")] = None
    tools: Annotated[tuple[str, ...] | None, opt("Its tools, by name; an empty list for none.", names="tools")] = None
    permissions: Annotated[Mode | None, opt("Its permission mode.")] = None
    context: Annotated[
        dict[str, Any], opt("Any option of [context], for this agent only.", partial=ContextSettings)
    ] = {}


AtLeast = Annotated[int, Meta(ge=0)]


class Condition(Table, frozen=True, rename={"not_": "not"}):
    """All that is given must hold. Numbers mean `at least`."""

    context_pressure: Annotated[
        Annotated[float, Meta(ge=0, le=10)] | None, opt("Used / limit.", unit="share of the limit")
    ] = None
    turn_count: Annotated[AtLeast | None, opt("Turns of the session.", unit="turns")] = None
    tool_calls: Annotated[AtLeast | None, opt("Tool calls of the turn.", unit="calls")] = None
    message_count: Annotated[AtLeast | None, opt("Messages of the conversation in view.", unit="messages")] = None
    tool_name: Annotated[str | None, opt("Name of the tool, with wildcards.")] = None
    all_of: Annotated[tuple["Condition", ...] | None, opt("Each of these.")] = None
    any_of: Annotated[tuple["Condition", ...] | None, opt("At least one of these.")] = None
    not_: Annotated["Condition | None", opt("Not this.")] = None


class HookSettings(Table, frozen=True):
    """Something to do when something happens."""

    event: Annotated[HookEvent, opt("When.")]
    action: Annotated[Literal["compact_context", "run", "notify", "inject"], opt("What to do.")]
    name: Annotated[str, opt("What it is called in notices.")] = ""
    when: Annotated[Condition, opt("Only if.")] = Condition()
    command: Annotated[str, opt("`run`: the command line; the event comes as JSON on its standard input.")] = ""
    show_output: Annotated[bool, opt("`run`: what it prints goes to the model as a note.")] = False
    text: Annotated[str, opt("`notify` and `inject`: the words.")] = ""
    strategy: Annotated[str, opt("`compact_context`: another strategy than usual.", names="strategies")] = ""
    instructions: Annotated[str, opt("`compact_context`: what the summary should heed.")] = ""
    cooldown: Annotated[int, opt("Turns it rests after it did something.", unit="turns", ge=0, le=10_000)] = 0
    max_fires: Annotated[int, opt("How often in a session; 0 for no end.", unit="calls", ge=0)] = 0
    priority: Annotated[int, opt("Higher goes first.", ge=-1000, le=1000)] = 0
    timeout: Annotated[float, opt("`run`: ended after this.", unit="seconds", ge=0.1, le=3600)] = 30.0
    enabled: Annotated[bool, opt("Off keeps it in the file without effect.")] = True


class McpSettings(Table, frozen=True):
    """One MCP server: started by `command`, or reached at `url`."""

    command: Annotated[str, opt("Program to start, spoken to over standard input and output.")] = ""
    args: Annotated[tuple[str, ...], opt("Its arguments.")] = ()
    env: Annotated[dict[str, str], opt("More environment variables for it.")] = {}
    cwd: Annotated[str, opt("Folder to start it in; empty for the workspace.")] = ""
    url: Annotated[str, opt("Address of a server over streamable HTTP.")] = ""
    headers: Annotated[dict[str, str], opt("Headers to send.")] = {}
    headers_env: Annotated[
        dict[str, str], opt("Headers whose value is in an environment variable (header = variable).")
    ] = {}
    tools: Annotated[tuple[str, ...] | None, opt("Only these of its tools; left out, all.")] = None
    enabled: Annotated[bool, opt("Off keeps it in the file without effect.")] = True
    timeout: Annotated[float, opt("How long one call may take.", unit="seconds", ge=1, le=3600)] = 60.0


# ── all of it ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Settings(Table, frozen=True):
    """Everything, as it is in force."""

    model: Annotated[
        str,
        opt(
            "Model to chat with, by litellm's name; empty looks around, and answers offline if nothing is found.",
            trust=True,
        ),
    ] = ""
    theme: Annotated[str, opt("Name of a theme, ours or one in your `themes` folder.")] = "dark"
    agent: Annotated[str, opt("Name of the agent of [agents] to start with; empty for the usual one.", trust=True)] = ""
    models: Annotated[dict[str, ModelSettings], opt("Single models, by litellm's name.", trust=True)] = {}
    context: Annotated[ContextSettings, opt("What the model is shown, and when room is made.")] = ContextSettings()
    permissions: Annotated[Permissions, opt("What the agent may do without asking.")] = Permissions()
    tools: Annotated[ToolSettings, opt("The agent's tools.")] = ToolSettings()
    interface: Annotated[Interface, opt("The screen.")] = Interface()
    keys: Annotated[
        dict[ActionId, str | tuple[str, ...]], opt("Keys of single actions; an empty list takes an action's keys away.")
    ] = {}
    agents: Annotated[dict[str, AgentSettings], opt("Agents of your own, by name.", trust=True)] = {}
    hooks: Annotated[tuple[HookSettings, ...], opt("What to do when something happens.", trust=True, append=True)] = ()
    mcp: Annotated[dict[str, McpSettings], opt("MCP servers, by name.", trust=True)] = {}

    def of_model(self, name: str) -> ModelSettings:
        """The settings of one model; the defaults where it has none."""
        return self.models.get(name, ModelSettings())


DEFAULTS = Settings()
