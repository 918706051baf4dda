"""Of the stemmers' package only what is asked for is loaded."""

from __future__ import annotations

import subprocess
import sys

ONE = """
import sys
from ctxchat.storage.words import stem
print(stem("harbours"), *sorted(name for name in sys.modules if name.endswith("_stemmer")))
"""

ALL = """
import snowballstemmer
from ctxchat.storage.words import LANGUAGES, _stemmer
for language in LANGUAGES:
    assert type(_stemmer(language)) is snowballstemmer._languages[language], language
print(len(LANGUAGES))
"""


def said(code: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_word_loads_the_stemmer_of_its_language_alone() -> None:
    assert said(ONE) == ["harbour", "snowballstemmer.english_stemmer"]


def test_each_language_has_the_one_of_the_package() -> None:
    assert said(ALL) == ["9"]
