"""Every option once: its key, type, range, default, unit, help and effect, as the typed `Settings` the program reads.

The shipped reference, validation, the documentation's table and the editors' JSON Schema are all made from these types.
Knows no file.
"""

# No postponed annotations here: evaluating 170 of them from text would take 7 ms of every start.

from typing import Annotated

from ctxchat.config.keys import ActionId
from ctxchat.config.schema.context import ContextSettings
from ctxchat.config.schema.named import AgentSettings, Condition, HookSettings, McpSettings
from ctxchat.config.schema.option import Table, opt, own_names
from ctxchat.config.schema.program import Interface, ModelTable, Permissions, SecretSettings, Storage, ToolSettings

__all__ = [
    "DEFAULTS",
    "AgentSettings",
    "Condition",
    "ContextSettings",
    "HookSettings",
    "McpSettings",
    "ModelSettings",
    "Settings",
    "Table",
    "own_names",
]


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
    context: Annotated[ContextSettings, opt("What the model is shown, and when room is made.")] = ContextSettings()
    permissions: Annotated[Permissions, opt("What the agent may do without asking.")] = Permissions()
    tools: Annotated[ToolSettings, opt("The agent's tools.")] = ToolSettings()
    secrets: Annotated[SecretSettings, opt("Secrets in what tools bring back.")] = SecretSettings()
    storage: Annotated[Storage, opt("What is kept on disk.")] = Storage()
    interface: Annotated[Interface, opt("The screen.")] = Interface()
    keys: Annotated[
        dict[ActionId, str | tuple[str, ...]], opt("Keys of single actions; an empty list takes an action's keys away.")
    ] = {}
    agents: Annotated[dict[str, AgentSettings], opt("Agents of your own, by name.", trust=True)] = {}
    hooks: Annotated[tuple[HookSettings, ...], opt("What to do when something happens.", trust=True, append=True)] = ()
    mcp: Annotated[dict[str, McpSettings], opt("MCP servers, by name.", trust=True)] = {}

    def of_model(self, name: str) -> ModelTable:
        """The settings of one model; the defaults where it has none."""
        return self.models.get(name, ModelTable())


DEFAULTS = Settings()
