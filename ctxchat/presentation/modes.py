"""Tells in a sentence what each permission mode lets run."""

from __future__ import annotations

from collections.abc import Mapping

from ctxchat.core.permissions import Mode

MODES: Mapping[Mode, str] = {
    "ask": "Reading in this folder is free; all else needs a rule or your yes.",
    "read-only": "Reading in this folder is free; all else is denied, whatever the rules allow.",
    "plan": "Reading is free, commands that only read too; all else is denied.",
    "auto-edit": "Reading and writing in this folder are free, commands that only read too; all else needs a rule or your yes.",
    "all": "Nothing asks; only deny rules hold.",
}
