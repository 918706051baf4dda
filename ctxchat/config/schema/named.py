"""What a person adds under names of their own: agents, hooks, servers."""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated, Any, Literal

from msgspec import Meta

from ctxchat.config.schema.context import ContextSettings
from ctxchat.config.schema.option import Table, opt
from ctxchat.core.hooks import HookEvent
from ctxchat.core.permissions import Mode


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
