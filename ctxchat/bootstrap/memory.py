"""Memory that was needed for a moment goes back to the system. Knows nothing of who needed it."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_MMAP_THRESHOLD = -3  # of glibc's mallopt
_LARGE = 128 * 1024  # bytes; what glibc begins with


def give_back_large_blocks() -> None:
    """From now on each large block is the system's again when it is freed. Left alone, glibc keeps ever larger ones once one was
    freed, and what lies between them holds them: each pass over a long session would leave holes for good. On other systems
    nothing is changed."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
