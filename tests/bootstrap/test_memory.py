"""What a moment needed is the system's again after it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HOLES = """
import sys
from pathlib import Path
from ctxchat.bootstrap.program import give_back_large_blocks
if sys.argv[1] == "given back":
    give_back_large_blocks()

def resident():
    return int(next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmRSS")).split()[1])

bytearray(30_000_000)  # from here on glibc keeps blocks of that size
before, blocks, between = resident(), [], []
for _ in range(100):
    blocks.append(bytearray(b"x") * 200_000)
    between.append(bytearray(600))
blocks.clear()
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc's memory")
def test_large_blocks_go_back_to_the_system() -> None:
    def kept(how: str) -> int:
        return int(
            subprocess.run([sys.executable, "-c", HOLES, how], capture_output=True, text=True, check=True).stdout
        )

    if kept("left alone") < 10_000:
        pytest.skip("this system's allocator gives back what is freed by itself")
    assert kept("given back") < 5_000
