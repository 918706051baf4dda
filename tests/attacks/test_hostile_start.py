"""What a repository can put into its skills, command files, agents, hooks and servers, before anybody trusts it: it holds no
start up, ends none, and takes no more memory than others. In a process of its own, which is ended where it hangs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Made = Callable[[Path], object]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(head: str) -> Made:
    return lambda root: write(root / ".claude/skills/x/SKILL.md", f"---\n{head}\n---\nDo it.\n")


def agents(head: str, number: int = 1) -> Made:
    file = f"---\ndescription: hi\n{head}\n---\nYou read.\n"
    return lambda root: [write(root / f".claude/agents/x{n}.md", file) for n in range(number)]


def hook(command: str) -> Made:
    settings = f'[[hooks]]\nevent = "turn_started"\naction = "run"\ncommand = {json.dumps(command)}\n'
    return lambda root: write(root / ".ctxchat/config.toml", settings)


def many_commands(root: Path) -> None:
    for folder in range(100):
        for below in range(30):
            write(root / f".claude/commands/a{folder}/b{below}/c.md", "---\ndescription: [x]\n---\nhi")


def links_to_one_large_file(root: Path) -> None:
    (root / "large").touch()
    os.truncate(root / "large", 49_000_000)
    for number in range(40):
        write(root / f".claude/skills/x{number}/SKILL.md", "hi")
        for link in range(190):
            (root / f".claude/skills/x{number}/{link}").symlink_to("../../../large")


def links_in_a_circle(root: Path) -> None:
    for number in range(20):
        (root / f"l{number}").symlink_to(".")
    hook("./*/*/*/*/*/*/*/*/*/*/*/z")(root)


def names_too_long(root: Path) -> None:
    skill("name: x")(root)
    here = os.open(root / ".claude/skills/x", os.O_RDONLY)
    for _ in range(120):  # no path can name the last of them
        os.mkdir("d" * 50, dir_fd=here)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)
)
MERGES = "a0: &a0 {k: v, l: w}\n" + "\n".join(
    f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)
)
HOSTILE: dict[str, Made] = {
    "aliases": agents(f"{LAUGHS}\ntools: [*a9]"),
    "merges": skill(f"{MERGES}\ndescription: x"),
    "number": skill(f"? 0x{'f' * 3000}\n: b\ndescription: [x]"),
    "truth": skill("description: !!bool maybe"),
    "empty number": skill('description: !!int ""'),
    "no date": skill("description: !!timestamp foo"),
    "deep": skill(f"description: {'[' * 9000}{']' * 9000}"),
    "commas": agents(f"tools: '{',' * 19_000}'", 300),
    "slow to read": agents(f"tools: [{'x,' * 9000}]", 300),
    "many files": many_commands,
    "links": links_to_one_large_file,
    "circle": links_in_a_circle,
    "long names": names_too_long,
    "words": hook(" ".join(f"cd a{n} b{n}" for n in range(20_000))),
}
LOAD = """
import json, sys
from pathlib import Path
from ctxchat.config.effective import load_settings
for kind, root in json.loads(sys.argv[1]).items():
    print(f"<{kind}>", load_settings(Path(root), config=Path("none")).project.lines[:1], flush=True)
"""
MEMORY_BYTES = 2_000_000_000


@pytest.mark.parametrize("half", [0, 1])
def test_a_start_is_neither_held_up_nor_ended(tmp_path: Path, half: int) -> None:
    roots: dict[str, str] = {}
    for kind, make in list(HOSTILE.items())[half::2]:
        root = tmp_path / kind
        root.mkdir()
        make(root)
        roots[kind] = str(root)
    ran = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(roots)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **{f"CTXCHAT_{which}_DIR": str(tmp_path / which) for which in ("CONFIG", "DATA")}},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )
    assert ran.returncode == 0, ran.stdout[-200:] + ran.stderr[-1000:]
    assert all(f"<{kind}>" in ran.stdout for kind in roots)


READ = """
import struct, zlib
from ctxchat.core.images import MAX_IMAGE_BYTES, fault_of, size_in
from ctxchat.core.prompt_files import PromptFile, fill
from ctxchat.tools.mcp.protocol import OfferedPrompt
from ctxchat.tools.mcp.server import prompts_of

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

fences = fill(PromptFile("x", "command", "", "```!\\n" * 40_000), "")
assert not fences.commands
assert len(prompts_of("s", [OfferedPrompt("x")] * 3_000)) == 3_000
pack = zlib.compressobj(9)
packed = b"".join(pack.compress(bytes(1 << 20)) for _ in range(800)) + pack.flush()
head = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 8, 6, 0, 0, 0))
bomb = head + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
assert len(bomb) < MAX_IMAGE_BYTES and all(fault_of(bomb) == "damaged" for _ in range(100))
segments = b"\\xff\\xd8\\xff\\xe0" + b"\\x00\\x02" + b"\\xff\\xe0\\x00\\x02" * 900_000
assert all(size_in(segments) == (0, 0) for _ in range(100))
print("read")
"""


def test_what_files_and_servers_say_is_read_to_an_end() -> None:
    """Each of these took seconds at every key, on the one loop that everything waits for."""
    ran = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "read\n", ran.stderr[-1000:]
