"""Counting tokens: what a message, a tool or a text weighs, in all and by kind.

Knows no tokenizer: a counter is handed in (`ctxchat.models.tokenizers` has the real ones). Counts are cached per message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from ctxchat.core.calibration import Mix, total
from ctxchat.core.messages import Image, Message, Opaque, Text

Count = Callable[[str], int]
"""Text in, tokens out. Never raises and never stalls, whatever the text."""

CountImage = Callable[[int, int], int]
"""Width and height in pixels in, tokens out; 0 for a model that is shown none, but words in their place."""

MESSAGE_OVERHEAD_TOKENS = 4
"""Tokens a message costs beyond its words: role and delimiters (OpenAI's cookbook says 3 to 4)."""

TOOL_OVERHEAD_TOKENS = 8
"""Tokens a tool schema costs beyond its JSON text, from llama.cpp's and OpenAI's templates."""

_BEYOND = re.compile("[\u0370-\U0010ffff]+")
_HAN = re.compile("[\u2e80-\u2fff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff]+")
_DIGITS = b"0123456789"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_MARKS = _DIGITS + bytes(c for c in range(128) if chr(c).isalpha() or chr(c).isspace())

_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


def rough_count(text: str) -> int:
    """An estimate without a tokenizer that errs upward: three ASCII characters, or less than one other, a token."""
    narrow = len(text.encode("ascii", "ignore"))
    wide = len(text) - narrow
    emoji = sum(1 for _ in _EMOJI.finditer(text)) if wide else 0
    return math.ceil(narrow / 3 + 1.2 * wide + 1.8 * emoji)


def image_tokens(width: int, height: int) -> int:
    """What an image costs by its size in pixels, by the tile rule OpenAI documents (85 + 170 a 512-pixel tile).

    An image of unknown size counts as a large square one, 765. The bytes of the image never matter.
    """
    if width <= 0 or height <= 0:
        return 765
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * max(1, tiles)


class TokenCounter:
    """Raw token counts with one counter, remembered per message. The only state is the memory of what was counted."""

    def __init__(self, count: Count = rough_count, image: CountImage = image_tokens) -> None:
        self._count = count
        self._image = image
        self._messages: dict[Message, Mix] = {}
        self._texts: dict[str, Mix] = {}

    def count_text(self, text: str) -> int:
        """Tokens of a text that changes often; not remembered."""
        return self._count(text) if text else 0

    def text_mix(self, text: str) -> Mix:
        """As `text`, by kind."""
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
        """`fixed` has counted this text before."""
        return text in self._texts

    def tool(self, schema: str) -> int:
        """Tokens of one tool, from its schema as JSON text."""
        return self.fixed(schema) + TOOL_OVERHEAD_TOKENS

    def message(self, message: Message) -> int:
        """Tokens of one message: words, call names and arguments, reasoning, images, overhead."""
        return self.mix(message).raw

    def mix(self, message: Message) -> Mix:
        """As `message`, by kind."""
        known = self._messages.get(message)
        if known is None:
            known = self._messages[message] = self.draft_mix(message)
        return known

    def forget_images(self) -> None:
        """Count messages with images anew: whether the model is shown them may be known only now."""
        for message in list(self._messages):
            if any(isinstance(part, Image) for part in message.content):
                self._messages.pop(message, None)

    def forget_all_but(self, messages: Iterable[Message]) -> None:
        """Remember the counts of these messages only: of those that left the view for good they would pile up with the record."""
        known = self._messages
        self._messages = {message: known[message] for message in messages if message in known}

    def draft_mix(self, message: Message) -> Mix:
        """As `mix`, for a message that is not kept, such as a draft; not remembered."""
        if message.empty and not message.reasoning:
            return Mix()
        parts = [Mix(MESSAGE_OVERHEAD_TOKENS * (1 + len(message.calls))), self.text_mix(message.name)]
        if isinstance(message.content, str):
            parts.append(self.text_mix(message.content))
        else:
            parts += map(self.part_mix, message.content)
        for call in message.calls:
            parts += (self.text_mix(call.name), self.text_mix(call.arguments))
        if message.reasoning:
            parts.append(self.text_mix(message.reasoning.text))
        return total(parts)

    def part(self, part: Text | Image | Opaque) -> int:
        """Tokens of one part of a message. Texts that came along as files are remembered: they are counted with every key."""
        return self.part_mix(part).raw

    def part_mix(self, part: Text | Image | Opaque) -> Mix:
        """As `part`, by kind."""
        match part:
            case Text(name=name):
                return self._fixed(part.words) if name else self.text_mix(part.text)
            case Image(width=width, height=height):
                tokens = self._image(width, height)
                return Mix(images=tokens) if tokens else self.text_mix(part.words)
            case Opaque(json=json):
                return Mix(min(self.count_text(json), 2000))

    def _fixed(self, text: str) -> Mix:
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) > 512:
                self._texts.clear()
            known = self._texts[text] = self.text_mix(text)
        return known


def _characters(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text))) if text else 0


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in the proportion of `weights` that add up to `total` exactly (largest remainder)."""
    whole = sum(weights)
    if whole <= 0:
        return [0 for _ in weights]
    exact = [total * w / whole for w in weights]
    parts = [math.floor(x) for x in exact]
    by_rest = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in by_rest[: total - sum(parts)]:
        parts[i] += 1
    return parts
