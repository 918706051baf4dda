"""The agents there are, and the usual one: what each is for, and what it has of its own."""

from __future__ import annotations

from textual.binding import Binding
from textual.content import Content

from ctxchat.config.schema import BUILTIN_AGENTS, AgentSettings, Settings
from ctxchat.config.toml_positions import literal
from ctxchat.presentation.text import clean, one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

USUAL = "the usual one"

HOW = (
    "An agent is a name for a way to work: its own model, instructions, tools, permissions, and any option of [context]. "
    "Put one into your config.toml as [agents.NAME]; the reference shows all fields."
)


def own_words(agent: AgentSettings) -> str:
    """The settings that an agent has of its own besides model and permissions, in a line."""
    parts: list[str] = []
    if agent.prompt is not None:
        parts.append("instructions of its own")
    if agent.tools is not None:
        parts.append(f"tools: {', '.join(agent.tools) or 'none'}")
    parts += [f"context.{key} = {literal(value)}" for key, value in agent.context.items()]
    return "; ".join(parts) or "everything else as usual"


class AgentsScreen(Listing[str]):
    """Chooses an agent. Its result is the agent's name (empty for the usual one), or None. `now` is the session's present
    agent."""

    TITLE = "Agents"
    COLUMNS = (
        Column("", 1),
        Column("agent", 18),
        Column("model", 26, rank=2),
        Column("permissions", 12, rank=3),
        Column("what for", least=16, rank=1),
    )
    NOT_FOUND = "No agent is called that."
    FILTER_PLACEHOLDER = "part of a name or description"
    BINDINGS = [Binding("enter", "choose", "go on as this one", key_display="enter")]

    def __init__(self, settings: Settings, now: str) -> None:
        super().__init__()
        self._settings, self._now = settings, now

    def on_mount(self) -> None:
        self.apply_filter()

    def apply_filter(self) -> None:
        agents = self._settings.all_agents
        self.set_items(
            self.matching(["", *agents], lambda n: f"{n or USUAL} {agents[n].description if n else ''}"), at=self._now
        )
        yours = count(len(self._settings.agents), "agent")
        all_words = f"{yours} of your own, {' and '.join(BUILTIN_AGENTS)}, and {USUAL}"
        self.head(all_words, count(len(agents) + 1, "agent"))

    def cells(self, name: str) -> tuple[Cell, ...]:
        agent = self._settings.all_agents.get(name, AgentSettings())
        model = agent.model if agent.model is not None else "as usual"
        return (
            ("●" if name == self._now else "", "good"),
            (one_line(name or USUAL, 60), "" if name else "dim"),
            (one_line(model), "" if agent.model is not None else "dim"),
            (agent.permissions or "as usual", "" if agent.permissions else "dim"),
            (one_line(agent.description, 200), "dim"),
        )

    def describe_item(self, item: str | None) -> Content:
        if not item:
            return Content.styled(HOW if not self._settings.agents else "", MUTED)
        agent = self._settings.all_agents[item]
        lines = [Content(clean(agent.description)), Content.styled(clean(own_words(agent)), MUTED)]
        return Content("\n").join([line for line in lines if line])

    def action_choose(self) -> None:
        """Choose the agent under the cursor."""
        if self.rows.current is not None:
            self.dismiss(self.rows.current)
