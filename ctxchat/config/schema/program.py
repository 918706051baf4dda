"""Models, tools, permissions and the screen."""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Any, Literal

from msgspec import Meta

from ctxchat.config.keys import Preset
from ctxchat.config.schema.option import Table, opt
from ctxchat.core.options import USUAL
from ctxchat.core.permissions import Mode

Transport = Literal["auto", "litellm"]


class ModelTable(Table, frozen=True):
    """One model, by litellm's name of it."""

    api_base: Annotated[str, opt("Address of the server, for a local or compatible one.")] = ""
    api_key_env: Annotated[str, opt("Environment variable that holds the key; empty for the provider's usual one.")] = (
        ""
    )
    window: Annotated[int, opt("How much it can hold; 0 asks the server.", unit="tokens", ge=0, le=100_000_000)] = 0
    max_output: Annotated[
        int, opt("Its longest reply; 0 for `context.max_output`.", unit="tokens", ge=0, le=10_000_000)
    ] = 0
    effort: Annotated[
        str,
        opt(
            "How much it thinks: one of its own levels, such as `low` or `high`; empty for its usual one.",
            rewrites="all",
        ),
    ] = ""
    timeout: Annotated[
        float, opt("How long to wait for the next piece of a reply.", unit="seconds", ge=1, le=86_400)
    ] = 300.0
    retries: Annotated[
        int, opt("How often a call is tried again after a passing failure.", unit="calls", ge=0, le=20)
    ] = USUAL.retries
    fallback: Annotated[str, opt("Model to go on with when this one cannot be reached.")] = ""
    keep_reasoning: Annotated[
        bool | None,
        opt(
            "Send reasoning back with the calls it led to; left out, the provider's habit decides.", rewrites="messages"
        ),
    ] = None
    vision: Annotated[
        bool | None, opt("It takes images; left out, they are sent where litellm's catalogue or the server says so.")
    ] = None
    extra: Annotated[dict[str, Any], opt("More parameters, sent as they are, or as litellm translates them.")] = {}
    transport: Annotated[
        Transport,
        opt(
            "`auto` speaks to servers of OpenAI's and Anthropic's forms directly and to all others through litellm; `litellm` "
            "always through it."
        ),
    ] = "auto"


class Permissions(Table, frozen=True):
    """What the agent may do without asking."""

    mode: Annotated[
        Mode,
        opt(
            "`ask`, `read-only`, `plan` (reading only, commands that only read included), `auto-edit` (writing inside the folder "
            "is free), or `all`.",
        ),
    ] = "ask"
    rules: Annotated[
        tuple[
            Annotated[str, Meta(pattern=r"^\s*(deny\s+)?[^:\s]+\s*:\s*\S", examples=["shell: uv run pytest **"])], ...
        ],
        opt(
            "What is allowed without asking, as `tool: pattern` (`shell: uv run pytest **`, `write_file: src/*`), or forbidden "
            "in every mode (`deny shell: rm **`). `*` stays within a folder and a word, `**` does not.",
            append=True,
        ),
    ] = ()
    ask: Annotated[
        Literal["changes", "everything"],
        opt(
            "`changes`: a command that only reads in the folder runs without a question where there is a sandbox; `everything`: "
            "each command that no rule allows asks.",
            trust=True,
            counts="from the next start on",
        ),
    ] = "changes"
    sandbox: Annotated[
        bool,
        opt(
            "Run shell commands in the system's sandbox where there is one.",
            counts="from the next start on",
        ),
    ] = True
    network: Annotated[
        bool,
        opt(
            "Let every shell command in the sandbox reach the network, without a question.",
            counts="from the next start on",
        ),
    ] = False
    writable: Annotated[
        tuple[str, ...],
        opt(
            "Folders outside the workspace that shell commands in the sandbox may write in (`~/.cache/uv`).",
            append=True,
            counts="from the next start on",
        ),
    ] = ()
    readable: Annotated[
        tuple[str, ...],
        opt(
            "Files and folders in the home folder that shell commands in the sandbox may read, besides toolchains (`~/data`).",
            trust=True,
            append=True,
            counts="from the next start on",
        ),
    ] = ()


