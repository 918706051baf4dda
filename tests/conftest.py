"""For all tests: what was imported is not searched for garbage again and again, which costs much of the time; how many run at
once; and no example of a property has a deadline."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

# Many a container forbids compiled files, and then each of the hundred processes that are started here would compile all anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is imported and collected stays: nothing of it is garbage to search for, until all of it is there.
gc.disable()

# A run in the background is deaf to ctrl+c, and all that it starts would be.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A request that does not begin with the one before fails where nothing explains it, in every test that has a model.
os.environ["_CTXCHAT_STRICT_PREFIX"] = "1"

# A screen is drawn when Pilot looks at it (tests/tui/conftest.py), and seldom in between, where nobody does.
os.environ["TEXTUAL_FPS"] = "4"

# How long an example takes says how busy the machine is. Each run takes the same few examples, so that what one machine passed
# another does; many new ones are drawn in the long part.
settings.register_profile(
    "same", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("long", settings.get_profile("same"), max_examples=300, derandomize=False)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(
        1_000_000, 5, 50
    )  # some 100 MB; what lives as long as an app is searched once, not for each of its screens


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two cores: a third of the time tests wait, for a process, a server or a timer."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)
