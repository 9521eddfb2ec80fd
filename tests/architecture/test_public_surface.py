"""The public names of `dragoman` are kept: what was recorded is still there, and what is new is recorded.

Record a change on purpose: `python -m architecture.test_public_surface` in the folder `tests`, and an entry in CHANGELOG.md.
"""

import inspect
import re
from pathlib import Path
from typing import Unpack, get_args, get_origin

import msgspec

import dragoman
from architecture.tree import ROOT

RECORD = Path(__file__).with_name("public_surface.txt")
PAGE = ROOT / "docs" / "reference" / "python.md"
_BLOCK = re.compile(r"^```python run\n(.*?)^```", re.MULTILINE | re.DOTALL)


def describe_parameters(function) -> list[str]:
    """The parameters of a function: name, kind and whether it has a default."""
    lines: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if get_origin(each.annotation) is Unpack:
            (keywords,) = get_args(each.annotation)
            lines += [f"keyword_only {name}=" for name in keywords.__annotations__]
        else:
            lines.append(f"{each.kind.name.lower()} {each.name}{'=' if each.default is not each.empty else ''}")
    return lines


def describe(name: str) -> list[str]:
    """The lines of one public name: itself, its parameters or fields, and its methods."""
    value = getattr(dragoman, name)
    if not inspect.isclass(value):
        return [name, *(f"{name}({each})" for each in describe_parameters(value))]
    lines = [name]
    if issubclass(value, msgspec.Struct):
        lines += [f"{name}.{each.name}{'' if each.required else '='}" for each in msgspec.structs.fields(value)]
    else:
        lines += [f"{name}({each})" for each in describe_parameters(value.__init__) if not each.endswith(" self")]
    for member, found in inspect.getmembers(value):
        if member.startswith("_") or member in getattr(value, "__struct_fields__", ()):
            continue
        if inspect.isroutine(found) and not inspect.ismethoddescriptor(found):
            lines += [f"{name}.{member}({each})" for each in describe_parameters(found) if not each.endswith(" self")]
        elif isinstance(found, property):
            lines.append(f"{name}.{member}")
    return lines


def list_surface() -> list[str]:
    """Every public name with its parts."""
    return [line for name in sorted(dragoman.__all__) for line in describe(name)]


def test_nothing_public_was_removed_or_renamed():
    gone = set(RECORD.read_text(encoding="utf-8").splitlines()) - set(list_surface())
    assert not gone, "removed or renamed: this needs a new major version, and an entry in the changelog"


def test_everything_public_is_recorded():
    new = set(list_surface()) - set(RECORD.read_text(encoding="utf-8").splitlines())
    assert not new, "new: record it, as the docstring of this file says"


def test_every_public_name_is_in_an_example_of_the_reference_that_runs():
    examples = "\n".join(_BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    assert not [name for name in dragoman.__all__ if not re.search(rf"\b{name}\b", examples)]


if __name__ == "__main__":
    RECORD.write_text("\n".join(list_surface()) + "\n", encoding="utf-8")
