"""Images by their bytes: what is whole, what is broken and how, and what providers do not take."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.images import addressed, data_url, fault_of, kind_of, other_kind, size_in, still
from ctxchat.core.messages import Image, Message, Text
from tests.doubles.images import gif, jpeg, png, webp

WHOLE = [png(4, 3), gif(4, 3), gif(4, 3, frames=3), jpeg(4, 3), webp(4, 3)]
FILLED = b"\xff\xd8\xff\xff" + jpeg(4, 3)[2:]
NO_LINES = png(1, 1)[:16] + struct.pack(">II", 0, 0) + png(1, 1)[24:]

OTHERS = [
    (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC image"),
    (b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", "AVIF image"),
    (b"II*\0\x08\0\0\0", "TIFF image"),
    (b"BM" + b"\0" * 60, "BMP image"),
    (b"\xff\x0a\0\1", "JPEG XL image"),
    (b"%PDF-1.7\n", "PDF document"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG image"),
    (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!DOCTYPE svg>\n<SVG/>", "SVG image"),
    (b"<!doctype html><p>svg", ""),
]


@pytest.mark.parametrize("data", [*WHOLE, FILLED, png(4, 3) + b"behind it", jpeg(4, 3) + b"behind it"])
def test_one_that_is_whole_has_no_fault(data: bytes) -> None:
    assert not fault_of(data) and size_in(data) == (4, 3)


@given(st.sampled_from(WHOLE), st.data())
def test_one_that_breaks_off_anywhere_has_one(whole: bytes, data: st.DataObject) -> None:
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert fault_of(cut)


@given(st.sampled_from([b"", *(image[:12] for image in WHOLE)]), st.binary(max_size=200))
def test_whatever_it_is_it_has_a_fault_or_a_size(head: bytes, rest: bytes) -> None:
    assert fault_of(head + rest) or all(size_in(head + rest))
    assert kind_of(still(head + rest)) == kind_of(head + rest)


@pytest.mark.parametrize(("data", "kind"), OTHERS)
def test_what_providers_do_not_take_is_named(data: bytes, kind: str) -> None:
    assert other_kind(data) == kind
    assert fault_of(data).startswith(f"{kind or 'no image'}, which no model is shown")


def test_one_without_pixels_is_damaged_and_one_that_is_too_large_says_how_large() -> None:
    assert fault_of(NO_LINES) == "damaged" == fault_of(gif(1, 1, frames=0))
    assert fault_of(png(9_000, 1)).startswith("too large (9000×1 pixels")


def test_of_a_gif_that_moves_the_first_frame_is_sent() -> None:
    moving, first = gif(4, 3, frames=5), gif(4, 3)
    assert still(moving) == first == still(first)
    assert still(moving[:-3]) == moving[:-3]


def test_a_kind_that_is_not_sent_is_told_in_its_place() -> None:
    parts = tuple(
        Image(url, 1, 1, "x") for url in ("attachments/a", data_url(gif(1, 1)), data_url(png(1, 1)), "https://x/y")
    )
    sent = addressed(
        Message(seq=0, role="user", content=parts), {"attachments/a": data_url(gif(1, 1))}, refused=frozenset({"gif"})
    )
    told = Text("[image x 1×1: left out, this model is shown no GIF]")
    assert sent.content == (told, told, *parts[2:])
