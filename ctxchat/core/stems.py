"""Turns a text into the words of the search index: the stems of its words, and of identifiers the parts and the whole, each once.

Depends on nothing but the text, because FTS5 (SQLite's full-text search) can remove a text from the index only by exactly the
words with which it was added.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from itertools import islice
from typing import Any

UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
"""Characters of scripts that are written without spaces between words; in the index each is a word."""

MARK = "\ue000"
"""The first character of words of the index that are no words of the text: marks for a message's language, role and tool."""

_APART = re.compile(f"({UNSPACED})")
_SPELLED_NAME = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_SEAM = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_WORD_LETTERS = 40  # letters of a word: what is longer is a key or a picture in letters
_MAX_LANGUAGE_WORDS = 2_000  # words by which a language is told

_FUNCTION_WORDS = {
    "english": """a about again all also an and any are as at be because been before being but by can could did do does doing
        each exactly for from further had has have having he her here hers him his how i if in into is it its itself just me
        more most my no nor not of off on once only or other our out over own please same she should so some such tell than
        that the their them then there these they this those through to too under until up us very was we were what when
        where which while who whom why will with would you your yours""",
    "german": """aber als am an auch auf aus bei bin bis da dann das dass dem den der des die doch du ein eine einem einen einer
        es für haben hat ich ihr im in ist ja kann mein mit nach nicht noch nur oder sein sich sie sind so über um und uns von
        war warum was wie wir wird wo wurde zu zum zur""",
    "french": """à au aux avec ce ces cette comme d dans de des du elle en est et eux il ils j je l la le les leur lui ma mais
        me même mes mon ne nos notre nous on ou où par pas pour qu que quel quelle qui s sa se ses son sont sur ta te tu un une
        vos votre vous était""",
    "spanish": """al algo como con cuál cuando de del desde donde dónde el ella ellos en entre era es esta este está fue ha hay
        la las le les lo los me mi muy más no nos o para pero por porque qué que quien se sin sobre su sus también te un una y
        ya yo""",
    "italian": """a al alla anche che chi ci come con cosa da dal dalla dei del della di dove e ed era gli ha hai ho i il in io
        la le lo ma mi nel nella non o per perché più quale quando quanto questa questo se si sono su sua suo tra un una è""",
    "portuguese": """ao aos as com como da das de do dos e ela ele em era essa esse esta este eu foi isso já mais mas me meu muito
        na nas no nos não o os ou para pela pelo por porque qual quando que quem se sem ser seu sua são também um uma você à é""",
    "dutch": """aan als bij dat de deze die dit door een en er geen had heb heeft het hier hij hoe ik in is je kan maar me met
        mijn naar niet nog nu of om onder ook op over te toen tot uit van voor waar waarom was wat we wel werd wie zijn zij""",
    "swedish": """allt att av blev bli då de den det dig din du efter ej eller en er ett från för ha hade han har hon hur i icke
        inte jag kan man med men mig min mot ni nu när och om oss på sig sin ska som så till upp ut var vad vi vid än är""",
    "russian": """а без был была было быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как
        когда кто ли мне мы на нас не него нет ни но о об он она они от по при с со так то только ты у уже что чтобы это я""",
}
LANGUAGES = tuple(_FUNCTION_WORDS)
_STOP = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_ALSO = frozenset(
    ("don", "doesn", "didn", "isn", "wasn", "won", "ll", "ve", "re", "t", "s", "d", "m")
)  # what an apostrophe leaves


def apart(text: str) -> str:
    """The text with blanks around each character of a script without spaces, so that each counts as a word."""
    return text if text.isascii() else _APART.sub(r" \1 ", text)


def fold(text: str) -> str:
    """The text without accents, of the same length."""
    return text if text.isascii() else "".join(map(_base, text))


@lru_cache(maxsize=4096)
def _base(character: str) -> str:
    return unicodedata.normalize("NFD", character)[0]


def language_of(text: str) -> str:
    """The language of a text: the one whose function words (`the`, `der`) occur in it most; English where none do."""
    return _language(_SPELLED_NAME.findall(text.lower())[:_MAX_LANGUAGE_WORDS])


def empty(word: str, language: str = "english") -> bool:
    """True for a function word (in lower case), which is too common to be searched for."""
    return word in _STOP.get(language, ()) or (language == "english" and word in _ALSO)


def stem(word: str, language: str = "english") -> str:
    """The stem of a word (in lower case), which all its forms share. Unchanged for what is no plain word, such as a name with a
    digit, and where `language` is empty."""
    return _stem(word, language) if language and word.isalpha() and 2 < len(word) <= _MAX_WORD_LETTERS else word


@lru_cache(maxsize=10_000)
def _stem(word: str, language: str) -> str:
    with _one_by_one:
        return str(_stemmer(language).stemWord(word))


_one_by_one = threading.Lock()
"""Held while a stemmer works, since it keeps the word in itself, and several stores (one for each folder of an editor) have
threads of their own."""


def indexed(text: str, role: str = "", tools: str = "") -> str:
    """The words of the index for a message, separated by blanks, with marks for its language, `role` and `tools`; both are names
    with blanks between them."""
    names = dict.fromkeys(_SPELLED_NAME.findall(text))
    language = _language([name.lower() for name in islice(names, _MAX_LANGUAGE_WORDS)])
    found: dict[str, None] = {mark("language", language): None}
    found.update(dict.fromkeys(mark("role", name) for name in role.split()))
    found.update(dict.fromkeys(mark("tool", name) for name in tools.split()))
    for name in names:
        found.update(forms(name, language))
    return " ".join(found)


def mark(kind: str, value: str) -> str:
    """The word of the index that marks a message's `kind` (`language`, `role`, `tool`) as `value`."""
    return MARK + kind + re.sub(r"[\W_]", "", value).lower()


def forms(name: str, language: str = "english") -> dict[str, None]:
    """The words of the index for a word or an identifier: its stem, or the stems of its parts and the whole, the same for every
    way of writing it (`keepRecent`, `keep_recent`). Empty for function words. An empty `language` means no stemming."""
    may_recur = name.isalpha()  # numbers and hashes seldom do, and would push words out of the cache
    return _remembered(name, language) if may_recur else _forms(name, language)


def _forms(name: str, language: str) -> dict[str, None]:
    """What `forms` returns, computed."""
    pieces = [piece.lower() for piece in _SEAM.split(name) if piece]
    whole = "".join(pieces)
    if len(whole) > 4 * _MAX_WORD_LETTERS:
        return {}
    words = [stem(piece, language) for piece in pieces if not empty(piece, language)]
    if len(pieces) > 1:
        words.append(whole)
    return dict.fromkeys(apart(word) for word in words)


_remembered = lru_cache(maxsize=10_000)(_forms)


def _language(words: Sequence[str]) -> str:
    """The language with the most function words among these words."""
    distinct = set(words)
    return max(LANGUAGES, key=lambda language: len(distinct & _STOP[language]))


@cache
def _stemmer(language: str) -> Any:
    """The stemmer of one language. Importing `snowballstemmer` would load all 36 languages (3 MB), so an empty module takes the
    place of the package, and only the language's own module is imported."""
    package = find_spec("snowballstemmer")
    assert package
    sys.modules.setdefault(package.name, module_from_spec(package))
    return getattr(import_module(f"{package.name}.{language}_stemmer"), f"{language.title()}Stemmer")()
