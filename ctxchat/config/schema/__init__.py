"""Every option once: its key, type, range, default, unit, help and effect, as the typed `Settings` the program reads.

The shipped reference, validation, the documentation's table and the editors' JSON Schema are all made from these types.
Knows no file.
"""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Any, Literal

from msgspec import Meta

from ctxchat.config.keys import ActionId
from ctxchat.config.schema.context import ContextSettings
from ctxchat.config.schema.option import Table, opt, own_names
from ctxchat.config.schema.program import (
    Interface,
    LimitSettings,
    ModelTable,
    Permissions,
    SecretSettings,
    SessionSettings,
    Storage,
    ToolSettings,
)
from ctxchat.core.hooks import HookEvent
from ctxchat.core.permissions import Mode

__all__ = [
    "BUILTIN_AGENTS",
    "DEFAULTS",
    "AgentSettings",
    "Condition",
    "ContextSettings",
    "HookSettings",
    "McpSettings",
    "Settings",
    "Table",
    "own_names",
]


class AgentSettings(Table, frozen=True):
    """An agent of your own. What is left out (None) falls back to the application's."""

    description: Annotated[str, opt("When it is the right one, in a sentence.")] = ""
    model: Annotated[str | None, opt("Its model.")] = None
    effort: Annotated[str | None, opt("How much its model thinks, as `models.*.effort`.", rewrites="all")] = None
    prompt: Annotated[str | None, opt("Its instructions, in place of the usual ones.", rewrites="all")] = None
    tools: Annotated[
        tuple[str, ...] | None, opt("Its tools, by name; an empty list for none.", names="tools", rewrites="all")
    ] = None
    disallowed_tools: Annotated[
        tuple[str, ...], opt("Tools it does not have, whatever `tools` says.", names="tools", rewrites="all")
    ] = ()
    skills: Annotated[tuple[str, ...], opt("Skills that it knows from its start, by name.", rewrites="all")] = ()
    permissions: Annotated[Mode | None, opt("Its permission mode.")] = None
    max_rounds: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None, opt("As `tools.max_rounds`.", unit="rounds")
    ] = None
    context: Annotated[
        dict[str, Any], opt("Any option of [context], for this agent only.", partial=ContextSettings)
    ] = {}


_READS = ("read_file", "list_files", "glob", "grep", "shell")

BUILTIN_AGENTS = {
    "explore": AgentSettings(
        description="Finds something out in the folder and says where it stands; changes nothing.",
        prompt=(
            "Find out what you are asked, in this folder. Search from several sides before you conclude, read what you find, "
            "follow names to where they are defined and used. Change nothing. Answer first, in a few sentences; then what it "
            "rests on: each fact with path and line. Say what you did not find and where you looked."
        ),
        tools=_READS,
        permissions="plan",
    ),
    "review": AgentSettings(
        description="Reviews a change or a file: what is wrong with it, the worst first; changes nothing.",
        prompt=(
            "Review what you are given; without anything named, what `git diff HEAD` shows. Read what is around each change and "
            "who calls it before you judge. Look for wrong results, lost data, security holes, races and cases left out, then "
            "for what makes it hard to change; not for taste. Change nothing. Give each finding with path and line, what happens "
            "and when, and the smallest remedy, the worst first. Say what you checked and found right, even if nothing is wrong."
        ),
        tools=_READS,
        permissions="plan",
    ),
}
"""Agents that come with the program."""

AtLeast = Annotated[int, Meta(ge=0)]


