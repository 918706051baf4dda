"""For all tests: what was imported is not searched for garbage again and again, which costs much of the time."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
