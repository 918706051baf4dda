"""Learns before the first message how a model counts tokens: asks its local server to tokenize a few sample texts (`/tokenize` of
llama.cpp and vLLM), or else goes by the vocabulary of the model's family (`vocabularies`).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec

from ctxchat.core.calibration import DOUBT, Calibration
from ctxchat.core.tokens import TokenCounter
from ctxchat.models.dialects import Dialect
from ctxchat.models.probes import probe
from ctxchat.models.settings import ModelSettings
from ctxchat.models.tokenizers import counter
from ctxchat.models.vocabularies import assumed, table_of, vocabulary_of, vocabulary_told

SAMPLES = (
    """The old lighthouse keeper wrote down the weather twice a day, although nobody had asked him to for years. He noted
the wind, the colour of the water and the ships that passed, and when the evening was clear he added a line about the stars.
His books fill a whole shelf in the harbour office now, and people who study the coast say that nothing like them exists
anywhere else.
""",
    """def overdue(loans, today, *, grace=0):
    late = []
    for loan in sorted(loans, key=lambda loan: loan.due):
        if loan.returned is None and (today - loan.due).days > grace:
            late.append((loan.reader, loan.title))
    return late or None


class Shelf:
    def __init__(self, name: str) -> None:
        self._books = {}
        self.name = f"{name}/"
""",
    """[{"id": "48213f0c9a71b2de", "at": "2025-03-17T08:41:05Z", "price": 129.95, "ok": true, "tags": ["new", "eu-7"]},
{"id": "0d77a1e34bc58f92", "at": "2025-03-17T08:44:52Z", "price": 7.5, "ok": false, "tags": []}]
-rw-r--r-- 1 user staff  73812 Nov 14 09:26 report-2025-11.csv
-rw-r--r-- 1 user staff 108044 Nov 15 22:03 report-2025-12.csv
""",
    """图书馆在河的另一边,要走过一座石桥才能到。周末的下午,窗边的座位总是很快就坐满了,学生们在那里写作业,老人们看报纸。
管理员会提醒大家在闭馆之前把书放回原来的位置,并且把借书的日期登记清楚。如果程序出错,请先查看日志再重新启动服务。
""",
    """図書館は川の向こう側にあり、石の橋を渡って行きます。週末の午後になると、窓ぎわの席はすぐにいっぱいになります。
閉館の前には、本を元の場所に戻すようにという放送が流れます。プログラムが止まったときは、まず記録を確認してから再起動してください。
""",
)
"""The sample texts: prose, code, rows of figures, Chinese, Japanese. Their counts with known vocabularies are in
`vocabularies`."""


async def sampled(settings: ModelSettings, dialect: Dialect) -> Calibration:
    """The calibration (how the model's counts compare with ours) to begin with, before any reply. Takes two seconds at most."""
    if not settings.base:
        return _supposed(settings.name, dialect)
    root = re.sub(r"/v\d+$", "", settings.place)
    answers = await asyncio.gather(*(_ask_model(root, settings.model, text) for text in SAMPLES))
    return await asyncio.to_thread(_model_knowledge, settings.name, dialect, tuple(map(tokens_in, answers)))


async def _ask_model(root: str, model: str, text: str) -> Any:
    """A server's answer to the question how it tokenizes a text. llama.cpp reads `content`, vLLM the other fields; both ignore
    the rest."""
    body: dict[str, object] = {"content": text, "model": model, "prompt": text, "add_special_tokens": False}
    return await probe(f"{root}/tokenize", post=body)


def tokens_in(answer: Any) -> int:
    """The number of tokens in an answer of `/tokenize`; 0 for any other answer."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    return len(tokens) if isinstance(tokens, list) else 0


def _model_knowledge(name: str, dialect: Dialect, told: tuple[int, ...]) -> Calibration:
    """The calibration by a server's counts of the samples (`told`; 0 where it gave none).

    Where the counts are those of a known vocabulary, its rates; else rates learned from the samples. The latter count as no
    sample and keep at least a third of the usual doubt, since the samples are short and no reply has confirmed them.
    """
    if not any(told):
        return _supposed(name, dialect)
    if known := vocabulary_told(told):
        return assumed(known, table_of(name), dialect)
    token_counter, learned = TokenCounter(counter(name)), assumed(None, table_of(name), dialect)
    for text, tokens in zip(SAMPLES, told, strict=True):
        if tokens:
            learned = learned.learn(tokens, token_counter.text_mix(text), whole=False)
    doubts = tuple(max(doubt, usual / 3) for doubt, usual in zip(learned.doubts, DOUBT, strict=True))
    return msgspec.structs.replace(learned, doubts=doubts, samples=0)


def _supposed(name: str, dialect: Dialect) -> Calibration:
    """The calibration by the model's name alone."""
    return assumed(vocabulary_of(name), table_of(name), dialect)