class Condition(Table, frozen=True, rename={"not_": "not"}):
    """All that is given must hold. Numbers mean `at least`."""

    context_pressure: Annotated[
        Annotated[float, Meta(ge=0, le=10)] | None, opt("Used / limit.", unit="share of the limit")
    ] = None
    turn_count: Annotated[AtLeast | None, opt("Turns of the session.", unit="turns")] = None
    tool_calls: Annotated[AtLeast | None, opt("Tool calls of the turn.", unit="calls")] = None
    message_count: Annotated[AtLeast | None, opt("Messages of the conversation in view.", unit="messages")] = None
    session_calls: Annotated[AtLeast | None, opt("Tool calls of the whole session.", unit="calls")] = None
    session_messages: Annotated[
        AtLeast | None, opt("Messages of the whole session, in view or not.", unit="messages")
    ] = None
    every: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        opt("Only in each turn of this number: 10 is the tenth, the twentieth and so on.", unit="turns"),
    ] = None
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
    sandbox: Annotated[
        bool,
        opt(
            "`run`: in the sandbox, as the model's commands; off in your own settings runs it as you. A project's stays in it."
        ),
    ] = True
    text: Annotated[str, opt("`notify` and `inject`: the words.")] = ""
    form: Annotated[
        Literal["ctxchat", "claude"],
        opt("`run`: what comes on its standard input, and what its answer means: ours, or Claude Code's hooks."),
    ] = "ctxchat"
    matcher: Annotated[
        str, opt('`form = "claude"`: only for what this matches, by Claude Code\'s names: `Bash`, `Edit|Write`.')
    ] = ""
    background: Annotated[bool, opt("`run`: nobody waits for it, and its answer decides nothing.")] = False
    strategy: Annotated[str, opt("`compact_context`: another strategy than usual.", names="strategies")] = ""
    instructions: Annotated[str, opt("`compact_context`: what the summary must keep.")] = ""
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
    client_id: Annotated[
        str, opt("For a login: the id ctxchat has at the server, where that registers no programs itself.")
    ] = ""
    client_secret_env: Annotated[
        str, opt("For a login: the environment variable with the secret that goes with it.")
    ] = ""
    issuer: Annotated[
        str,
        opt("For a login: the address of the server for logins that gets the secret; empty for the server's own."),
    ] = ""
    callback_port: Annotated[
        int,
        opt(
            "For a login: the port of this machine that the browser comes back to; 0 for any.",
            unit="port",
            ge=0,
            le=65535,
        ),
    ] = 0
    tools: Annotated[tuple[str, ...] | None, opt("Only these of its tools; left out, all.")] = None
    enabled: Annotated[bool, opt("Off keeps it in the file without effect.")] = True
    timeout: Annotated[float, opt("How long one call may take.", unit="seconds", ge=1, le=3600)] = 60.0


class Settings(Table, frozen=True):
    """Everything, as it is in force."""

    model: Annotated[
        str,
        opt(
            "Model to chat with, by litellm's name; empty looks around, and answers offline if nothing is found.",
            trust=True,
            counts="from the next session on",
        ),
    ] = ""
    theme: Annotated[str, opt("Name of a theme, ours or one in your `themes` folder.")] = "dark"
    agent: Annotated[
        str,
        opt(
            "Name of the agent of [agents] to start with; empty for the usual one.",
            trust=True,
            counts="from the next session on",
        ),
    ] = ""
    models: Annotated[dict[str, ModelTable], opt("Single models, by litellm's name.", trust=True)] = {}
    context: Annotated[ContextSettings, opt("What the model is shown, and when room is made.", trust=True)] = (
        ContextSettings()
    )
    permissions: Annotated[Permissions, opt("What the agent may do without asking.", trust=True)] = Permissions()
    tools: Annotated[ToolSettings, opt("The agent's tools.", trust=True)] = ToolSettings()
    limits: Annotated[LimitSettings, opt("What may be spent.", trust=True)] = LimitSettings()
    secrets: Annotated[SecretSettings, opt("Secrets in what tools bring back.", trust=True)] = SecretSettings()
    storage: Annotated[Storage, opt("What is kept on disk.", trust=True)] = Storage()
    sessions: Annotated[SessionSettings, opt("Sessions of other agents.")] = SessionSettings()
    telemetry: Annotated[
        str,
        opt(
            "Address of an OpenTelemetry collector (OTLP over HTTP, `http://localhost:4318`) that turns, model calls and tool "
            "calls are reported to, without a word of what was said; empty for none. Needs the extra `otel`.",
            trust=True,
            counts="from the next start on",
        ),
    ] = ""
    interface: Annotated[Interface, opt("The screen.")] = Interface()
    keys: Annotated[
        dict[ActionId, str | tuple[str, ...]],
        opt("Keys of single actions; an empty list takes an action's keys away.", trust=True),
    ] = {}
    agents: Annotated[dict[str, AgentSettings], opt("Agents of your own, by name.", trust=True)] = {}
    customizations: Annotated[
        Literal["all", "own"],
        opt(
            "Skills, commands, hooks, agents and servers in files of their own: those made for other agents too (`.claude`, "
            "`.agents`, `.mcp.json`), or ctxchat's own only.",
            trust=True,
        ),
    ] = "all"
    hooks: Annotated[tuple[HookSettings, ...], opt("What to do when something happens.", trust=True, append=True)] = ()
    mcp: Annotated[dict[str, McpSettings], opt("MCP servers, by name.", trust=True)] = {}

    @property
    def all_agents(self) -> dict[str, AgentSettings]:
        """Those that come with the program, and a person's own; theirs where one has both."""
        return BUILTIN_AGENTS | self.agents

    def of_model(self, name: str) -> ModelTable:
        """The settings of one model; the defaults where it has none."""
        return self.models.get(name, ModelTable())


DEFAULTS = Settings()
