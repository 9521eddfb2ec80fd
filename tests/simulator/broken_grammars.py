"""Grammars of custom tools that OpenAI refuses, each in its own way."""

BROKEN = (
    ("lark", 'expression: "a"'),
    ("lark", ""),
    ("lark", "start: WORD\nWORD: /(?=a).*/"),
    ("regex", "^(?!no).*$"),
    ("regex", "a+?"),
)