class Storage(Table, frozen=True):
    """What is kept."""

    backups: Annotated[
        int, opt("Daily copies of the store that are kept under `backups`; 0 makes none.", unit="copies", ge=0, le=100)
    ] = 3
    backups_mb: Annotated[
        int,
        opt(
            "All of them together at most; a store that is larger alone is not copied.",
            unit="megabytes",
            ge=1,
            le=1_000_000,
        ),
    ] = 1_000


class SessionSettings(Table, frozen=True):
    """Where sessions come from."""

    follow: Annotated[
        bool,
        opt(
            "While the interface is open, bring in new and grown sessions of other agents on this machine "
            "(`ctxchat sessions import --follow` switches it on, and says what it does).",
            own=True,
        ),
    ] = False


class LimitSettings(Table, frozen=True):
    """What may be spent. A call that could pass a limit is not made; 0 is no limit."""

    turn: Annotated[float, opt("For one turn, its summaries and sub-agents included.", unit="US dollars", ge=0)] = 0.0
    session: Annotated[float, opt("For one session and its sub-agents.", unit="US dollars", ge=0)] = 0.0
    day: Annotated[float, opt("For all sessions of a day (UTC).", unit="US dollars", ge=0)] = 0.0
    turn_tokens: Annotated[int, opt("Of prompts and replies together, for one turn.", unit="tokens", ge=0)] = 0
    session_tokens: Annotated[int, opt("The same for one session, from when it was opened.", unit="tokens", ge=0)] = 0
    task: Annotated[float, opt("For one task of a sub-agent.", unit="US dollars", ge=0)] = 0.0
    task_tokens: Annotated[
        int, opt("Of prompts and replies together, for one task of a sub-agent.", unit="tokens", ge=0)
    ] = 0
    task_seconds: Annotated[
        float,
        opt("A sub-agent is stopped after this, the time not counted that it waits for you.", unit="seconds", ge=0),
    ] = 0.0


class ToolSettings(Table, frozen=True):
    """The agent's tools."""

    mcp_wait: Annotated[
        float,
        opt(
            "How long a turn that nobody sits before waits for MCP servers; the tools of a later one join between two rounds.",
            unit="seconds",
            ge=0,
            le=60,
        ),
    ] = 2.0
    shell_timeout: Annotated[
        float,
        opt(
            "A command is ended after this, unless the call names another time (600 at most, or this).",
            unit="seconds",
            ge=1,
            le=86_400,
        ),
    ] = 120.0
    max_output_chars: Annotated[
        int,
        opt("Most characters taken from one tool call; the rest is cut off at the source.", ge=1000, le=100_000_000),
    ] = 400_000
    max_rounds: Annotated[int, opt("Most model calls in one turn.", unit="rounds", ge=1, le=10_000)] = USUAL.max_rounds
    web: Annotated[bool, opt("Offer the tool that fetches web pages.", rewrites="all")] = True


class SecretSettings(Table, frozen=True):
    """Secrets in what tools bring back."""

    mask: Annotated[
        bool,
        opt(
            "Mask secrets in what tools bring back, before a model or the record sees them.",
        ),
    ] = True
    allow: Annotated[
        tuple[str, ...],
        opt(
            "False alarms, left as they are: ids as marks show them (`3f9a12cd`), or patterns of whole values (`*`: anything).",
            append=True,
        ),
    ] = ()


class Interface(Table, frozen=True):
    """The screen."""

    show_reasoning: Annotated[bool, opt("Unfold what the model thinks while it thinks.")] = False
    notifications: Annotated[bool, opt("Tell the terminal when long work is done or an answer is asked for.")] = True
    titles: Annotated[
        Literal["words", "model"],
        opt(
            "What sessions are called: by their first words, or as the model names them after the first answer.",
            trust=True,
        ),
    ] = "words"
    bell: Annotated[bool, opt("Ring the terminal's bell with it.")] = False
    mouse: Annotated[
        bool, opt("Take the mouse; off, the terminal selects text as usual.", counts="from the next start on")
    ] = True
    editor: Annotated[str, opt("Your editor's command; empty for $VISUAL or $EDITOR.", trust=True)] = ""
    editing: Annotated[
        Literal["usual", "vi"],
        opt(
            "How messages are edited: `vi` has vi's normal mode, which esc begins; one more esc does what esc does else.",
            trust=True,
        ),
    ] = "usual"
    keys: Annotated[Preset, opt("The set of keys that `[keys]` builds on.", trust=True)] = "standard"
