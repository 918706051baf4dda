"""The looks: themes in Textual's terms, and style sheets."""

from pathlib import Path

STYLE = Path(__file__).parent
"""Where the style sheets are."""

MUTED = "$text-muted"
"""The ink of what is quiet."""
