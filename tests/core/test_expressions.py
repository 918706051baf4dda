"""Expressions that are compiled late are ones all the same: a slip in one is found here, not where it is first used."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import ctxchat
from ctxchat.core.expressions import expression


def test_all_there_are_can_be_compiled() -> None:
    modules = [
        import_module(found.name)
        for found in walk_packages(ctxchat.__path__, "ctxchat.")
        if "__main__" not in found.name
    ]
    kind = type(expression(""))
    late = {value for module in modules for value in vars(module).values() if isinstance(value, kind)}
    assert len(late) > 100
    for each in late:
        assert isinstance(each.fullmatch(""), re.Match | None)


def test_one_that_is_none_says_so_when_it_is_used() -> None:
    with pytest.raises(re.error):
        expression("(").search("")
