"""What the assistant says between its quotes, in eight languages. It quotes; it does not reason, and says so."""

from __future__ import annotations

from typing import Literal

from ctxchat.models.offline.language import Language

Phrase = Literal[
    "found", "partly", "also", "missing", "searched", "nothing", "limits", "denied", "failed", "told", "read"
]

PHRASES: dict[Language, dict[Phrase, str]] = {
    "en": {
        "found": "The best match is {ref}:",
        "partly": "Nothing I found covers all of this; the closest is {ref}:",
        "also": "See also {ref}:",
        "missing": "None of these passages mentions {words}.",
        "searched": "Looked for {words}{read}.",
        "read": "; read {paths}",
        "nothing": "I found nothing about this in the folder.",
        "limits": "I am the built-in offline assistant: I find and quote passages, I do not reason about them. "
        "`/model` chooses a language model.",
        "denied": "That was not done, because it was not allowed.",
        "failed": "That did not work:",
        "told": "From this conversation ({label}):",
    },
    "de": {
        "found": "Am besten passt {ref}:",
        "partly": "Nichts Gefundenes deckt alles ab; am nächsten kommt {ref}:",
        "also": "Siehe auch {ref}:",
        "missing": "In diesen Stellen kommt nicht vor: {words}.",
        "searched": "Gesucht nach {words}{read}.",
        "read": "; gelesen: {paths}",
        "nothing": "Dazu habe ich in diesem Ordner nichts gefunden.",
        "limits": "Ich bin der eingebaute Offline-Assistent: Ich finde und zitiere Stellen, ich denke nicht über sie nach. "
        "`/model` wählt ein Sprachmodell.",
        "denied": "Das wurde nicht ausgeführt, weil es nicht erlaubt wurde.",
        "failed": "Das hat nicht geklappt:",
        "told": "Aus diesem Gespräch ({label}):",
    },
    "fr": {
        "found": "Le passage le plus proche est {ref} :",
        "partly": "Rien de ce que j’ai trouvé ne couvre tout ; le plus proche est {ref} :",
        "also": "Voir aussi {ref} :",
        "missing": "Absent de ces passages : {words}.",
        "searched": "Recherché : {words}{read}.",
        "read": "; lu : {paths}",
        "nothing": "Je n’ai rien trouvé à ce sujet dans ce dossier.",
        "limits": "Je suis l’assistant hors ligne intégré : je trouve et cite des passages, je ne raisonne pas. "
        "`/model` permet de choisir un modèle de langage.",
        "denied": "Cela n’a pas été fait, faute d’autorisation.",
        "failed": "Cela n’a pas fonctionné :",
        "told": "Dans cette conversation ({label}) :",
    },
    "es": {
        "found": "Lo más cercano está en {ref}:",
        "partly": "Nada de lo encontrado lo cubre todo; lo más cercano es {ref}:",
        "also": "Véase también {ref}:",
        "missing": "Estos pasajes no mencionan: {words}.",
        "searched": "Busqué {words}{read}.",
        "read": "; leído: {paths}",
        "nothing": "No encontré nada sobre esto en la carpeta.",
        "limits": "Soy el asistente sin conexión integrado: encuentro y cito pasajes, no razono sobre ellos. "
        "`/model` elige un modelo de lenguaje.",
        "denied": "No se hizo, porque no fue permitido.",
        "failed": "No funcionó:",
        "told": "De esta conversación ({label}):",
    },
    "pt": {
        "found": "O trecho mais próximo está em {ref}:",
        "partly": "Nada do que encontrei cobre tudo; o mais próximo é {ref}:",
        "also": "Veja também {ref}:",
        "missing": "Estes trechos não mencionam: {words}.",
        "searched": "Procurei {words}{read}.",
        "read": "; lido: {paths}",
        "nothing": "Não encontrei nada sobre isso na pasta.",
        "limits": "Sou o assistente offline embutido: encontro e cito trechos, não raciocino sobre eles. "
        "`/model` escolhe um modelo de linguagem.",
        "denied": "Isso não foi feito, porque não foi permitido.",
        "failed": "Isso não funcionou:",
        "told": "Desta conversa ({label}):",
    },
    "it": {
        "found": "Il passo più vicino è {ref}:",
        "partly": "Niente di ciò che ho trovato copre tutto; il più vicino è {ref}:",
        "also": "Vedi anche {ref}:",
        "missing": "Questi passi non menzionano: {words}.",
        "searched": "Ho cercato {words}{read}.",
        "read": "; letto: {paths}",
        "nothing": "Non ho trovato nulla su questo nella cartella.",
        "limits": "Sono l’assistente offline integrato: trovo e cito passi, non ragiono su di essi. "
        "`/model` sceglie un modello linguistico.",
        "denied": "Non è stato fatto, perché non è stato permesso.",
        "failed": "Non ha funzionato:",
        "told": "Da questa conversazione ({label}):",
    },
    "ja": {
        "found": "最も近い箇所は {ref} です:",
        "partly": "すべてを満たす箇所はありません。最も近いのは {ref} です:",
        "also": "{ref} も参照:",
        "missing": "これらの箇所にない語: {words}。",
        "searched": "検索した語: {words}{read}。",
        "read": "; 読んだファイル: {paths}",
        "nothing": "このフォルダーには該当する記述が見つかりませんでした。",
        "limits": "私は内蔵のオフラインアシスタントです。箇所を探して引用しますが、推論はしません。"
        "`/model` で言語モデルを選べます。",
        "denied": "許可されなかったため、実行していません。",
        "failed": "うまくいきませんでした:",
        "told": "この会話から ({label}):",
    },
    "zh": {
        "found": "最接近的内容在 {ref}:",
        "partly": "没有一处涵盖全部内容;最接近的是 {ref}:",
        "also": "另见 {ref}:",
        "missing": "这些段落未提及: {words}。",
        "searched": "已搜索: {words}{read}。",
        "read": "; 已读: {paths}",
        "nothing": "在此文件夹中没有找到相关内容。",
        "limits": "我是内置的离线助手: 我查找并引用段落, 不做推理。用 `/model` 可选择语言模型。",
        "denied": "未获允许, 因此没有执行。",
        "failed": "没有成功:",
        "told": "来自本次对话 ({label}):",
    },
}

