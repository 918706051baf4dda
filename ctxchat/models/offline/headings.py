"""The sections of a summary and their names in eight languages, and the words that tell which sentence belongs where."""

from __future__ import annotations

import re
from typing import Literal, get_args

from ctxchat.models.offline.language import Language

Part = Literal["goal", "rules", "decisions", "progress", "failed", "files", "next", "exact"]
PARTS: tuple[Part, ...] = get_args(Part)

Tag = Literal["", "settled", "open", "done", "doing", "blocked", "now", "read", "changed"]
MARKS: tuple[Tag, ...] = get_args(Tag)[1:]

_HEADINGS: dict[Language, str] = {
    "en": "Goal | Constraints and user rules | Decisions | Progress | "
    "Failed attempts | Files | Next steps | Exact identifiers",
    "de": "Ziel | Vorgaben und Regeln | Entscheidungen | Fortschritt | "
    "Fehlversuche | Dateien | Nächste Schritte | Genaue Bezeichner",
    "fr": "Objectif | Contraintes et règles | Décisions | Avancement | "
    "Tentatives échouées | Fichiers | Prochaines étapes | Identifiants exacts",
    "es": "Objetivo | Restricciones y reglas | Decisiones | Progreso | "
    "Intentos fallidos | Archivos | Próximos pasos | Identificadores exactos",
    "pt": "Objetivo | Restrições e regras | Decisões | Progresso | "
    "Tentativas falhadas | Arquivos | Próximos passos | Identificadores exatos",
    "it": "Obiettivo | Vincoli e regole | Decisioni | Avanzamento | "
    "Tentativi falliti | File | Prossimi passi | Identificatori esatti",
    "ja": "目的 | 制約とルール | 決定事項 | 進捗 | 失敗した試み | ファイル | 次の手順 | 正確な識別子",
    "zh": "目标 | 约束与规则 | 决定 | 进展 | 失败的尝试 | 文件 | 后续步骤 | 精确标识",
}
_TAGS: dict[Language, str] = {
    "en": "settled | open | done | in progress | blocked | now | read | changed",
    "de": "entschieden | offen | erledigt | in Arbeit | blockiert | jetzt | gelesen | geändert",
    "fr": "décidé | ouvert | fait | en cours | bloqué | maintenant | lu | modifié",
    "es": "decidido | abierto | hecho | en curso | bloqueado | ahora | leído | cambiado",
    "pt": "decidido | em aberto | feito | em andamento | bloqueado | agora | lido | alterado",
    "it": "deciso | aperto | fatto | in corso | bloccato | ora | letto | modificato",
    "ja": "決定 | 未決 | 完了 | 進行中 | 停止中 | 現在 | 閲覧 | 変更",
    "zh": "已定 | 未定 | 完成 | 进行中 | 受阻 | 当前 | 已读 | 已改",
}

HEADINGS: dict[Language, dict[Part, str]] = {
    code: dict(zip(PARTS, row.split(" | "), strict=True)) for code, row in _HEADINGS.items()
}
"""What each section is called."""

TAGS: dict[Language, dict[Tag, str]] = {
    code: dict(zip(MARKS, row.split(" | "), strict=True)) for code, row in _TAGS.items()
}
"""What stands before a note that has a tag."""

_FLAGS = re.I | re.X

