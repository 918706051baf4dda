"""The options that all commands share, once, and the command lines that open the chat: those of nothing but options.

Imports nothing heavy, for it is asked before the first frame is painted. What is read here click would read the same; all else is
left to click, faults included.
"""

from __future__ import annotations

from ctxchat.bootstrap import LAST_HERE

TYPE_CHECKING = False  # without the import
if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = {
    "model": ("NAME", "Model, by litellm's name (`offline/assistant` needs no network)."),
    "api-base": ("URL", "Address of the model's server."),
    "api-key-env": ("VAR", "Environment variable that holds the key."),
    "window": ("N", "The window in tokens; 0 detects it."),
    "config": ("FILE", "Settings file instead of your own."),
    "log": ("FILE", "Write what happens to a file, for a report of a fault; no word of what is said, secrets masked."),
    "session": ("ID", "A stored session; a unique beginning of its id is enough, - is the last of this folder."),
}
"""Options with a value: what stands for it, and their line in the help."""

SWITCHES = {"json": "JSON on standard output, everything else on standard error."}
"""Options without one."""

CONTINUE = "Go on with the session used last in this folder."
"""Of `--continue`, which only the chat has (and `--worktree`, which begins nothing at once: git has to be asked)."""


def of_chat(arguments: Sequence[str]) -> dict[str, str | int | bool] | None:
    """The flags by name where this opens the chat and nothing can be wrong with it, else None."""
    given: dict[str, str | int | bool] = {}
    left = list(reversed(arguments))
    while left:
        name, attached, value = left.pop().partition("=")
        option = "continue" if name == "-c" else name.removeprefix("--")
        if name == option:
            return None
        if option in TEXTS:
            if not attached and (not left or ((value := left.pop())[:1] == "-" and value != LAST_HERE)):
                return None
            given[option.replace("-", "_")] = value
        elif (option in SWITCHES or option == "continue") and not attached:
            given[option] = True
        else:
            return None
    window = str(given.pop("window", 0))
    if not (window.isascii() and window.isdigit() and len(window) < 19):
        return None
    if given.pop("continue", False):
        given["session"] = given.get("session") or LAST_HERE
    return {**given, "window": int(window)}
