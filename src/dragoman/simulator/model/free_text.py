"""The text a custom tool gets: what the prompt shows, or something plausible for what the tool takes."""

from dragoman.simulator.model.filling.evidence import NO_LABEL, Evidence
from dragoman.simulator.model.language.facts import Fact, FactKind
from dragoman.simulator.model.language.words import stems
from dragoman.simulator.model.schemas.json_values import an_object
from dragoman.simulator.model.schemas.patterns import written
from dragoman.simulator.model.schemas.validity import fits_pattern
from dragoman.simulator.talk import Tool

_LONGEST = 4000
_FLAVOURS = (
    ("patch", frozenset({"patch", "diff"})),
    ("sql", frozenset({"sql", "database", "postgr", "sqlite", "mysql"})),
    ("shell", frozenset({"shell", "bash", "command", "terminal"})),
    ("code", frozenset({"python", "cod", "javascript", "script", "interpret", "exec", "execut"})),
    ("math", frozenset({"math", "arithmetic", "calcul", "express", "calculator"})),
)


def fill_text(tool: Tool, evidence: Evidence) -> str:
    """Write the text for a custom tool. A regular expression as its format is kept to."""
    text = _shown(evidence) or _plausible(tool, evidence)
    pattern = _pattern(tool)
    if pattern and not fits_pattern(pattern, text):
        numbers = evidence.expression()
        return numbers if numbers and fits_pattern(pattern, numbers) else written(pattern)
    return text[:_LONGEST]


def _pattern(tool: Tool) -> str:
    """Find a grammar that is a regular expression; a tool's `schema` may be its format, or hold it."""
    for told in (tool.schema, an_object(tool.schema.get("format")), an_object(tool.schema.get("grammar"))):
        definition = told.get("definition")
        if told.get("syntax") == "regex" and isinstance(definition, str):
            # The whole text must match, but schemas' patterns may match anywhere.
            return f"^(?:{definition})$"
    return ""


def _shown(evidence: Evidence) -> str:
    fact = _first(evidence, "code")
    return str(fact.value) if fact is not None else ""


def _first(evidence: Evidence, kind: FactKind) -> Fact | None:
    return evidence.of_kind(kind, lambda _: True, needed=True)


def _plausible(tool: Tool, evidence: Evidence) -> str:
    known = frozenset(stems(f"{tool.name} {tool.description[:400]}"))
    flavour = next((name for name, words in _FLAVOURS if words & frozenset(stems(tool.name))), "") or next(
        (name for name, words in _FLAVOURS if words & known), ""
    )
    quoted = _first(evidence, "quoted")
    words = str(quoted.value) if quoted is not None else evidence.topic() or evidence.clause.text
    match flavour:
        case "patch":
            return _patch(evidence, words)
        case "sql":
            name = evidence.fitting(NO_LABEL, _is_word, needed=True)
            table = str(name.value).lower() if name is not None else "items"
            return f"SELECT * FROM {table} LIMIT 10;"  # noqa: S608  nobody here runs it
        case "shell":
            path = _first(evidence, "path")
            return f"cat {path.value}" if path is not None else f"echo {_literal(words)}"
        case "code":
            return f"print({_literal(evidence.expression() or words)})"
        case "math":
            return evidence.expression() or words
        case _:
            return words


def _is_word(fact: Fact) -> bool:
    return fact.text.isidentifier()


def _literal(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _patch(evidence: Evidence, words: str) -> str:
    path = _first(evidence, "path")
    name = str(path.value) if path is not None else "example.txt"
    added = "\n".join(f"+{line}" for line in words.split("\n"))
    return f"*** Begin Patch\n*** Add File: {name}\n{added}\n*** End Patch\n"
