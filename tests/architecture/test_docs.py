"""The documents keep up with the code: what exists is described, what is linked exists, what is shown runs."""

import ast
import contextlib
import functools
import importlib
import io
import re
from pathlib import Path

import pytest

from architecture.test_imports import SHARED_BY_DIALECTS
from architecture.tree import PACKAGE, ROOT, each, list_published, modules, name_of, parse
from dragoman.dialects.api import Api
from dragoman.dialects.record import Dialect
from dragoman.upstreams.kind import UpstreamKind
from dragoman.upstreams.upstream import Upstream

DOCS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```python run\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CHOICES = re.compile(r"^  \{([a-z0-9_,-]+)\}", re.MULTILINE)
_VERB = re.compile(r"^    ([a-z][a-z-]*)(?:  |$)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Written in pieces so that this file does not hold what it forbids.
_MACHINE = ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/")
_REGISTRIES = ("pypi" + ".org", "python" + "hosted.org", "npmjs" + ".org", "npmjs" + ".com")


def help_text(verbs: tuple[str, ...]) -> str:
    """What `dragoman VERBS --help` prints."""
    main = importlib.import_module("dragoman.cli").main
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*verbs, "--help"])
    return output.getvalue()


@functools.cache
def commands() -> dict[tuple[str, ...], set[str]]:
    """Every subcommand with its options, as the command's parser has them."""
    found: dict[tuple[str, ...], set[str]] = {}
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        verbs = waiting.pop()
        text = help_text(verbs)
        found[verbs] = set(_OPTION.findall(text)) - {"--help"}
        if len(verbs) < 2:
            choices = [verb for group in _CHOICES.findall(text) for verb in group.split(",")]
            waiting += [(*verbs, verb) for verb in dict.fromkeys([*choices, *_VERB.findall(text)])]
    return found


@pytest.mark.skipif(not (PACKAGE / "cli" / "__init__.py").is_file(), reason="there is no command yet")
def test_every_verb_and_option_of_the_command_is_documented():
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    documented = set(_OPTION.findall(text))
    known = commands()
    assert len(known) > 1
    for verbs, options in known.items():
        assert " ".join(("dragoman", *verbs)) in text
        assert not options - documented, f"{verbs}: {sorted(options - documented)}"


def test_every_decision_is_linked_from_the_list():
    index = (ROOT / "docs" / "explanation" / "decisions.md").read_text(encoding="utf-8")
    assert DECISIONS
    assert not [path.name for path in DECISIONS if f"(../decisions/{path.name})" not in index]


@each(DOCS)
def test_every_relative_link_leads_somewhere(path):
    for target in _LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        assert (path.parent / target.partition("#")[0]).exists(), f"{name_of(path)} -> {target}"


@pytest.mark.parametrize(
    ("page", "records"),
    [("add-a-dialect", (Dialect, Api)), ("add-an-upstream-kind", (UpstreamKind, Upstream))],
)
def test_the_pages_on_adding_something_explain_every_field_of_its_record(page, records):
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    for record in records:
        table = text.partition(f" of `{record.__name__}`\n")[2].partition("\n## ")[0]
        explained = {
            name
            for line in table.splitlines()
            for name in re.findall(r"`(\w+)`", line.partition("| ")[2].split(" |")[0])
        }
        fields = set(getattr(record, "__struct_fields__", ())) or {name for name in vars(record) if name[0] != "_"}
        assert explained == fields, record.__name__


def test_the_page_on_adding_a_dialect_names_what_it_may_import():
    page = (ROOT / "docs" / "how-to" / "add-a-dialect.md").read_text(encoding="utf-8")
    rules = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for (module,) in SHARED_BY_DIALECTS:
        assert f"`dialects.{module}`" in page
        assert f"`{module}.py`" in rules


def test_the_start_up_errors_in_troubleshooting_are_messages_of_the_code():
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    table = page.partition("## The gateway does not start")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    pieces = [piece for cell in cells for span in re.findall("`([^`]*)`", cell) for piece in span.split("…") if piece]
    code = "".join(path.read_text(encoding="utf-8") for path in modules("src/dragoman"))
    assert len(pieces) > 6
    assert not [piece for piece in pieces if piece.rstrip() not in code]


def test_every_page_is_in_the_navigation_of_the_site():
    listed = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if not page.startswith("decisions/") and f'"{page}"' not in listed]


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_code_marked_as_running_runs(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
        exec(compile(block, name_of(path), "exec"), names)  # noqa: S102  # our own documents


@each(modules("src/dragoman", "benchmarks"))
def test_every_module_has_a_docstring(path):
    assert ast.get_docstring(parse(path)), name_of(path)


@functools.cache
def texts() -> dict[Path, str]:
    """Everything published, as text."""
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in list_published()}


@pytest.mark.parametrize("word", [*_MACHINE, *_REGISTRIES])
def test_no_published_file_names_a_machines_path_or_a_registry(word):
    assert not [name_of(path) for path, text in texts().items() if word in text]
