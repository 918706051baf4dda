"""Which language a text is in, told by its script and its smallest words. Knows eight; everything else counts as English."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "de", "fr", "es", "pt", "it", "ja", "zh"]


def bag(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


SMALL: dict[Language, frozenset[str]] = {
    "en": bag(
        """a about above after again all also am an and any are as at be because been before being between both but by
        can could did do does doing done down each few for from further had has have having he her here hers him his how i
        if in into is it its itself just let me more most much many my no nor not now of off often on once only or other
        our out over own please same she should so some such than that the their them then there these they this those
        through to too under until up us very want was we were what when where which while who whom whose why will with
        would you your"""
    ),
    "de": bag(
        """aber alle als also am an auch auf aus bei bin bis bitte da damit das dass dein dem den der des die dies diese
        dieser doch dort du durch ein eine einem einen einer es für gibt hat habe haben hier ich ihr im in ist ja jede kann
        kein keine mein mich mir mit nach nicht noch nur ob oder oft ohne sein sich sie sind so über um und uns unser unter
        viel viele vom von vor wann war warum was welche welchem welchen welcher welches wenn wer werden wessen wie wir wird
        wo woher wohin wurde zu zum zur"""
    ),
    "fr": bag(
        """à au aux avec ce ces cela cette comment combien dans de des du elle elles en est et être été fait il ils je
        l la le les leur lui ma mais me mes moi mon ne nos notre nous on où ou par pas plus pour pourquoi qu quand que
        quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes ton tu un une vos votre vous y a d
        c j n s"""
    ),
    "es": bag(
        """a al algo como cómo con cual cuál cuáles cuándo cuánto cuántos de del dónde donde el él ella ellos en entre es
        esa ese eso esta está este esto están fue ha hay la las le les lo los más me mi mis muy no nos o para pero por
        porque qué que quién se según ser si sí sin sobre son su sus también te tiene tu un una unos y ya yo"""
    ),
    "pt": bag(
        """a ao aos as às até com como da das de dela dele do dos e é ela ele eles em entre era essa esse esta está este
        eu foi há isso isto já lhe mais mas me mesmo meu minha muito na nas não nem no nos nós o onde os ou para pela pelo
        por porque qual quais quando quanto quantos que quem se sem ser seu sua são só sobre também te tem um uma você
        """
    ),
    "it": bag(
        """a ad agli ai al alla alle anche c che chi ci come con cosa così da dagli dal dalla degli dei del dell della
        delle di dove dov e è ed gli ha hanno ho i il in io l la le lei lo loro lui ma mi mia mio ne nei nel nella noi non
        o per perché più può qual quale quali quando quanto quanti questa questo qui se sei si sono su sua sul sulla suo
        tra tu un una uno voi"""
    ),
    "ja": bag("です ます した して する ある いる から まで こと もの これ それ あれ どこ なに 何 どの この その"),
    "zh": bag("的 了 是 吗 在 有 我 你 他 们 什么 怎么 哪个 哪里 哪 这 那 个 和 与 请 多少 为什么 如何 时候 的话"),
}
"""The small words of each language: no use in a search, and the best sign of which language it is."""

_WORD = re.compile(r"(?<![\w./\\])(?<!\s-)[^\W\d_]+(?![\w/\\])")
"""A word, but no option of a command (`-l`) and no part of a path or a name."""
_CODE = re.compile(r"`[^`]+`")
_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_ENOUGH = 4_000


def detect(*texts: str) -> Language:
    """The language of the first of these texts that shows one clearly; English when none does."""
    for text in texts:
        if found := _clear(text[:_ENOUGH]):
            return found
    return "en"


def _clear(text: str) -> Language | None:
    text = _CODE.sub(" ", text)
    letters = len(_WORD.findall(text))
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    if kana + han > letters:
        return "ja" if kana * 10 > han else "zh"
    words = [w.casefold() for w in _WORD.findall(text)]
    scores = {code: sum(w in small for w in words) for code, small in SMALL.items()}
    best: Language = max(SMALL, key=lambda code: scores[code])
    second = max(score for code, score in scores.items() if code != best)
    return best if scores[best] >= 2 and scores[best] > second else None
