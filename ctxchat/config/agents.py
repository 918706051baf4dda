"""The one place where an agent's own settings meet the application's: field by field, what it leaves out falls back."""

from __future__ import annotations

import msgspec

from ctxchat.config.consistency import agent_context
from ctxchat.config.problems import nearest, shown
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.core.errors import UsageError


def for_agent(settings: Settings, name: str | None = None) -> tuple[Settings, AgentSettings]:
    """The settings as this agent sees them, and what is its alone (prompt, tools; None: the usual ones).

    None is the agent the settings name; an empty name is none, the usual one. Raises UsageError for an unknown name.
    """
    name = settings.agent if name is None else name
    if not name:
        return msgspec.structs.replace(settings, agent=""), AgentSettings()
    if name not in settings.agents:
        near = nearest(name, settings.agents)
        hint = f"Did you mean {near}?" if near else f"Agents: {', '.join(settings.agents) or 'none'}."
        raise UsageError(f"There is no agent {shown(name)}.", hint)
    agent = settings.agents[name]
    permissions = settings.permissions
    if agent.permissions is not None:
        permissions = msgspec.structs.replace(permissions, mode=agent.permissions)
    model = settings.model if agent.model is None else agent.model
    context = agent_context(settings, name)
    return msgspec.structs.replace(settings, agent=name, model=model, permissions=permissions, context=context), agent
