"""Who may know whom. The rule is the table `MAY_IMPORT`; a room that does not exist yet is held to it from its first file."""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import PACKAGE, each, modules, name_of, parse

LEAVES = {"mcp", "intercept", "simulator", "console"}
COMPOSERS = {"server", "cli", "library"}
SHARED = {("dragoman", "former_names"), ("dragoman", "guard"), ("dragoman", "tasks")}
"""Modules at the top that every room with effects may import: they know no room themselves."""
MAY_IMPORT = {
    "core": set(),
    "wire": set(),
    "dialects": {"core", "wire"},
    "interpreter": {"core", "wire", "dialects"},
    "upstreams": {"core", "wire", "dialects", "interpreter", "http"},
    "gateway": {"core", "wire", "dialects", "interpreter", "upstreams", "sessions", "agent", "tools", "http"},
    "tools": {"core", "wire", "interpreter", "http"},
    "sessions": {"core"},
    "agent": {"core", "tools", "http"},
    "http": set(),
    "simulator": {"wire", "http"},
    "intercept": {"core", "wire", "dialects", "interpreter", "http"},
}
PURE = ("core", "wire", "dialects", "interpreter")
PURE_PACKAGES = {"msgspec"}
EFFECTS = {"asyncio", "http", "logging", "os", "pathlib", "socket", "ssl", "subprocess", "threading", "urllib.request"}
DIALECTS = {"chat", "responses", "messages", "gemini"}

SOURCES = modules("src/dragoman")


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module's dotted path below the package; "" for modules at the top."""
    return parts[0] if parts and (PACKAGE / parts[0]).is_dir() else ""


