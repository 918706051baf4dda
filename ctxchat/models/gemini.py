"""What litellm does not tell of Gemini's streams: whether a reply came to its end, and that nothing comes any more.

It reads them without the timeout it was given, and makes a reason up where a stream just stops. Does not import litellm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ctxchat.models.patience import pieces, within


def is_gemini(model: str) -> bool:
    """litellm reads this model's streams in that way."""
    return model.startswith(("gemini/", "vertex_ai/gemini"))


class GeminiStream:
    """One stream, heard piece by piece. `ended`: the provider has said why the reply ended."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self.stream = stream
        self._seconds = seconds
        self.ended = False

    async def chunks(self) -> AsyncIterator[Any]:
        """litellm's chunks. Raises TimeoutError when none comes in time."""
        await within(self._seconds, self.stream.fetch_stream())
        self._watch(self.stream.completion_stream)
        async for chunk in pieces(self.stream, self._seconds):
            yield chunk

    def _watch(self, raw: Any) -> None:
        """Look at what is read on its way into litellm's own form; where that cannot be done, every end is believed."""
        parse = getattr(raw, "chunk_parser", None)
        self.ended = parse is None
        if parse is None:
            return

        def seen(chunk: dict[str, Any]) -> Any:
            candidates = chunk.get("candidates") or ()
            blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
            self.ended = self.ended or bool(blocked) or any(c.get("finishReason") for c in candidates)
            return parse(chunk)

        raw.chunk_parser = seen
