"""The report of losses: losses of one thing are merged, every leaf is listed on request, and strict mode rejects them.

One thing that is lost is one loss, at the highest pointer under which nothing else is in the document, with the number
of its leaves; `list_leaves` lists every leaf.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from dragoman.core.losses import Loss, Strict
from dragoman.core.problems import Problem
from dragoman.wire.lookup import Document, find_leaves

_MAX_HEADER = 1024
"""Many clients and proxies limit all headers together to some kilobytes."""
_MAX_LISTED = 20
"""Losses in the message of strict mode."""


def merge_losses(losses: Iterable[Loss], count_leaves: Callable[[str], int], fewest: int) -> list[Loss]:
    """Return one loss for each thing that is lost.

    `count_leaves` returns the number of leaves at a pointer of the document; losses of all members of an object or
    array, at least `fewest`, are one loss.
    """
    dropped: dict[str, Loss] = {}
    approximated: dict[str, Loss] = {}
    for loss in losses:
        if loss.kind == "dropped":
            _add_dropped(loss, dropped)
        else:
            _add_approximated(loss, approximated)
    if len(dropped) > 1:
        for where in [where for where in dropped if _is_covered(where, dropped)]:
            del dropped[where]
    if len(dropped) >= fewest:
        _join_siblings(dropped, approximated, count_leaves, fewest)
    return [*dropped.values(), *(loss for loss in approximated.values() if not _is_covered(loss.where, dropped))]


def _add_dropped(loss: Loss, dropped: dict[str, Loss]) -> None:
    """Add a dropped value; of several reasons the first counts. A value of a stream may come in several events."""
    before = dropped.setdefault(loss.where, loss)
    if before.leaves < loss.leaves:
        dropped[loss.where] = structs.replace(before, leaves=loss.leaves)


def _add_approximated(loss: Loss, approximated: dict[str, Loss]) -> None:
    """Add an approximated value, which may be approximated for several reasons; one of them may make it material."""
    before = approximated.setdefault(loss.where, loss)
    if loss.what not in before.what.split("; "):
        grade = "material" if loss.grade == "material" else before.grade
        approximated[loss.where] = structs.replace(before, what=f"{before.what}; {loss.what}", grade=grade)


def _join_siblings(
    dropped: dict[str, Loss], approximated: Mapping[str, Loss], count_leaves: Callable[[str], int], fewest: int
) -> None:
    """Replace the losses of all members of an object or array by one loss, if their reason is the same."""
    kept = {above for where in approximated for above in (where, *_list_above(where))}
    level = {where.rpartition("/")[0] for where in dropped}
    while level:
        members: dict[str, list[Loss]] = {parent: [] for parent in level if parent and parent not in kept}
        for loss in dropped.values():
            if (siblings := members.get(loss.where.rpartition("/")[0])) is not None:
                siblings.append(loss)
        level: set[str] = set()
        for parent, losses in members.items():
            leaves = sum(loss.leaves for loss in losses)
            has_one_reason = len({(loss.what, loss.grade) for loss in losses}) == 1
            if len(losses) >= fewest and has_one_reason and count_leaves(parent) == leaves:
                for loss in losses:
                    del dropped[loss.where]
                dropped[parent] = structs.replace(losses[0], where=parent, leaves=leaves)
                level.add(parent.rpartition("/")[0])


def _list_above(where: str) -> Iterator[str]:
    """Yield the pointers above `where`."""
    while where:
        where = where.rpartition("/")[0]
        yield where


def _is_covered(where: str, dropped: Mapping[str, Loss]) -> bool:
    """Return whether a value above `where` is dropped."""
    while where:
        where = where.rpartition("/")[0]
        if where in dropped:
            return True
    return False


def list_leaves(losses: Iterable[Loss], document: bytes) -> tuple[Loss, ...]:
    """Return the losses with one loss for each leaf of a dropped value."""
    listed: list[Loss] = []
    values = Document(document)
    for loss in losses:
        found = values.find(loss.where) if loss.kind == "dropped" else None
        leaves = [loss.where] if found is None else find_leaves(found[1], loss.where)
        listed += [structs.replace(loss, where=leaf, leaves=1) for leaf in leaves]
    return tuple(listed)


def reject_losses(losses: Iterable[Loss], document: str = "request", *, strict: Strict = True) -> None:
    """Raise a `Problem` that lists the material losses, or all with `strict="all"`, if there are any."""
    rejected = [loss for loss in losses if strict == "all" or loss.grade == "material"]
    if rejected:
        messages = [f"{loss.kind} {loss.where or '/'}: {loss.what}" for loss in rejected]
        more = f" (and {len(messages) - _MAX_LISTED} more)" if len(messages) > _MAX_LISTED else ""
        message = (
            f"strict mode: the {document} cannot be translated without loss: {'; '.join(messages[:_MAX_LISTED])}{more}"
        )
        raise Problem("unsupported", message, where=rejected[0].where)


def format_losses(losses: Sequence[Loss]) -> str:
    """Return the numbers of all and of material losses, then as many losses as fit into a header, material ones first.

    The result is printable ASCII.
    """
    material: list[str] = []
    others: list[str] = []
    for loss in losses:
        item = f"; {loss.kind} {loss.where}: {loss.what}"
        (material if loss.grade == "material" else others).append(item)
    items = material + others
    line = f"{len(losses)}; material={len(material)}{''.join(items)}"
    while len(line) > _MAX_HEADER:
        line = line[: -len(items.pop())]
    if line.isascii() and line.isprintable():
        return line
    return "".join([char if " " <= char <= "~" else "?" for char in line])
