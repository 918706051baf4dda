"""The head of a conversation: what stands before it in every request, made once and sent unchanged from then on.

Knows nothing of models, of tokens or of who writes the texts.
"""

from __future__ import annotations

import msgspec


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told of a tool. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object]

    @property
    def schema(self) -> str:
        """Its JSON text as it goes to a provider."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return msgspec.json.encode(function).decode()


class ContextBlock(msgspec.Struct, frozen=True):
    """A text from a memory file or a context provider, attributed by `source_id`."""

    source_id: str
    text: str

    @property
    def attributed(self) -> str:
        """As a model reads it."""
        return f'<context source="{self.source_id}">\n{self.text}\n</context>'


class Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model reads before the first message: tools and system prompt, then memory files word for word, then what context
    providers said. `agent` is whose system prompt it is, empty for the usual one."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    memory: tuple[ContextBlock, ...] = ()
    context: tuple[ContextBlock, ...] = ()
    agent: str = ""

    @property
    def texts_by_source(self) -> dict[str, str]:
        """Its texts that may change around a conversation, by source."""
        return {block.source_id: block.text for block in (*self.memory, *self.context)}


class Surroundings(msgspec.Struct, frozen=True):
    """What stands around a conversation at one moment: memory files, and what context providers say. `late_sources` were late or
    failed: what they said last still counts."""

    memory: tuple[ContextBlock, ...] = ()
    context: tuple[ContextBlock, ...] = ()
    late_sources: frozenset[str] = frozenset()
