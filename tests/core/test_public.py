"""The core stands on its own: its public names resolve, and importing it loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import ctxchat.core


def test_every_public_name_is_there() -> None:
    for name in ctxchat.core.__all__:
        assert getattr(ctxchat.core, name) is not None
    assert {"Ledger", "View", "Strategy", "Pipeline", "is_context_overflow"} <= set(dir(ctxchat.core))


def test_the_core_loads_no_adapter_and_no_loop() -> None:
    heavy = ("asyncio", "sqlite3", "textual", "rich", "litellm", "tiktoken", "httpx", "click")
    code = f"import sys\nfrom ctxchat.core import *\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_documented_example_runs() -> None:
    lines = (ctxchat.core.__doc__ or "").splitlines()
    code = "\n".join(line[4:] for line in lines if line.startswith("    "))
    long = [
        ctxchat.core.Message(n, "user" if n % 2 else "assistant", f"message {n} " + "word " * 400) for n in range(1, 60)
    ]
    names: dict[str, object] = {"messages": long}
    exec(code, names)
    ledger = names["ledger"]
    assert isinstance(ledger, ctxchat.core.Ledger)
    assert [c.id for c in ledger.changes] == ["pass-1"]
