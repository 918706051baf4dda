"""The turns of speech of plain commands, as regular expressions. English in full, the commonest verbs of five more languages."""

from __future__ import annotations

import re

_FLAGS = re.I | re.X

PATH = r"""(?:`[^`\n]+` | "[^"\n]+" | '[^'\n]+'
    | [^\s,;:`"']{0,200}[./\\][^\s,;:`"']{0,200}[^\s,;:`"'.?!]
    | [A-Z][A-Za-z]*file | README | LICENSE | CHANGELOG | AGENTS)"""
"""A path as people write it: quoted, or with a dot or a slash in it, or one of the well-known names."""

POLITE = re.compile(
    r"^(?:please | can\ you | could\ you | would\ you | bitte | por\ favor | per\ favore | s['’]il\ te\ plaît)[,\s]+",
    _FLAGS,
)

READ = re.compile(
    rf"""^(?:read | show | open | cat | display | print | view | lies | lese | zeige? | öffne | lis | montre | ouvre | lee
        | muestra | abre | leia | mostre | mostra | leggi | apri)
    (?:\s+(?:me|mir|moi|us|to\ me))? (?:\s+(?:the|die|den|das|le|la|el|o|a|il))?
    (?:\s+(?:file|datei|fichier|archivo|arquivo|ficheiro))?s?
    \s+(?P<paths>{PATH}(?:(?:\s*,\s*|\s+(?:and|und|et|y|e)\s+){PATH})*)(?P<rest>.*)$""",
    _FLAGS | re.S,
)

LINES = re.compile(
    r"""^\s*(?:,?\s*(?:from\s+)?(?:lines?|zeilen?|lignes?|líneas?|linhas?|righe?) | :)\s*
    (\d{1,7})(?:\s*(?:-|–|to|through|until|bis|à|a)\s*(\d{1,7}))?\s*[.!]?$""",
    _FLAGS,
)

LIST = re.compile(
    rf"""^(?:ls | list(?:\s+(?:all|the))*\s+(?:files|folder|directory|contents) | (?:what|which)\s+files\s+(?:are|do)\b.*?
        | what(?:'s|\ is)\ in\ (?:this|the)\ (?:folder|directory|workspace|repo(?:sitory)?)
        | what(?:'s|\ is|\ files\ are)\ in\ (?:the\ )?(?P<inside>[\w./-]+)\ (?:folder|directory))
    (?:\s+(?:in|of|under)?\s*(?P<path>{PATH}|[\w-]+/?))?\s*[?.!]?$""",
    _FLAGS,
)

FIND = re.compile(
    r"""^(?:find | glob | list | where\ are)(?:\s+(?:all|the|any))*\s+(?:files?\s+)?
    (?:(?:named|called|matching|like)\s+)?[`"']?(?P<pattern>[^\s`"']*[*?\[][^\s`"']*)[`"']?\s*$""",
    _FLAGS,
)

FIND_NAMED = re.compile(
    r"""^(?:find | where\ is)\s+(?:the\s+)?files?\s+(?:named\s+|called\s+)?[`"']?(?P<name>[\w.-]+)[`"']?\s*\??$""",
    _FLAGS,
)

GREP = re.compile(
    rf"""^(?P<verb>grep | rg | search(?:\s+for)? | look\s+for | find)\s+
    (?:`(?P<a>[^`\n]+)` | "(?P<b>[^"\n]+)" | '(?P<c>[^'\n]+)' | (?P<d>\S+))
    (?:\s+in\s+(?P<path>{PATH}|[\w./-]+))?\s*$""",
    _FLAGS,
)

RUN = re.compile(
    r"""^(?:(?:run | execute | exec | führe?\ | exécute | lance | ejecuta | corre | rode | esegui)(?:\s*:\s*|\s+)
        (?:the\s+command\s+|den\s+befehl\s+|la\s+commande\s+)? | [!$]\s*)
    (?P<command>.+)$""",
    _FLAGS | re.S,
)

NO_PROGRAM = re.compile(r"(?:me|us|through|the|a|an|out|this|that|into|away)\b", re.I)
"""`run me through the code` and the like are no command lines."""

TASK = re.compile(
    r"""^(?:run | start | execute | lance | ejecuta | esegui | rode | führe?)\s+
    (?:(?:all|the|my|our|die|les|los|las|os|i|le)\s+)*
    (?P<name>tests? | unit\ tests | test\ suite | build | linter | lint | testes? | pruebas)
    (?:\s+(?:for\ me|again|now|aus))?\s*[.!]?$""",
    _FLAGS,
)

WRITE = re.compile(
    rf"""^(?:write | create | make | add)\s+(?:me\s+)?(?:a\s+|the\s+)?(?:new\s+)?(?:text\s+)?(?:file\s+)?
    (?:named\s+|called\s+)?(?P<path>{PATH})\s*
    (?: : | ,?\s*(?:with|containing|that\ says|saying)(?:\s+(?:the\s+)?(?:content|text|contents))?\s*:?)
    \s*(?P<content>.+)$""",
    _FLAGS | re.S,
)

_ANY = r"""(?:`([^`]+)` | "([^"]+)" | '([^']+)' | “([^”]+)” | (\S+))"""
EDIT = re.compile(
    rf"""^(?:replace | change | rename)\s+{_ANY}\s+(?:with|by|to|into)\s+{_ANY}\s+
    in\s+(?:the\s+)?(?:file\s+)?(?P<path>{PATH}|[\w./-]+)\s*[.!]?$""",
    _FLAGS | re.S,
)

