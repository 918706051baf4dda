"""How a session is set up, as one value: whoever composes the program makes it from the settings, when a session opens and again
whenever settings or agent change. Knows no settings file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from ctxchat.core.compilers import Compiler, all_sections
from ctxchat.core.events import Stamped
from ctxchat.core.head import ContextBlock, Surroundings
from ctxchat.core.hooks import Hook
from ctxchat.core.limits import SpendingLimits
from ctxchat.core.options import Options
from ctxchat.core.permissions import Mode, Rule
from ctxchat.core.ports import ModelPort, ServerPrompts, Summariser, ToolLimits
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.view import Transform

FallbackOf = Callable[[str], ModelPort | None]
"""The fallback of a model by its name, None where it has none. Raises CtxchatError for one that cannot be had."""


class OpenModel(Protocol):
    """A model by its name, `at` the address a session asked it at so far; without one, where the settings say that it is. Raises
    UsageError for one that cannot be had."""

    def __call__(self, name: str, at: str | None = None) -> ModelPort: ...


class ContextSources(Protocol):
    """What stands around a conversation besides the tools."""

    async def gather(self) -> Surroundings:
        """Memory files, word for word, and what the context providers say now."""
        ...

    def go_to(self, paths: Sequence[str]) -> bool:
        """Work has gone to these paths: memory files of their folders apply from now on. True where a folder is new."""
        ...

    async def read_memory(self) -> tuple[ContextBlock, ...]:
        """Memory files alone."""
        ...

    async def every_request(self) -> tuple[ContextBlock, ...]:
        """What those providers say now that are asked for every request."""
        ...

    @property
    def troubles(self) -> Mapping[str, str]:
        """Who was late or failed when last asked, and what came of it, as the rest of a sentence."""
        ...

    async def close(self) -> None:
        """End whoever is still at work."""
        ...


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that may become another while a session is open.

    `agent` is its name, empty for the usual one. `model` is the one the settings name for this agent (empty for none), and
    `own_model` says that the agent itself names it. Without `summariser_of`, whoever wrote summaries before goes on to.
    `serving` is what models are opened with: where it differs, the model in use is opened anew; at its address, unless
    `address`, which the settings name for it, differs, too. `effort` is the level they name for it, empty for the model's
    usual one. `tools` are the names on offer, None for all. `lasting`: a person reads and thinks between the messages, so
    that pauses of up to an hour are to be expected. `delegated`: another agent gave it its task. `spending` are limits of money
    and tokens. `prompts` are what a person can call as `/name`, beside `server_prompts`, which come and go. `listener`, as it is
    when a session is opened, is told its events. `notices` are sentences for the person.
    """

    system: str
    context_sources: ContextSources
    open_model: OpenModel
    summariser_of: Callable[[ModelPort], Summariser] | None = None
    fallback_of: FallbackOf = lambda name: None
    agent: str = ""
    options: Options = Options()
    compiler: Compiler = all_sections
    transforms: tuple[Transform, ...] = ()
    tools: Collection[str] | None = None
    limits: ToolLimits = ToolLimits()
    spending: SpendingLimits = SpendingLimits()
    hooks: tuple[Hook, ...] = ()
    mode: Mode = "ask"
    rules: tuple[Rule, ...] = ()
    model: str = ""
    own_model: bool = False
    serving: object = None
    address: str = ""
    effort: str = ""
    lasting: bool = False
    delegated: bool = False
    rewriting: tuple[str, ...] = ()
    prompts: tuple[PromptFile, ...] = ()
    server_prompts: ServerPrompts | None = None
    listener: Callable[[Stamped], None] | None = None
    notices: tuple[str, ...] = ()


Configure = Callable[[str | None, str], SessionConfig]
"""How a session is set up for an agent (empty for the usual one, None for the one the settings name) on a model, by the settings
as they are now. Touches the disk. Raises UsageError for an agent nobody has."""


def next_model(before: SessionConfig, after: SessionConfig, current: str) -> str:
    """The model to go on with when the agent changes: the one the new agent names; the application's where the agent before had
    brought its own; else the one there is."""
    return after.model if after.model and (after.own_model or before.own_model) else current
