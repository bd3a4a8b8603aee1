"""Hostile input: each entry must result in a picture or a plain message, keep the typed text, and run no markup.

The data are named and shared by all tests of texts, URL values or model names. ``FOREIGN_HOST`` appears in all entries
that try to make a browser or a server call another host, so that tests can look for this name.
"""

from __future__ import annotations

from tests import lanes

FOREIGN_HOST = "mha-viz-canary.invalid"

TEXTS: dict[str, str] = {
    "empty": "",
    "spaces": "     ",
    "line breaks": "\n\r\n\t \u2028",
    "no-break and ideographic spaces": "\u00a0\u3000\u2003",
    "one letter": "a",
    "one megabyte of words": "attention " * 104_858,
    "one megabyte without a blank": "a" * 1_048_576,
    "nul": "before\0after",
    "only nul": "\0\0\0",
    "control characters": "bell\x07 escape\x1b[31m red\x1b[0m back\x08",
    "high surrogate alone": "half \ud83d a face",
    "low surrogate alone": "half \ude00 a face",
    "surrogates in the wrong order": "\ude00\ud83d",
    "replacement character": "broken \ufffd character",
    "not characters": "edge \ufffe \uffff \U0010ffff",
    "emoji": "I 😀 you",
    "emoji family of seven code points": "the 👩‍👩‍👧‍👦 went home",
    "emoji flag": "from 🇨🇭 to 🇯🇵",
    "emoji with skin tone": "waves 👋🏽 hello",
    "right to left": "הכלב לא חצה את הרחוב",
    "arabic": "لم يعبر الحيوان الشارع",
    "right-to-left override": "file\u202egpj.exe",
    "direction isolates": "\u2067abc\u2069 def\u2066 ghi",
    "chinese": "动物没有过马路，因为它太累了。",
    "japanese": "動物は疲れすぎて道を渡らなかった。",
    "korean": "동물은 너무 피곤해서 길을 건너지 않았다.",
    "thai without blanks": "สัตว์ไม่ได้ข้ามถนนเพราะมันเหนื่อยเกินไป",
    "combining marks": "cafe\u0301 nai\u0308ve",
    "only combining marks": "\u0301\u0308\u0327",
    "many marks on one letter": "z" + "\u0315\u0330\u033b" * 60 + " end",
    "zero width": "zero\u200bwidth\u200djoin\u2060er",
    "only zero width": "\u200b\u200c\u200d\ufeff",
    "byte order mark": "\ufeffThe cat sat.",
    "soft hyphen": "atten\u00adtion",
    "full-width": "Ｔｈｅ　ｃａｔ　ｓａｔ．",
    "lengthening lower case": "İstanbul İzmir ẞ ß ﬁ",
    "unknown script": "𐤀𐤁𐤂 𓀀𓂀",
    "script": f"<script>fetch('http://{FOREIGN_HOST}/script')</script>",
    "closing script": f"</script><script src='http://{FOREIGN_HOST}/closing.js'></script>",
    "image with handler": f"<img src=x onerror=\"fetch('http://{FOREIGN_HOST}/img')\">",
    "svg with handler": f"<svg onload=\"fetch('http://{FOREIGN_HOST}/svg')\">",
    "iframe": f"<iframe src='http://{FOREIGN_HOST}/frame'></iframe>",
    "stylesheet": f"<style>@import url('http://{FOREIGN_HOST}/style.css')</style>",
    "strike": "the <s>struck</s> word",
    "comment": "before <!-- hidden --> after",
    "entity": "&lt;b&gt; &amp; &#x3c;i&#x3e; &nbsp;",
    "markdown image": f"![](http://{FOREIGN_HOST}/image.png)",
    "markdown link": f"[click](http://{FOREIGN_HOST}/link) and [js](javascript:alert(1))",
    "markdown marks": "# head *em* **bold** `code` :red[red] :material/home: | a | b |",
    "tex unfinished": r"$\frac{$",
    "tex": r"costs $5 and $6, $$\sum_i$$ \(x\)",
    "quotes": "\"'`´“”«»\\",
    "json breaker": '"}]}\u2028\u2029{"a": [',
    "sql": "Robert'); DROP TABLE students;--",
    "template": "{{7*7}} ${7*7} {0} %s %(x)s",
    "formula": '=HYPERLINK("http://' + FOREIGN_HOST + '/formula";1)',
    "formula starts": "+1 -1 @SUM(A1) =1+1",
    "typed special tokens": "[CLS] a [SEP] b [MASK] [PAD] [UNK]",
    "typed special tokens of other families": "<s> a </s> <mask> <pad> <unk> <|endoftext|> Ġthe ▁the ##ing",
    "url": f"see http://{FOREIGN_HOST}/page?a=1&b=2#c",
    "percent": "100%25 %00 %0d%0aSet-Cookie: a=b",
    "one word repeated": "the the the the the the",
    "only punctuation": "?!... --- ,;:",
    "four hundred words": "word " * 400,
    "two thousand words": "cat sat mat " * 667,
}

