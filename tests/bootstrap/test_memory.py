"""What a moment needed is the system's again after it."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import sys
import threading
import time
from pathlib import Path
from ctxchat.bootstrap.program import hold_no_freed_memory
if sys.argv[1] == "given back":
    hold_no_freed_memory()

def resident():
    return int(next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmRSS")).split()[1])
"""

HOLES = """
bytearray(30_000_000)  # from here on glibc keeps blocks of that size
before, blocks, between = resident(), [], []
for _ in range(100):
    blocks.append(bytearray(b"x") * 200_000)
    between.append(bytearray(600))
blocks.clear()
print(resident() - before)
"""


THREADS = """
blocks, between, together = [], [], threading.Barrier(4)

def work():
    together.wait()
    mine = [bytearray(2_000) for _ in range(2_500)]
    together.wait()
    between.append(mine.pop())

for thread in [threading.Thread(target=work) for _ in range(4)]:
    thread.start()
while len(between) < 4:
    time.sleep(0.01)
before = resident()
blocks += [bytearray(2_000) for _ in range(10_000)]
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc's memory")
@pytest.mark.parametrize("work", [HOLES, THREADS], ids=["large blocks", "what threads needed"])
def test_what_is_freed_is_not_held(work: str) -> None:
    def kept(how: str) -> int:
        script = [sys.executable, "-c", BEGIN + work, how]
        return int(subprocess.run(script, capture_output=True, text=True, check=True).stdout)

    if kept("left alone") < 10_000:
        pytest.skip("this system's allocator gives back what is freed by itself")
    assert kept("given back") < 5_000
