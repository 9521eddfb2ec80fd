"""The mutation tester makes the changes it promises and leaves alone what it must."""

from mutation.mutants import find


def replace(source: str) -> set[tuple[str, str]]:
    raw = source.encode()
    return {(raw[mutant.start : mutant.end].decode(), mutant.replacement) for mutant in find(raw)}


def test_comparisons_are_swapped():
    assert ("a == b", "a != b") in replace("x = a == b")
    assert ("a < b", "a >= b") in replace("x = a < b")
    assert ("a not in b", "a in b") in replace("x = a not in b")
    assert ("a is None", "a is not None") in replace("x = a is None")


def test_logic_is_swapped_and_negated():
    assert ("a and b", "(a or b)") in replace("x = a and b")
    assert ("not a", "(a)") in replace("x = not a")
    assert ("a", "(not (a))") in replace("if a:\n    f()")
    assert ("a", "(not (a))") in replace("x = [y for y in z if a]")


def test_constants_and_keys_are_changed():
    assert ("True", "False") in replace("x = True")
    assert ("3", "4") in replace("x = 3")
    assert ("'call_'", "'call_~mutated'") in replace("x = 'call_'")
    assert ("'tool_use'", "'tool_use~mutated'") in replace("x = {'tool_use': y}")
    assert ('f"{where}/x"', '"mutated"') in replace('x = f"{where}/x"')


def test_arithmetic_is_changed_but_text_is_not_subtracted():
    assert ("a + b", "(a - b)") in replace("x = a + b")
    assert ("a + 'b'", "(a - 'b')") not in replace("x = a + 'b'")


def test_statements_are_removed():
    assert ("f()", "pass") in replace("f()")
    assert ("a.b = c", "pass") in replace("a.b = c")
    assert ("a += 1", "pass") in replace("a += 1")
    assert ("return a", "return None") in replace("def f():\n    return a")
    assert ("continue", "pass") in replace("for a in b:\n    continue")


def test_a_plain_assignment_is_not_removed():
    assert replace("a = b") == set()


def test_what_is_for_people_or_for_types_is_left_alone():
    untouched = '''
"""A docstring."""
from typing import Literal, Protocol, TypeVar
__all__ = ["a"]
T = TypeVar("T")
Mode = Literal["set", "append"]
class A(Protocol):
    def f(self) -> int:
        return 1 + x
def f(a: "int") -> "str":
    """Say."""
    message("two words")
    raise E("kind", f"no {a} here")
'''
    kinds = {text for text, _ in replace(untouched)}
    assert kinds == {'message("two words")', 'raise E("kind", f"no {a} here")'}


def test_every_mutant_compiles_and_differs():
    source = b"def f(a, b):\n    if a and b > 2:\n        a.x = [b'k', \"v\"]\n    return a\n"
    mutants = find(source)
    assert len(mutants) >= 6
    for mutant in mutants:
        changed = mutant.apply(source)
        assert changed != source
        compile(changed, "mutant", "exec")
        assert mutant.diff(source).count("\n+") == 1


def test_positions_count_bytes_and_not_characters():
    assert ("a == b", "a != b") in replace('x = ("š€", a == b)')