URL_VALUES: dict[str, dict[str, list[str]]] = {
    "head out of range": {"head": ["L99H99"]},
    "head negative": {"head": ["L-1H0"]},
    "head not a head": {"head": ["drop table"]},
    "head of a million digits": {"head": ["L" + "9" * 2000 + "H0"]},
    "head in other digits": {"head": ["L٣H١"]},
    "head repeated": {"head": ["L0H0", "L1H1"]},
    "head empty": {"head": [""]},
    "text repeated": {"text": ["one", "two"]},
    "text empty": {"text": [""]},
    "text with script": {"text": [TEXTS["closing script"]]},
    "text too long": {"text": ["a b " * 4000]},
    "pair without text": {"pair": ["only the second"]},
    "model unknown": {"model": ["no-such-model"]},
    "model outside": {"model": ["../../etc/passwd"]},
    "model elsewhere": {"model": [f"http://{FOREIGN_HOST}/model"]},
    "model repeated": {"model": ["minilm", "bert-base-uncased"]},
    "token out of range": {"link": ["999-999"], "pin": ["q9999"]},
    "token negative": {"link": ["-1-2"], "pin": ["k-1"]},
    "other heads out of range": {"head": ["L0H0"], "on": ["1.999.3"]},
    "other heads without one": {"on": ["1.2"]},
    "number out of range": {"links": ["top999999"]},
    "share out of range": {"links": ["mass7.0"]},
    "number not finite": {"links": ["minnan"]},
    "number infinite": {"links": ["mass1e400"]},
    "number with a comma": {"links": ["min0,5"]},
    "choice unknown": {"unit": ["syllables"], "special": ["maybe"], "scale": ["<script>"], "side": ["?"]},
    "choice in another case": {"unit": ["WORDS"], "scale": ["LOG"]},
    "side of a pair without a pair": {"side": ["ab"]},
    "parameter unknown": {"utm_source": ["newsletter"], "__proto__": ["x"], "constructor": ["y"]},
    "parameter named by markup": {"<img src=x>": ["1"]},
    "replacement character": {"text": ["\ufffd"], "head": ["\ufffd"]},
    "many parameters": {f"p{i}": [str(i)] for i in range(200)},
}

MODEL_IDS: dict[str, str] = {
    "empty": "",
    "blank": "   ",
    "dot": ".",
    "parent": "..",
    "parents": "../../etc/passwd",
    "encoded parents": "..%2f..%2fetc%2fpasswd",
    "absolute": "/etc/passwd",
    "device": "/dev/zero",
    "home": "~/.ssh/id_rsa",
    "backslashes": "..\\..\\windows\\system32",
    "drive": "C:\\Windows",
    "network share": f"\\\\{FOREIGN_HOST}\\share",
    "http": f"http://{FOREIGN_HOST}/bert",
    "https": f"https://{FOREIGN_HOST}/bert/resolve/main/config.json",
    "file url": "file:///etc/passwd",
    "three hundred characters": "a" * 300,
    "three hundred with owner": "a" * 150 + "/" + "b" * 149,
    "three parts": "one/two/three",
    "double hyphen": "own--er/mod--el",
    "leading hyphen": "-rf/--help",
    "ends in git": "owner/model.git",
    "revision inside": "owner/model@main",
    "query inside": "owner/model?download=true#x",
    "line break": "owner/model\nHost: other",
    "nul": "minilm\0.txt",
    "surrogate": "owner/mod\ud800el",
    "right-to-left override": "owner/\u202eledom",
    "look-alike letters": "bеrt-base-uncased",  # the e is Cyrillic
    "script": f"<script src='http://{FOREIGN_HOST}/x.js'></script>",
    "shell": "$(touch /tmp/x); `id`",
    "template": "{{config}}",
    "case": "MINILM",
}

# One text of each kind, for modules that test one part of the program; with --all they use every text.
# tests/test_hostile_chain.py runs every text through the whole program.
DEFAULT_NAMES = (
    "empty", "only nul", "high surrogate alone", "emoji family of seven code points",
    "right-to-left override", "closing script", "typed special tokens", "two thousand words",
)  # fmt: skip
KINDS = {name: text for name, text in TEXTS.items() if lanes.everything or name in DEFAULT_NAMES}
# Half of these texts are drawn in every format on pages, the other half on the command line. tests/test_drawings.py
# draws all of them.
ON_PAGES, ON_THE_COMMAND_LINE = (
    {name: text for index, (name, text) in enumerate(KINDS.items()) if lanes.everything or index % 2 == half}
    for half in (0, 1)
)
