"""The head of a conversation: the system prompt, the tools and the context that come before the first message in every request.
It is made once and then sent unchanged, since providers cache the beginning of a request.

Knows nothing of models, of tokens or of the sources of the texts.
"""

from __future__ import annotations

import msgspec


class ToolSpec(msgspec.Struct, frozen=True):
    """The description of a tool for a model. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, object]

    @property
    def schema(self) -> str:
        """The description as JSON text, as it is sent to a provider."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return msgspec.json.encode(function).decode()


class ContextBlock(msgspec.Struct, frozen=True):
    """A text from a memory file or a context provider, whose name is `source_id`."""

    source_id: str
    text: str

    @property
    def attributed(self) -> str:
        """The text as a model is sent it, between tags that name its source."""
        return f'<context source="{self.source_id}">\n{self.text}\n</context>'


class Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model reads before the first message: `tools` and the `system` prompt, then memory files word for word, then the
    texts of context providers. `agent` is the name of the agent whose system prompt it has, empty for the usual one."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    memory: tuple[ContextBlock, ...] = ()
    context: tuple[ContextBlock, ...] = ()
    agent: str = ""

    @property
    def texts_by_source(self) -> dict[str, str]:
        """Its texts that may change while the conversation goes on, by source id."""
        return {block.source_id: block.text for block in (*self.memory, *self.context)}


class Surroundings(msgspec.Struct, frozen=True):
    """The memory files and the texts of context providers at one moment. `late_sources` are the ids of sources that did not
    answer in time or failed; their previous texts still count."""

    memory: tuple[ContextBlock, ...] = ()
    context: tuple[ContextBlock, ...] = ()
    late_sources: frozenset[str] = frozenset()