RULE = re.compile(
    r"""\b(?:always|never|must(?:\ not)?|don['’]t|do\ not|make\ sure|prefer|avoid|only\ use|use\ only|from\ now\ on)\b
    | \bremember\ (?:to|that)\b
    | \b(?:immer|niemals|nie|muss|müssen|darf|dürfen|ab\ jetzt|nur\ noch)\b
    | \b(?:toujours|jamais|il\ faut|dois|doit|désormais)\b | \b(?:siempre|nunca|debes?|no\ uses|evita)\b
    | \b(?:sempre|jamais|deve[ms]?|não\ use|evite)\b | \b(?:mai|devi|devono|non\ usare|evita)\b
    | 必ず | しないで | 禁止 | 常に | 必须 | 不要 | 总是 | 始终 | 请勿 | 一定要""",
    _FLAGS,
)
SETTLED = re.compile(
    r"""\b(?:decided|we['’]ll\ use|we\ will\ use|let['’]s\ (?:use|go|keep|take)|go(?:ing)?\ with|we\ chose|agreed|settled\ on)\b
    | \b(?:entschieden|wir\ nehmen|einigen\ uns|beschlossen)\b | \b(?:décidé|on\ prend|choisi|convenu)\b
    | \b(?:decidid[oa]|decidimos|acordamos|elegimos|usaremos)\b | \b(?:ficou\ decidido|escolhemos|vamos\ usar)\b
    | \b(?:deciso|scelto|abbiamo\ scelto|usiamo|useremo)\b | 決め(?:た|ました) | 採用 | にしましょう | 决定 | 采用 | 选定""",
    _FLAGS,
)
OPEN = re.compile(
    r"""\b(?:open\ question|undecided|not\ (?:yet\ )?decided|tbd|to\ be\ decided|should\ we|still\ unclear)\b
    | \b(?:noch\ offen|noch\ nicht\ entschieden|sollen\ wir|sollten\ wir)\b | \b(?:à\ décider|devons-nous|faut-il)\b
    | \b(?:por\ decidir|pendiente|deberíamos)\b | \b(?:em\ aberto|a\ decidir|devemos|devíamos)\b
    | \b(?:da\ decidere|dovremmo)\b | 未定 | 検討中 | べきか | 待定 | 未决定 | 要不要 | 是否应该""",
    _FLAGS,
)
FAILED = re.compile(
    r"""\b(?:did\ ?n[o'’]t\ work|does\ ?n[o'’]t\ work|did\ not\ work|does\ not\ work)\b
    | \b(?:failed|fails|no\ luck|gave\ up|reverted|still\ broken)\b
    | \b(?:funktioniert\ nicht|fehlgeschlagen|klappt\ nicht|hat\ nicht\ geklappt)\b | \b(?:pas\ marché|échoué|ne\ marche\ pas)\b
    | \b(?:no\ funcion[aó]|falló|fallaron)\b | \b(?:não\ funcion(?:ou|a)|falhou)\b | \b(?:non\ (?:ha\ )?funziona(?:to)?|fallito)\b
    | 失敗 | 動かな | うまくいかな | 失败 | 不行 | 没有成功""",
    _FLAGS,
)
NEXT = re.compile(
    r"""\b(?:next\ (?:step|i|we|up)|next,|to-?do|remaining|still\ (?:need|have)\ to|what\ is\ left)\b
    | \b(?:als\ nächstes|nächster\ schritt|noch\ zu\ tun)\b | \b(?:ensuite|reste\ à|prochaine\ étape)\b
    | \b(?:siguiente\ paso|falta|a\ continuación)\b | \b(?:próximo\ passo|falta|a\ seguir)\b | \b(?:prossimo\ passo|resta\ da)\b
    | 次に | これから | 残り | 接下来 | 下一步 | 还需要 | 待办""",
    _FLAGS,
)
BLOCKED = re.compile(
    r"""\b(?:blocked|waiting\ (?:for|on)|cannot\ (?:continue|proceed)|can['’]t\ (?:continue|proceed)|not\ allowed)\b
    | \b(?:blockiert|warte\ auf|warten\ auf)\b | \b(?:bloqué|en\ attente)\b | \b(?:bloquead[oa]|esperando|aguardando)\b
    | \b(?:bloccat[oa]|in\ attesa)\b | 待ち | 止まって | 等待 | 受阻 | 卡住""",
    _FLAGS,
)

_KNOWN: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("goal", re.compile(r"goal|objective|intent|request", re.I)),
    ("rules", re.compile(r"constraint|rule|preference|instruction", re.I)),
    ("decisions", re.compile(r"decision", re.I)),
    ("failed", re.compile(r"fail|error|attempt|problem", re.I)),
    ("progress", re.compile(r"progress|done|status|state|work", re.I)),
    ("files", re.compile(r"file", re.I)),
    ("next", re.compile(r"next|pending|todo|task", re.I)),
    ("exact", re.compile(r"identifier|exact|reference|fact", re.I)),
)


def part_of(heading: str) -> Part | None:
    """Which section a heading names, in any of the languages, or in the looser words of a model; None for no known one."""
    bare = heading.strip().strip("#*: ").casefold()
    for names in HEADINGS.values():
        for part, name in names.items():
            if bare == name.casefold():
                return part
    return next((part for part, pattern in _KNOWN if pattern.search(bare)), None)


def tag_of(word: str) -> Tag:
    """Which tag a word is, in any of the languages; empty for none."""
    bare = word.strip().casefold()
    found: list[Tag] = [tag for known in TAGS.values() for tag, name in known.items() if name.casefold() == bare]
    return found[0] if found else ""
