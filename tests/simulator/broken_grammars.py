"""Grammars of custom tools that OpenAI rejects, each for another reason."""

BROKEN = (
    ("lark", 'expression: "a"'),
    ("lark", ""),
    ("lark", "start: WORD\nWORD: /(?=a).*/"),
    ("regex", "^(?!no).*$"),
    ("regex", "a+?"),
)
