"""A folder for tests: its state byte for byte, and random work on it as an agent's shell or a person's hands would do it."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

Snapshot = dict[str, tuple[str, int, bytes]]
"""Kind, mode and content (of a link: where it points) by path."""


def snapshot(root: Path) -> Snapshot:
    """All of it, empty folders and modes too; `.git` as well."""
    found: Snapshot = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            status = path.lstat()
            kind, content = "file", b""
            if stat.S_ISLNK(status.st_mode):
                kind, content = "link", os.fsencode(path.readlink())
            elif stat.S_ISDIR(status.st_mode):
                kind = "folder"
            else:
                content = path.read_bytes()
            mode = 0 if kind == "link" else stat.S_IMODE(status.st_mode)
            found[os.fsdecode(os.fsencode(path.relative_to(root)))] = (kind, mode, content)
    return found


class Hands:
    """Changes things at random, the same for the same seed. `outside` is where links may lead."""

    def __init__(self, root: Path, outside: Path, chance: random.Random) -> None:
        self.root, self.outside, self.chance = root, outside, chance

    def work(self, times: int) -> None:
        """So many changes."""
        for _ in range(times):
            self.chance.choice(
                (self.write, self.write, self.append, self.delete, self.move, self.mode, self.folder, self.link)
            )()

    def paths(self, *, files: bool = False) -> list[Path]:
        """What can be worked on, links not followed."""
        found = [p for p in sorted(self.root.rglob("*")) if ".git" not in p.parts]
        return [p for p in found if p.is_file() and not p.is_symlink()] if files else found

    def place(self) -> Path:
        """A path where nothing stands; the folder is there."""
        folders = [self.root, *(p for p in self.paths() if p.is_dir() and not p.is_symlink())]
        name = self.chance.choice(("a", "b", "ü x", "n", "-r", "q\udcff")) + str(self.chance.randrange(40))
        path = self.chance.choice(folders) / name
        return self.place() if os.path.lexists(path) else path

    def bytes(self) -> bytes:
        """Text with any line ends, or not text at all."""
        lines = [f"line {self.chance.randrange(9)}" for _ in range(self.chance.randrange(6))]
        end = self.chance.choice(("\n", "\r\n", ""))
        return self.chance.choice((end.join(lines).encode(), self.chance.randbytes(self.chance.randrange(300)), b""))

    def write(self) -> None:
        files = self.paths(files=True)
        path = self.chance.choice(files) if files and self.chance.random() < 0.5 else self.place()
        path.write_bytes(self.bytes())

    def append(self) -> None:
        for path in self.chance.sample(files := self.paths(files=True), min(1, len(files))):
            with path.open("ab") as file:
                file.write(self.bytes())

    def delete(self) -> None:
        for path in self.chance.sample(paths := self.paths(), min(1, len(paths))):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def move(self) -> None:
        for path in self.chance.sample(paths := self.paths(), min(1, len(paths))):
            target = self.place()
            if not target.is_relative_to(path):
                path.rename(target)

    def mode(self) -> None:
        for path in self.chance.sample(paths := self.paths(), min(1, len(paths))):
            if not path.is_symlink():
                path.chmod(
                    self.chance.choice((0o700, 0o755, 0o711, 0o500))
                    if path.is_dir()
                    else self.chance.choice((0o644, 0o600, 0o755, 0o444))
                )

    def folder(self) -> None:
        self.place().mkdir()

    def link(self) -> None:
        self.place().symlink_to(
            self.chance.choice((self.outside, self.outside / "theirs", Path("nowhere"), Path("a1")))
        )
