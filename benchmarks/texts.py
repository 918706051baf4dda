"""Texts of the kinds that tokenizers count differently: English prose, code, JSON, Chinese, Japanese. The same seed gives the
same text; prose is the project's own pages, code Python's own modules."""

from __future__ import annotations

import asyncio
import json
import random
from functools import cache
from pathlib import Path

KINDS = ("prose", "code", "json", "chinese", "japanese")

_ROOT = Path(__file__).parents[1]

_CHINESE = (
    "昨天下午我们把服务器搬到了新的机房,结果有三台机器没有启动。",
    "请先阅读配置文件,再决定是否需要修改缓存的大小。",
    "这个函数在处理空列表的时候会抛出异常,应该在入口处检查参数。",
    "老城区的茶馆里,几位老人一边下棋一边谈论天气和收成。",
    "数据库的索引建立之后,查询时间从两秒降到了十毫秒左右。",
    "她打开窗户,看见远处的山被雾气笼罩,只剩下淡淡的轮廓。",
    "如果内存不足,程序会把较旧的结果写入磁盘,以后需要时再读取。",
    "会议决定推迟发布日期,因为测试中发现了两个严重的问题。",
    "孩子们在河边放风筝,风很大,线一直绷得很紧。",
    "我们比较了四种算法,发现排序方式对最终结果几乎没有影响。",
    "合同第七条规定,任何一方提前解约都应当提前三十天书面通知对方。",
    "他在图书馆工作了二十年,能准确说出每一本书放在哪个书架上。",
    "日志里没有任何错误,但是用户反映页面打开得非常慢。",
    "春天的菜市场很热闹,刚摘下来的蔬菜上还带着露水。",
    "为了保证安全,所有密码都必须经过加密之后才能保存。",
    "火车经过隧道的时候,车厢里忽然安静下来,只听见车轮的声音。",
    "建议把重复的代码提取成一个单独的模块,并补充相应的单元测试。",
    "这家公司的收入去年增长了百分之十二,主要来自海外市场。",
)

_JAPANESE = (
    "昨日の会議では、新しい設計について長い時間をかけて話し合いました。",
    "この関数は空の文字列を受け取るとエラーになるので、最初に確認してください。",
    "駅前の小さなパン屋は、朝七時になるともう行列ができている。",
    "データベースの接続が切れた場合は、三回まで自動的に再試行します。",
    "祖母は庭で育てたトマトを毎年近所の人たちに配っていた。",
    "設定ファイルを書き換えたあと、サーバーを再起動する必要があります。",
    "雨がやんだので、子どもたちは傘を置いて公園へ走っていった。",
    "テストが失敗した原因は、タイムゾーンの違いによるものでした。",
    "彼は古い地図を広げて、川に沿った道を指でゆっくりたどった。",
    "メモリの使用量を減らすために、古い結果は順番に捨てられます。",
    "図書館の窓からは、色づきはじめた銀杏の並木が見えた。",
    "契約の変更については、一か月前までに書面でお知らせください。",
    "ログを調べたところ、夜中の二時ごろに処理が止まっていました。",
    "新しいカメラのレンズは軽くて、旅行に持っていくのにちょうどいい。",
    "検索の結果が多すぎるときは、条件をもう一つ追加してみてください。",
    "港に着いた船から、氷の箱に入った魚が次々と降ろされていく。",
    "利用者が増えるにつれて、応答時間が少しずつ長くなっています。",
    "先生は黒板に大きな円を描き、その中心に小さな点を打った。",
)


class Texts:
    """An endless supply. `take(kind, tokens)` gives about so many tokens of a kind, never twice the same."""

    def __init__(self, seed: int = 1) -> None:
        self._chance = random.Random(seed)

    def take(self, kind: str, tokens: int) -> str:
        """About so many tokens, by rule of thumb."""
        match kind:
            case "json":
                return self._json(tokens)
            case "chinese":
                return self._sentences(_CHINESE, tokens)
            case "japanese":
                return self._sentences(_JAPANESE, tokens)
            case "code":
                return self._excerpt(_modules(), tokens * 4)
            case _:
                return self._excerpt(_pages(), tokens * 4)

    def _sentences(self, pool: tuple[str, ...], tokens: int) -> str:
        count = max(1, tokens // 22)
        return "".join(self._chance.choice(pool) for _ in range(count))

    def _excerpt(self, whole: str, characters: int) -> str:
        start = self._chance.randrange(max(1, len(whole) - characters))
        return whole[start : start + characters]

    def _json(self, tokens: int) -> str:
        chance, rows = self._chance, max(1, tokens // 60)
        made = [
            {
                "id": f"{chance.getrandbits(64):016x}",
                "name": f"{chance.choice(('billing', 'search', 'export'))}-{chance.randrange(1000)}",
                "at": f"2025-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T{chance.randrange(24):02}:30:00Z",
                "took_ms": round(chance.expovariate(0.01), 3),
                "ok": chance.random() < 0.9,
                "tags": chance.sample(("nightly", "manual", "retry", "eu", "us"), 2),
            }
            for _ in range(rows)
        ]
        return json.dumps(made, indent=chance.choice((None, 2)))


@cache
def _pages() -> str:
    return "\n\n".join(path.read_text("utf-8") for path in sorted((_ROOT / "docs").glob("*.md")))


@cache
def _modules() -> str:
    """Python's own: what is measured with it does not move with every change of ours."""
    return "\n\n".join(path.read_text("utf-8") for path in sorted(Path(asyncio.__file__).parent.glob("*.py")))
