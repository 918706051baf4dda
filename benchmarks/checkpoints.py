"""What a checkpoint costs in a folder of 20,000 files: the first look reads them all, later ones their times. CPU seconds.

uv run python benchmarks/checkpoints.py
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from ctxchat.tools.contents import Contents
from ctxchat.tools.tree import Tree

FOLDERS, EACH = 200, 100


def main() -> None:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve() / "work"
        for folder in range(FOLDERS):
            (root / str(folder)).mkdir(parents=True)
            for number in range(EACH):
                (root / str(folder) / f"{number}.py").write_bytes(chance.randbytes(chance.randrange(200, 16_000)))
        (root / ".gitignore").write_text("*.pyc\nbuild/\n/out\n")
        time.sleep(2.1)  # files touched a moment ago are read again
        kept, tree = Contents(Path(made) / "kept", pack=False), Tree(str(root))
        for words in ("first look", "before a command", "after a command"):
            began, wall = time.process_time(), time.perf_counter()
            found = tree.scan(lambda fresh: kept.add_contents(fresh.items()), again=words.startswith("after"))
            spent = time.process_time() - began
            print(f"{words:18} {len(found):,} paths  {spent:.2f} s CPU  {time.perf_counter() - wall:.2f} s")


if __name__ == "__main__":
    main()
