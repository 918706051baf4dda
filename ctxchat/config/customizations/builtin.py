"""The command files that come with the program. One of the same name of the project or the person takes precedence."""

from __future__ import annotations

from ctxchat.core.prompt_files import PromptFile

_INIT = """\
Write `AGENTS.md` at the root of this folder: what somebody has to know who works on this code from today and has read nothing
yet. It is read at the start of every conversation here, so each line has to earn its place: 60 lines at most, no general advice,
nothing that one look at the tree tells.

1. Look first: README, what builds and tests it (its manifests, task files, CI), the tree, the largest and the most central
   modules, notes for other agents (`CLAUDE.md`, `GEMINI.md`, `.cursor/rules`, `.github/copilot-instructions.md`), and
   `AGENTS.md` itself if it is there.
2. Say, in this order: what it is, in a sentence or two; the commands to set it up, build, check and test it, one test alone
   among them; how the parts fit together, as far as that takes several files to see; rules of this code that differ from what
   is usual; traps.
3. Name a command only if a file here names it or you ran it. Say what you could not find out, instead of guessing.
4. Where `AGENTS.md` is there already, mend it: keep what is true and written by hand, strike what is not true any more.

Then tell in a few lines what you wrote and what you left open.
"""

BUILTIN_PROMPTS = (
    PromptFile(
        "init",
        "command",
        "Write AGENTS.md: what an agent has to know of this folder",
        _INIT,
        "",
        origin="program",
        hint="[what matters]",
        by_model=False,
    ),
)
