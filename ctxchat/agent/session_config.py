"""The configuration of a session, as one value. It is made from the settings when a session opens, and again whenever settings
or agent change. Knows no settings file.
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
"""The fallback of a model by that model's name, None where it has none. Raises CtxchatError if it cannot be opened."""


class OpenModel(Protocol):
    """Opens a model by its name, `at` the address the session has used so far, or without one at that of the settings. Raises
    UsageError if the model cannot be opened."""

    def __call__(self, name: str, at: str | None = None) -> ModelPort: ...


class ContextSources(Protocol):
    """The sources of memory files and other context for a conversation."""

    async def gather(self) -> Surroundings:
        """The memory files, word for word, and the present answers of the context providers."""
        ...

    def go_to(self, paths: Sequence[str]) -> bool:
        """Have the memory files of these paths' folders apply from now on. True where a folder is new."""
        ...

    async def read_memory(self) -> tuple[ContextBlock, ...]:
        """The memory files alone."""
        ...

    async def every_request(self) -> tuple[ContextBlock, ...]:
        """The present answers of the providers that are asked for every request."""
        ...

    @property
    def troubles(self) -> Mapping[str, str]:
        """The sources that were late or failed when last asked, each with the consequence as the rest of a sentence."""
        ...

    async def close(self) -> None:
        """Stop the sources that are still running."""
        ...


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be exchanged while a session is open.

    `agent` is the agent's name, empty for the usual one. `model` is the one the settings name for this agent (empty for none),
    and `own_model` says that the agent itself names it. Without `summariser_of` the summariser stays the same. `serving` is
    compared only: where it differs, the model in use is opened anew, at its present address unless `address`, which the settings
    name for it, differs too. `effort` is the level of the settings, empty for the model's usual one. `tools` are the names on
    offer, None for all, without the `disallowed_tools`. `lasting`: a person reads and thinks between the messages, so that pauses
    of up to an hour are expected. `delegated`: another agent gave the task. `spending` holds limits of money and tokens.
    `prompts` can be called as `/name`, beside `server_prompts`, which come and go. `listener` receives the session's events; only
    its value at opening counts. `notices` are sentences for the person.
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
    disallowed_tools: Collection[str] = ()
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
"""Makes the configuration for an agent (empty for the usual one, None for the one the settings name) and a model, from the
settings as they are now. Reads from disk. Raises UsageError for an unknown agent."""


def next_model(before: SessionConfig, after: SessionConfig, current: str) -> str:
    """The model to use when the agent changes: the one the new agent names; where the previous agent had named its own, the one
    of the settings; else the `current` one."""
    return after.model if after.model and (after.own_model or before.own_model) else current
