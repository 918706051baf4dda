"""Counts the tokens of texts, messages and tools, in total and by kind of text (a `Mix`), and remembers the counts of messages.

Knows no tokenizer: the function that counts a text is passed in (`ctxchat.models.tokenizers` has the real ones). The kinds are
those for which calibration learns how a server's counts differ from ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from ctxchat.core.calibration import Mix, total
from ctxchat.core.messages import Image, Message, Opaque, Text

Count = Callable[[str], int]
"""A function from a text to its tokens. Never raises and is never slow, whatever the text."""

CountImage = Callable[[int, int], int]
"""A function from width and height in pixels to tokens; 0 for a model that takes no images and is shown a short text instead."""

TakesBack = Callable[[Message], bool]
"""A reply in, whether what was thought for it is sent to the model and read there."""

MESSAGE_OVERHEAD_TOKENS = 4
"""Tokens of a message besides its text: role and delimiters (OpenAI's cookbook says 3 to 4)."""

TOOL_OVERHEAD_TOKENS = 8
"""Tokens of a tool besides its schema's JSON text, from llama.cpp's and OpenAI's templates."""

_BEYOND = re.compile("[\u0370-\U0010ffff]+")
"""Matches characters beyond the Latin alphabets."""
_HAN = re.compile("[\u2e80-\u2fff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff]+")
_DIGITS = b"0123456789"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_MARKS = _DIGITS + bytes(c for c in range(128) if chr(c).isalpha() or chr(c).isspace())

_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


def rough_count(text: str) -> int:
    """An estimate of a text's tokens without a tokenizer, rather too high than too low: a token for three ASCII characters or for
    less than one other character."""
    narrow = len(text.encode("ascii", "ignore"))
    wide = len(text) - narrow
    emoji = sum(1 for _ in _EMOJI.finditer(text)) if wide else 0
    return math.ceil(narrow / 3 + 1.2 * wide + 1.8 * emoji)


def image_tokens(width: int, height: int) -> int:
    """The tokens of an image by its size in pixels, by OpenAI's rule (85, and 170 for each tile of 512 pixels).

    An image of unknown size counts as a large square one, 765. The bytes of the image never matter.
    """
    if width <= 0 or height <= 0:
        return 765
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * max(1, tiles)


HIDDEN_THOUGHT_RATIO = 1.5
"""Where a server counted more thoughts than so many times what is readable of them, the rest was sent hidden."""

MAX_THOUGHT_TOKENS = 1_000_000
"""More tokens of thoughts than any reply has: a larger count is a mistake."""


class TokenCounter:
    """Counts tokens with one function and remembers the counts of messages, which is its only state. The counts are raw: ours,
    not corrected by what a server counts."""

    def __init__(
        self, count: Count = rough_count, image: CountImage = image_tokens, takes_back: TakesBack = lambda _: True
    ) -> None:
        self._count = count
        self._image = image
        self._takes_back = takes_back
        self._messages: dict[Message, Mix] = {}
        self._texts: dict[str, Mix] = {}

    def count_text(self, text: str) -> int:
        """Tokens of a text that changes often; not remembered."""
        return self._count(text) if text else 0

    def text_mix(self, text: str) -> Mix:
        """Like `count_text`, by kind of text."""
        raw = self.count_text(text)
        beyond = "" if text.isascii() else "".join(_BEYOND.findall(text))
        wide = min(raw, self._count(beyond)) if beyond else 0
        plain = text.encode("ascii", "ignore")
        return Mix(
            raw - wide,
            wide,
            digits=len(plain) - len(plain.translate(None, _DIGITS)),
            capitals=len(plain) - len(plain.translate(None, _CAPITALS)),
            indents=plain.count(b"\n ") + plain.count(b"\n\t"),
            marks=len(plain.translate(None, _NO_MARKS)),
            han=_characters(_HAN, beyond),
            kana=_characters(_KANA, beyond),
            accents=len(text) - len(plain) - len(beyond),
        )

    def fixed(self, text: str) -> int:
        """Tokens of a text that comes back with every request (a prompt, a schema); remembered."""
        return self._fixed(text).raw

    def knows(self, text: str) -> bool:
        """True for a text that `fixed` has counted before."""
        return text in self._texts

    def tool(self, schema: str) -> int:
        """Tokens of one tool, from its schema as JSON text."""
        return self.fixed(schema) + TOOL_OVERHEAD_TOKENS

    def message(self, message: Message) -> int:
        """Tokens of one message: text, names and arguments of calls, reasoning, images, and what is added around a message."""
        return self.mix(message).raw

    def mix(self, message: Message) -> Mix:
        """Like `message`, by kind of text."""
        known = self._messages.get(message)
        if known is None:
            known = self._messages[message] = self.draft_mix(message)
        return known

    def forget_images(self) -> None:
        """Forget the counts of messages with images, which change when it becomes known whether the model takes images."""
        for message in list(self._messages):
            if any(isinstance(part, Image) for part in message.content):
                self._messages.pop(message, None)

    def forget_all_but(self, messages: Iterable[Message]) -> None:
        """Forget all counts but those of these messages, so that memory does not grow with messages that are no longer in
        view."""
        known = self._messages
        self._messages = {message: known[message] for message in messages if message in known}

    def draft_mix(self, message: Message) -> Mix:
        """Like `mix`, but not remembered: for a message that changes, such as a draft."""
        if message.empty and not message.reasoning:
            return Mix()
        parts = [Mix(MESSAGE_OVERHEAD_TOKENS * (1 + len(message.calls))), self.text_mix(message.name)]
        if isinstance(message.content, str):
            parts.append(self.text_mix(message.content))
        else:
            parts += map(self.part_mix, message.content)
        for call in message.calls:
            parts += (self.text_mix(call.name), self.text_mix(call.arguments))
        if message.reasoning and self._takes_back(message):
            thought, counted = self.text_mix(message.reasoning.text), min(message.reasoning.tokens, MAX_THOUGHT_TOKENS)
            parts.append(Mix(counted) if counted > HIDDEN_THOUGHT_RATIO * thought.raw else thought)
        return total(parts)

    def part(self, part: Text | Image | Opaque) -> int:
        """Tokens of one part of a message. Texts of attached files are remembered, since a draft's are counted at every key
        press."""
        return self.part_mix(part).raw

    def part_mix(self, part: Text | Image | Opaque) -> Mix:
        """Like `part`, by kind of text."""
        match part:
            case Text(name=name):
                return self._fixed(part.words) if name else self.text_mix(part.text)
            case Image(width=width, height=height):
                tokens = self._image(width, height)
                return Mix(images=tokens) if tokens else self.text_mix(part.words)
            case Opaque(json=json):
                return Mix(min(self.count_text(json), 2000))

    def _fixed(self, text: str) -> Mix:
        """The tokens of a text by kind, remembered."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) > 512:
                self._texts.clear()
            known = self._texts[text] = self.text_mix(text)
        return known


def _characters(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text))) if text else 0


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to `weights` whose sum is exactly `total` (largest remainder method)."""
    whole = sum(weights)
    if whole <= 0:
        return [0 for _ in weights]
    exact = [total * w / whole for w in weights]
    parts = [math.floor(x) for x in exact]
    by_remainder = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts
