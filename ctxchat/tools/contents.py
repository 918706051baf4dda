"""Contents of files in one file that only grows, each once, found by digest. Knows no path of a workspace and no session.

A kill leaves at most a torn end, which the next writer cuts off.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

_HEAD = struct.Struct(">16sBQ")  # digest, packed or not, bytes that follow
_MIN_PACKED_BYTES = 128  # bytes: below that packing gains nothing


def digest_of(data: bytes) -> str:
    """The name of a content: 32 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Contents:
    """One file of contents, for several threads of the process that holds the session."""

    def __init__(self, path: Path, *, pack: bool = True) -> None:
        self._path, self._pack = path, pack
        self._places: dict[str, tuple[int, int, int]] | None = None  # offset, length, packed
        self._end = 0
        self._lock = threading.RLock()

    def __contains__(self, digest: str) -> bool:
        return digest in self._places_known()

    @property
    def size(self) -> int:
        """Bytes on disk."""
        self._places_known()
        return self._end

    def add_contents(self, contents: Iterable[tuple[str, bytes]], *, sync: bool = False) -> None:
        """Keep these, each under its digest, asked for one after the other; what is there already costs nothing. `sync`: they are
        on the disk when it returns. Raises OSError, and then nothing that was there is touched."""
        with self._lock, ExitStack() as opened:
            known, end = self._places_known(), self._end
            places: dict[str, tuple[int, int, int]] = {}
            file: BinaryIO | None = None
            for digest, data in contents:
                if digest in known or digest in places:
                    continue
                file = file or opened.enter_context(self._open())
                packed = zlib.compress(data, 1) if self._pack and len(data) >= _MIN_PACKED_BYTES else data
                how = len(packed) < len(data)
                body = packed if how else data
                file.write(_HEAD.pack(bytes.fromhex(digest), how, len(body)))
                file.write(body)
                places[digest] = (end + _HEAD.size, len(body), how)
                end += _HEAD.size + len(body)
            if file:
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            self._end = end
            known |= places

    def get(self, digest: str) -> bytes | None:
        """The content with this digest; None if it is missing or damaged. Raises OSError."""
        place = self._places_known().get(digest)
        if place is None:
            return None
        offset, length, packed = place
        with self._path.open("rb") as file:
            file.seek(offset)
            body = file.read(length)
        try:
            data = zlib.decompress(body) if packed else body
        except zlib.error:
            return None
        return data if digest_of(data) == digest else None

    def drop(self) -> None:
        """Forget all of it. Raises OSError."""
        with self._lock:
            self._places, self._end = {}, 0
            self._path.unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        """For writing behind the last whole content."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(self._path, flags, 0o600), "r+b")
        file.truncate(self._end)
        file.seek(self._end)
        return file

    def _places_known(self) -> dict[str, tuple[int, int, int]]:
        """The offset of each content in the file, read from the entries' headers the first time."""
        with self._lock:
            if self._places is None:
                self._places, self._end = self._read_index()
            return self._places

    def _read_index(self) -> tuple[dict[str, tuple[int, int, int]], int]:
        places: dict[str, tuple[int, int, int]] = {}
        end = 0
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                while len(head := file.read(_HEAD.size)) == _HEAD.size:
                    digest, how, length = _HEAD.unpack(head)
                    if end + _HEAD.size + length > size or how > 1:
                        break  # torn by a kill
                    places[digest.hex()] = (end + _HEAD.size, length, how)
                    end += _HEAD.size + length
                    file.seek(end)
        except FileNotFoundError:
            pass
        return places, end
