"""The tool that a model means by a name it wrote."""

from collections.abc import Sequence


def meant(name: str, names: Sequence[str]) -> str:
    """Return the tool of that name, or the only one that differs in case, `_` and `-` alone; else the name itself."""
    if name in names:
        return name
    alike = [known for known in names if _plain(known) == _plain(name)]
    return alike[0] if len(alike) == 1 else name


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