def get_dotted_name(path: Path) -> tuple[str, ...]:
    """The dotted path of a module below the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@functools.cache
def list_imports(path: Path) -> tuple[tuple[str, ...], ...]:
    """The imports of a whole file; several tests ask for those of every file."""
    return tuple(find_imports(path, parse(path)))


def find_imports(path: Path, tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Dotted paths of everything a module imports, `from a import b` as both a and a.b if b is a module of the project."""
    package = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ("dragoman", *package[: len(package) - node.level + 1]) if node.level else ()
            base = (*start, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                inside = PACKAGE.joinpath(*base[1:], alias.name)
                is_module = base[:1] == ("dragoman",) and (inside.is_dir() or inside.with_suffix(".py").is_file())
                yield (*base, alias.name) if is_module else base


@each(SOURCES)
def test_a_room_imports_only_the_rooms_it_may_know(path):
    dotted_name = get_dotted_name(path)
    room = room_of(dotted_name)
    if room in COMPOSERS or not room:
        return
    allowed = MAY_IMPORT.get(room)
    for target in list_imports(path):
        if target[:1] != ("dragoman",):
            continue
        other = room_of(target[1:])
        if other == room or (target in SHARED and room not in PURE):
            continue
        assert other, f"{name_of(path)} imports {'.'.join(target)}, which composes the rooms"
        assert other not in COMPOSERS | LEAVES, f"{name_of(path)} imports {'.'.join(target)}"
        assert allowed is None or other in allowed, f"{name_of(path)} imports {'.'.join(target)}"


@pytest.mark.parametrize("module", sorted(SHARED))
def test_a_shared_module_imports_no_room(module):
    path = PACKAGE.joinpath(*module[1:]).with_suffix(".py")
    assert not [target for target in list_imports(path) if target[:1] == ("dragoman",)]


def test_no_two_modules_import_each_other():
    """A pair that needs a lazy import, or one for types alone, is one module or wants a third one below both."""
    known = {get_dotted_name(path): path for path in SOURCES}
    graph = {
        dotted_name: {target[1:] for target in list_imports(path) if target[:1] == ("dragoman",)} & known.keys()
        for dotted_name, path in known.items()
    }
    pairs = {
        frozenset({dotted_name, other})
        for dotted_name, others in graph.items()
        for other in others
        if dotted_name in graph[other]
    }
    assert not {pair for pair in pairs if len(pair) > 1}


def test_no_two_folders_import_each_other():
    """A folder and one inside it, too: what both need is in the inner one, or in a third."""
    known = {get_dotted_name(path): path.parent for path in SOURCES}
    pairs = {
        (path.parent, known[target[1:]])
        for path in SOURCES
        for target in list_imports(path)
        if target[:1] == ("dragoman",) and target[1:] in known
    }
    both = {
        (str(one.relative_to(PACKAGE)), str(other.relative_to(PACKAGE)))
        for one, other in pairs
        if (other, one) in pairs
    }
    assert not {pair for pair in both if pair[0] != pair[1] and "." not in pair}


FOUNDATIONS = ("interpreter/schema", "interpreter/text_calls", "server/endpoints", "simulator/apis")
"""Folders that import nothing of the rest of their package."""
ADDITIONS = ("gateway/agents", "gateway/conversations")
"""Folders that only one another imports of their package."""


def find_links_around(folder: tuple[str, ...], *, outwards: bool) -> set[str]:
    """Imports between a folder with all inside it and the rest of its package, in one direction."""
    found: set[str] = set()
    for path in SOURCES:
        own = get_dotted_name(path)
        for target in list_imports(path):
            start, end = (own, target[1:]) if outwards else (target[1:], own)
            is_inside = target[:1] == ("dragoman",) and start[: len(folder)] == folder
            if is_inside and end[: len(folder) - 1] == folder[:-1] and end[: len(folder)] != folder:
                found.add(f"{name_of(path)} imports {'.'.join(target)}")
    return found


@pytest.mark.parametrize("folder", [*FOUNDATIONS, *ADDITIONS])
def test_a_folder_and_the_rest_of_its_package_import_one_way(folder):
    parts, above = tuple(folder.split("/")), tuple(f"src/dragoman/{addition}/" for addition in ADDITIONS)
    assert (PACKAGE / folder).is_dir()
    if folder in FOUNDATIONS:
        assert not find_links_around(parts, outwards=True)
        assert find_links_around(parts, outwards=False)
    else:
        below = {link for link in find_links_around(parts, outwards=False) if not link.startswith(above)}
        assert not below
        assert find_links_around(parts, outwards=True)


SHARED_BY_DIALECTS = {("record",), ("reasons",), ("api",), ("decoder",)}
"""What a dialect imports of the package `dialects`; CONTRIBUTING and the page on adding a dialect name them."""


@each(modules("tests/dialects/toy"))
def test_a_dialect_of_another_package_needs_no_more_than_the_built_in_ones(path):
    if path.stem == "upstream":
        return
    for target in find_imports(PACKAGE / "dialects" / "toy" / path.name, parse(path)):
        if target[:1] == ("dragoman",) and target[1:2] != ("dialects",):
            assert target[1] in MAY_IMPORT["dialects"], f"{name_of(path)} imports {'.'.join(target)}"
        elif target[:1] == ("dragoman",):
            assert target[2:3] in SHARED_BY_DIALECTS, f"{name_of(path)} imports {'.'.join(target)}"


@each([p for p in SOURCES if get_dotted_name(p)[:1] == ("dialects",)])
def test_a_dialect_never_imports_another(path):
    dotted_name = get_dotted_name(path)
    if len(dotted_name) < 2 or dotted_name[1] not in DIALECTS:
        return
    for target in list_imports(path):
        if target[:2] == ("dragoman", "dialects"):
            assert target[2:3] in {*SHARED_BY_DIALECTS, dotted_name[1:2]}, f"{name_of(path)} imports {'.'.join(target)}"


@each([p for p in SOURCES if room_of(get_dotted_name(p)) in PURE])
def test_the_pure_rooms_have_no_effects_and_no_async(path):
    tree = parse(path)
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith), (
            f"{name_of(path)}:{node.lineno}"
        )
        is_open = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print"}
        assert not is_open, f"{name_of(path)}:{node.lineno}"
    names = {".".join(target[:depth]) for target in find_imports(path, tree) for depth in (1, 2)}
    assert not names & EFFECTS, name_of(path)


