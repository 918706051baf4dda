"""What the head says of the skills there are: their names, and what each is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxchat.core.prompt_files import PromptFile, skills_index


class Skills:
    """ContextProvider `skills`. `prompts` gives those that count now."""

    source_id = "skills"

    def __init__(self, prompts: Callable[[], Sequence[PromptFile]]) -> None:
        self._prompts = prompts

    async def provide(self) -> str:
        """One line a skill; empty when there are none."""
        return skills_index(self._prompts())
