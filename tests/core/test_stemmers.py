"""Of the stemmers' package only what is asked for is loaded, and threads do not disturb each other."""

from __future__ import annotations

import subprocess
import sys
import threading

from ctxchat.core.stems import _stem, stem

ONE = """
import sys
from ctxchat.core.stems import stem
print(stem("harbours"), *sorted(name for name in sys.modules if name.endswith("_stemmer")))
"""

ALL = """
import snowballstemmer
from ctxchat.core.stems import LANGUAGES, _stemmer
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


def test_threads_that_stem_at_once_find_what_one_finds() -> None:
    ends = ("ational", "ivenesses", "fully", "izations", "ousness", "ingly", "ements", "icalities")
    names = [f"{a}{b}{end}" for a in "bcdfghklmnprst" for b in ("ar", "on", "ir", "ul") for end in ends]
    expected = [stem(name) for name in names]
    found: list[list[str]] = []
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            _stem.cache_clear()
            threads = [threading.Thread(target=lambda: found.append([stem(name) for name in names])) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert found == [expected] * 20