@each([p for p in SOURCES if room_of(get_dotted_name(p)) in PURE])
def test_the_pure_rooms_need_only_msgspec(path):
    """A schema validator may be loaded by the interpreter, but only inside the function that needs it."""
    tree = parse(path)
    eager = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    foreign = {target[0] for target in find_imports(path, eager)} - set(sys.stdlib_module_names) - {"dragoman"}
    assert foreign <= PURE_PACKAGES, name_of(path)
    lazy = {target[0] for target in find_imports(path, tree)} - set(sys.stdlib_module_names) - {"dragoman"}
    extra = {"jsonschema_rs"} if room_of(get_dotted_name(path)) == "interpreter" else set()
    assert lazy <= PURE_PACKAGES | extra, name_of(path)


def literals(node: ast.AST) -> set[str]:
    """The strings in one side of a comparison or in a case pattern."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*map(literals, node.elts)) if node.elts else set()
    return set()


def _asks_for_dialect(words: set[str], others: str) -> bool:
    # "messages" is also a member of request bodies and a way of taking turns: it counts only beside a dialect.
    return bool(words - {"messages"}) or ("messages" in words and ("dialect" in others or others.endswith(".name")))


def decides_by_dialect(node: ast.AST) -> bool:
    """Whether a node chooses what to do by a dialect's name."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        words = set().union(*map(literals, sides)) & DIALECTS
        others = " ".join(ast.unparse(side) for side in sides if not literals(side))
        return _asks_for_dialect(words, others)
    if isinstance(node, ast.Match):
        patterns = (
            pattern.value
            for case in node.cases
            for pattern in ast.walk(case.pattern)
            if isinstance(pattern, ast.MatchValue)
        )
        words = set().union(*map(literals, patterns)) & DIALECTS
        return _asks_for_dialect(words, ast.unparse(node.subject))
    if isinstance(node, ast.Dict):
        keys = set().union(*(literals(key) for key in node.keys if key is not None)) if node.keys else set()
        acts = any(isinstance(value, ast.Name | ast.Attribute | ast.Lambda) for value in node.values)
        return len(keys & DIALECTS) > 1 and acts
    return False


@each(SOURCES)
def test_nothing_outside_a_dialects_folder_decides_by_a_dialects_name(path):
    dotted_name = get_dotted_name(path)
    inside = dotted_name[:1] == ("dialects",) and len(dotted_name) > 1 and dotted_name[1] in DIALECTS
    if inside or path.stem.startswith("traits"):  # rows of the traits table are data about a dialect
        return
    found = [node.lineno for node in ast.walk(parse(path)) if decides_by_dialect(node)]
    assert not found, f"{name_of(path)} lines {sorted(set(found))}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if dialect == 'chat': pass", True),
        ("if 'gemini' != target.name: pass", True),
        ("if dialect in ('messages', 'chat'): pass", True),
        ("if name == 'messages': pass", False),
        ("if dialect.name == 'messages': pass", True),
        ("TABLE = {'chat': parse_chat, 'gemini': parse_gemini}", True),
        ("TABLE = {'chat': 'call_', 'gemini': ''}", False),
        ("if kind == 'chatty': pass", False),
        ("match name:\n    case 'gemini' | 'other': pass", True),
        ("match traits.turns:\n    case 'messages': pass", False),
        ("match traits.dialect:\n    case 'messages': pass", True),
    ],
)
def test_the_search_for_dialect_names_distinguishes_decisions_from_data(source, expected):
    assert any(map(decides_by_dialect, ast.walk(ast.parse(source)))) is expected