REMEMBER = re.compile(
    r"""^(?:remember | note | keep\ in\ mind | merke?\ dir | retiens | recuerda | lembre(?:-se)? | ricorda)
    (?:\s+(?:that|dass|que|che|this))?[:,]?\s+(?P<text>.+)$""",
    _FLAGS | re.S,
)

DELEGATE = re.compile(
    r"""^(?:delegate(?:\s+to\s+(?P<agent>[\w-]+))? | (?:ask|let|have)\ an?\ (?:sub-?agent|agent)(?:\s+to)?)
    \s*[:,]?\s+(?P<task>.+)$""",
    _FLAGS | re.S,
)

RECALL = re.compile(
    r"""^recall\s+(?P<a>.+)$
    | ^(?:what|when|which|where|how|who|did|do)\b.{0,200}?\b(?:we|i|you)\s+
      (?:say|said|decided?|agreed?|mention(?:ed)?|talk(?:ed)?|discuss(?:ed)?|told|tell|chose|choose|asked?)\b(?P<b>.*)$
    | \bearlier\b.*\b(?:we|i|you)\b""",
    _FLAGS | re.S,
)

FETCH = re.compile(
    r"^(?:fetch | get | open | read | download | show)\s+(?:me\s+)?(?:the\s+page\s+)?<?(?P<url>https?://[^\s<>]+)>?\s*$",
    _FLAGS,
)

WHO = re.compile(
    r"""\b(?:who|what)\ (?:are|r)\ you\b | \byour\ name\b | \bare\ you\ (?:a|an|the|chatgpt|gpt|claude|real|human)\b
    | \bwer\ bist\ du\b | \bqui\ es-tu\b | \bquién\ eres\b | \bquem\ é\ você\b | \bchi\ sei\b | あなたは誰 | 你是谁""",
    _FLAGS,
)

HELP = re.compile(
    r"""^\W*(?:help | hilfe | aide | ayuda | ajuda | aiuto | what\ can\ you\ do
    | how\ do\ (?:i|you)\ (?:use|work\ with)\ (?:you|this) | 帮助 | ヘルプ)\W*$""",
    _FLAGS,
)

WINDOW = re.compile(
    r"""\bfills?\ (?:up\ )?(?:the|my|this)\ (?:context\ )?window\b
    | \bhow\ (?:full|big|large)\ is\ (?:the|my|this)\ (?:context|window)
    | \b(?:what(?:'s|\ is)\ in|what\ takes\ up)\ (?:the|my)\ context\b | \bhow\ many\ tokens\b.*\b(?:left|used|free)\b""",
    _FLAGS,
)

HELLO = re.compile(
    r"""^\W*(?:hi | hello | hey | good\ (?:morning|evening|day|afternoon) | hallo | guten\ (?:tag|morgen) | moin | bonjour
    | salut | hola | buenos\ días | olá | oi | bom\ dia | ciao | buongiorno | こんにちは | 你好)(?:\ there)?\W*$""",
    _FLAGS,
)

THANKS = re.compile(
    r"""^\W*(?:thanks?(?:\ you)?(?:\ (?:a\ lot|very\ much|so\ much))? | thx | danke(?:\ schön)? | merci | gracias | obrigad[oa]
    | grazie | ありがとう\w* | 谢谢 | ok(?:ay)? | great | good | perfect | fine | super | got\ it)\W*$""",
    _FLAGS,
)

TOLD = re.compile(
    r"""^(?:(?:always|never|do\ not|don['’]t|from\ now\ on|make\ sure|avoid|prefer)\b[^?？]*$
    |(?:i|we|my|our|let['’]s|fyi|the\ decision)\b(?!['’]?[dm]?\ (?:want|need|would|like|am\ (?:looking|trying|searching)
    |wonder|wish|don['’]t\ (?:know|understand)|have\ a\ question))[^?？]*$)""",
    _FLAGS,
)
"""Something told rather than asked: a rule, or news of one's own."""

_PROJECT = r"""(?:project | repo(?:sitory)? | code\ ?base | code | program | folder | app(?:lication)? | package | library
    | tool)"""
OVERVIEW = re.compile(
    rf"""^\W*(?:what\ (?:does|is|do)\ (?:this|the)\s+(?:whole\s+)?{_PROJECT}(?:\s+(?:do|does|about|for|all\ about))?
    | what(?:'s|\ is)\ this(?:\ (?:all\ )?about)?
    | (?:describe|summari[sz]e|explain|give\ (?:me\ )?an\ overview\ of)\ (?:this|the)\ (?:whole\ )?{_PROJECT} | overview
    | was\ (?:macht|ist|tut)\ (?:dieses|das)\ (?:projekt|programm) | que\ fait\ (?:ce|le)\ (?:projet|programme)
    | qué\ hace\ este\ (?:proyecto|programa) | o\ que\ (?:este|esse)\ (?:projeto|programa)\ faz
    | cosa\ fa\ questo\ (?:progetto|programma) | (?:这个|此)项目是?(?:做什么|干什么)的? | このプロジェクトは何.*)\W*$""",
    _FLAGS,
)
