"""The fixed sentences of the offline assistant, all in English; what it quotes may be in any language."""

import re

FOUND = "The best match is {ref}:"
PARTLY = "Nothing I found covers all of this; the closest is {ref}:"
ALSO = "See also {ref}:"
MISSING = "None of these passages mentions {words}."
SEARCHED = "Looked for {words}{read}."
READ = "; read {paths}"
NOTHING = "I found nothing about this in the folder."
NOTHING_SAID = "I found nothing about this in what was said."
LIMITS = (
    "I am the built-in offline assistant: I find and quote passages, I do not reason about them. "
    "`/model` chooses a language model."
)
DENIED = "That was not done, because it was not allowed."
FAILED = "That did not work:"
TOLD = "From this conversation ({label}):"
BEGINS = "{ref} begins:"
HAS = "{ref} holds:"
HOLDS = "It holds:"

WHO = (
    "I am ctxchat's built-in offline assistant, not a language model. I search this folder with the same tools a model would "
    "use, quote what I find with path and line, read and edit files, and run commands once you allow them. I do not reason or "
    "write prose of my own. `/model` chooses a language model."
)
WINDOW = (
    "The bar below the prompt shows what fills the window. F2, or `/context`, opens the breakdown: each section with its "
    "tokens, the biggest messages, and a button that frees up context."
)
HELP = """I am the built-in offline assistant. What I do well:

- **Questions about this folder**: `where is the retry limit set?`, `what does this project do?`
- **Files**: `read src/app.py lines 10-40`, `explain @src/app.py`, `list files`, `find files *.py`, `grep TODO`
- **Changes**, once you allow them: `replace "A" with "B" in notes.md`, `create file todo.txt with …`
- **Commands**, once you allow them: `run make test`, `run the tests`
- **Sub-agents**: `delegate: where is the retry limit set?` asks one with a window of its own
- **Memory**: `remember that we deploy on Fridays`, `recall the port we chose`

F2 shows what fills the context window. `/model` chooses a language model."""

GREETING = "Hello. Ask me something about this folder, or say `help`."
THANKS = "You are welcome."
NOTED = (
    "Noted; it stays in this conversation. `remember …` keeps it for later ones. I cannot do more with it by myself."
)
NO_TOOL = "I was not given the tool for that here ({name})."
NO_QUESTION = "There is no question for me yet. Ask me something about this folder, or say `help`."

_FIXED = (FOUND, PARTLY, ALSO, MISSING, SEARCHED, NOTHING, NOTHING_SAID, LIMITS, DENIED, FAILED, TOLD, HOLDS, WHO, WINDOW,
          GREETING, THANKS, NOTED, NO_TOOL, NO_QUESTION)  # fmt: skip
# BEGINS and HAS are missing: they begin with a place, so no text can be recognised by their beginning
BEGINNINGS = tuple(
    sentence.split("{")[0] for phrase in _FIXED for sentence in re.split(r"(?<=[.:]) (?=[A-Z`])", phrase)
)
"""The beginnings of the assistant's own sentences. Summaries leave out sentences that begin so, since they say nothing about the
project."""