BEGINNINGS = tuple({p.split("{")[0] for known in PHRASES.values() for p in known.values()} - {""})
"""How the assistant's own sentences begin, in every language."""

WHO = (
    "I am ctxchat's built-in offline assistant, not a language model. I search this folder with the same tools a model would "
    "use, quote what I find with path and line, read and edit files, and run commands once you allow them. I do not reason or "
    "write prose of my own. `/model` chooses a language model."
)

WINDOW = (
    "The bar above the prompt shows what fills the window. F2, or `/context`, opens the breakdown: each section with its "
    "tokens, the biggest messages, and a button that frees up context."
)

HELP = """I am the built-in offline assistant. What I do well:

- **Questions about this folder**: `where is the retry limit set?`, `what does this project do?`
- **Files**: `read src/app.py lines 10-40`, `list files`, `find files *.py`, `grep TODO`
- **Changes**, once you allow them: `replace "A" with "B" in notes.md`, `create file todo.txt with …`
- **Commands**, once you allow them: `run make test`, `run the tests`
- **Sub-agents**: `delegate: where is the retry limit set?` asks one with a window of its own
- **Memory**: `remember that we deploy on Fridays`, `recall the port we chose`

F2 shows what fills the context window. `/model` chooses a language model."""

GREETING = "Hello. Ask me something about this folder, or say `help`."
THANKS = "You are welcome."
TOLD = "Noted; it stays in this conversation. `remember …` keeps it for later ones. I cannot do more with it by myself."
NO_TOOLS = "I was not given the tool for that here ({names})."
NO_QUESTION = "There is no question for me yet. Ask me something about this folder, or say `help`."


def say(language: Language, phrase: Phrase, **words: str) -> str:
    """A phrase with its words filled in."""
    return PHRASES[language][phrase].format(**words)
