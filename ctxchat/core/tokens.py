"""Counting tokens: what a message, a tool or a text weighs, and how a server's own count corrects the estimate.

Knows no tokenizer: a counter is handed in (`ctxchat.models.tokenizers` has the real ones). Counts are cached per message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import msgspec

from ctxchat.core.messages import Image, Message, Opaque, Text, ToolCall

Count = Callable[[str], int]
"""Text in, tokens out. Never raises and never stalls, whatever the text."""

MESSAGE_OVERHEAD = 4
"""Tokens a message costs beyond its words: role and delimiters (OpenAI's cookbook says 3 to 4)."""

TOOL_OVERHEAD = 8
"""Tokens a tool schema costs beyond its JSON text, from llama.cpp's and OpenAI's templates."""

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


class Meter:
    """Raw token counts with one counter, remembered per message. The only state is the memory of what was counted."""

    def __init__(self, count: Count = rough_count) -> None:
        self._count = count
        self._messages: dict[Message, int] = {}
        self._texts: dict[str, int] = {}

    def text(self, text: str) -> int:
        """Tokens of a text that changes often; not remembered."""
        return self._count(text) if text else 0

    def fixed(self, text: str) -> int:
        """Tokens of a text that comes back with every request (a prompt, a schema); remembered."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) > 512:
                self._texts.clear()
            known = self._texts[text] = self.text(text)
        return known

    def tool(self, schema: str) -> int:
        """Tokens of one tool, from its schema as JSON text."""
        return self.fixed(schema) + TOOL_OVERHEAD

    def message(self, message: Message) -> int:
        """Tokens of one message: words, call names and arguments, reasoning, images, overhead."""
        known = self._messages.get(message)
        if known is None:
            known = self._messages[message] = self.weigh(message)
        return known

    def weigh(self, message: Message) -> int:
        """Tokens of a message that is not kept, such as a draft; not remembered."""
        if message.empty and not message.reasoning:
            return 0
        total = MESSAGE_OVERHEAD + self.text(message.name)
        if isinstance(message.content, str):
            total += self.text(message.content)
        else:
            total += sum(self._part(part) for part in message.content)
        total += sum(self._call(call) for call in message.calls)
        if message.reasoning:
            total += self.text(message.reasoning.text)
        return total

    def _part(self, part: Text | Image | Opaque) -> int:
        match part:
            case Text(text=text):
                return self.text(text)
            case Image(width=width, height=height):
                return image_tokens(width, height)
            case Opaque(json=json):
                return min(self.text(json), 2000)

    def _call(self, call: ToolCall) -> int:
        return self.text(call.name) + self.text(call.arguments) + MESSAGE_OVERHEAD


class Calibration(msgspec.Struct, frozen=True):
    """How a model's real counts compare with the estimates. `ratio` is real / estimated, `band` the share by which a
    single estimate may still be off, `samples` how many replies have confirmed it."""

    ratio: float = 1.0
    band: float = 0.25
    samples: int = 0

    def learn(self, *, real: int, raw: int) -> Calibration:
        """The calibration after a server counted `real` tokens where we counted `raw`; senseless figures change nothing."""
        if raw < 50 or not 0 < real < math.inf:
            return self
        seen = min(4.0, max(0.25, real / raw))
        weight = max(0.3, 1 / (self.samples + 1))
        ratio = self.ratio + weight * (seen - self.ratio)
        error = abs(seen / self.ratio - 1) if self.samples else 0.1
        band = min(0.5, max(0.01, self.band + weight * (error - self.band)))
        return Calibration(ratio=ratio, band=band, samples=self.samples + 1)

    def apply(self, raw: int) -> int:
        """The best estimate for a raw count."""
        return round(raw * self.ratio)


class Anchor(msgspec.Struct, frozen=True):
    """A count from the server that the gauge stands on.

    `tokens` is what it counted (prompt with its cached part once, plus the reply), `raw` our count of the very same
    content, `passes` how many compactions were in force: a view with another number of them ignores the anchor. `model`
    is whose server counted: no other model stands on it.
    """

    tokens: int
    raw: int
    passes: int
    model: str = ""


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
