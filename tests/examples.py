"""How many examples a property gets that is dear: few with every run, many in the long part."""

from __future__ import annotations

from hypothesis import settings


def examples(few: int, many: int) -> settings:
    """Settings for so many; `pytest --hypothesis-profile=long` takes the many."""
    return settings(max_examples=many if settings.get_current_profile_name() == "long" else few)
