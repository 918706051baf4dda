"""The permission mode in which a stored session comes back."""

from __future__ import annotations

import pytest

from ctxchat.bootstrap.session_settings import remembered_mode
from ctxchat.core.permissions import Mode


@pytest.mark.parametrize(
    ("usual", "chosen", "interactive", "comes"),
    [
        ("ask", "", True, "ask"),
        ("ask", "plan", True, "plan"),
        ("ask", "auto-edit", True, "auto-edit"),
        ("ask", "all", True, "ask"),
        ("plan", "all", True, "plan"),
        ("all", "ask", True, "ask"),
        ("all", "all", True, "all"),
        ("ask", "auto-edit", False, "ask"),
        ("ask", "all", False, "ask"),
        ("auto-edit", "ask", False, "ask"),
        ("ask", "read-only", False, "read-only"),
    ],
)
def test_what_comes_back_is_said_and_nothing_lets_more_through_unasked(
    usual: Mode, chosen: Mode, interactive: bool, comes: Mode
) -> None:
    mode, said = remembered_mode(usual, chosen, interactive=interactive)
    assert mode == comes
    assert len(said) == (chosen not in {"", usual}) and all(chosen in each for each in said)
