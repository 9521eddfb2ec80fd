"""A rule: one thing a vendor refuses, with its source and the checks that find it.

A check is a function of the request and the situation that yields violations. Most are data: `Refuse` names a path in
the document, a test of what is found there, and the vendor's words. A vendor's package has shorter forms of it for its
limits, requirements, exclusions and allowed values. A function is written only where a rule needs one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct, field

from dragoman.wire.pointer import escape

_ABSENT_NAME = re.compile(r"no-such|non-?existent|does-not-exist")
MODEL_EXISTS = (
    "The model exists; one with `no-such`, `non-existent`, `nonexistent` or `does-not-exist` in its name does not."
)
"""The rule as every API lists it. The words are those of recorded refusals."""
Json = dict[str, Any]
Body = TypeVar("Body")
Matches = list[tuple[str, Any]]
"""Pointers and values."""
ErrorText = str | Callable[[str, Any], str]
"""What the vendor says, or a function of pointer and value that returns it: "" if nothing is wrong."""


class Violation(Struct, frozen=True):
    """What is wrong, in the vendor's words, and where (a JSON pointer, or "" for the whole)."""

    message: str
    where: str = ""
    status: int = 400
    rule: str = ""
    """Filled in by the rule that found it."""


class CheckContext(Struct, frozen=True, kw_only=True):
    """What a check knows beside the body."""

    model: str
    recorded: bool = False
    """Well-formed signatures of the real vendor are let through: the request is a recording."""
    vertex: bool = False
    """The request came on a Vertex path (rawPredict, aiplatform)."""
    counting: bool = False
    """Tokens shall only be counted; nothing is generated."""
    compacting: bool = False
    """The conversation shall only be made short; nothing is answered."""
    version: str = ""
    """The API version that a header or the path names; "" when none was told."""
    betas: tuple[str, ...] | None = None
    """The beta features that a header names; None when nobody told."""


class Rule(Generic[Body]):
    """One rule, and where it is documented or recorded; one without checks is kept by the declaration of the body."""

    def __init__(
        self,
        name: str,
        says: str,
        source: str,
        *checks: Callable[[Body, CheckContext], Iterable[Violation]],
        root: str = "",
    ) -> None:
        self.name = name
        self.says = says
        self.source = source
        self.checks = checks
        self.root = root
        """The member of the document without which the checks find nothing; "" if they always look."""


def find_first_violation(rules: Iterable[Rule[Body]], request: Body, context: CheckContext) -> Violation | None:
    """Return the first thing that is wrong; vendors tell one."""
    document = getattr(request, "document", {})
    for root, check, name in _checks_of(tuple(rules)):
        if root and (root not in document or document[root] is None):
            continue
        for violation in check(request, context):
            return Violation(violation.message, violation.where, violation.status, name)
    return None


@cache
def _checks_of(
    rules: tuple[Rule[Any], ...],
) -> list[tuple[str, Callable[[Any, CheckContext], Iterable[Violation]], str]]:
    """Return all checks, each with the member it needs and the name of its rule."""
    return [(getattr(check, "root", rule.root), check, rule.name) for rule in rules for check in rule.checks]


class VendorRequest(Struct, frozen=True):
    """A request as checks see it: its JSON; an API's own kind adds what else its rules look at. Null means absent."""

    document: Json
    computed: Json = field(default_factory=dict[str, Any])
    """What several rules look at, by name, once it is computed."""

    def get(self, name: str) -> Any:
        """Return a member; None if it is absent."""
        return self.document.get(name)

    def list(self, name: str) -> list[Any]:
        """Return a member that is a list; an empty list if it is absent."""
        return self.document.get(name) or []

    def object(self, name: str) -> Json:
        """Return a member that is an object; an empty one if it is absent."""
        return self.document.get(name) or {}

    def at(self, path: str) -> Any:
        """Return the first value at a path; None if there is none."""
        return next((value for _, value in self.find(path)), None)

    def find(self, path: str) -> Matches:
        """Return what `find` does; what several paths have in common is looked for once."""
        found = self.computed.get(path)
        if found is None:
            above, _, step = path.rpartition("/")
            places = self.find(above) if above else [("", self.document)]
            found = _step_into(places, step)
            self.computed[path] = found
        return found


RequestT = TypeVar("RequestT", bound=VendorRequest)
Item = TypeVar("Item")


def cache_per_request(compute: Callable[[RequestT], Iterable[Item]]) -> Callable[[RequestT], list[Item]]:
    """Decorate a function that returns what several rules look at: it is computed once for each request."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    def look_up(request: RequestT) -> list[Item]:
        if name not in request.computed:
            request.computed[name] = list(compute(request))
        return request.computed[name]

    return look_up


class PathCheck(Struct, frozen=True):
    """Refuse what stands at a path, if the test holds for the value and `when` for the request."""

    path: str
    message: ErrorText
    test: Callable[[Any], bool] | None = None
    when: Callable[[Any], bool] | None = None
    steps: int | None = None
    """Report only so many steps of the pointer."""
    status: int = 400

    @property
    def root(self) -> str:
        """The member of the document that is looked into: if it is absent, this is not called."""
        return self.path.split("/", 2)[1]

    def __call__(self, request: VendorRequest, _: CheckContext) -> Iterable[Violation]:
        """Return what is wrong."""
        return () if self.when and not self.when(request) else self._find_violations(request)

    def _find_violations(self, request: VendorRequest) -> Iterator[Violation]:
        for pointer, value in request.find(self.path):
            if self.test is None or self.test(value):
                where = pointer if self.steps is None else truncate_pointer(pointer, self.steps)
                message = self.message if isinstance(self.message, str) else self.message(where, value)
                if message:
                    yield Violation(message, where, self.status)


def when_set(path: str) -> Callable[[VendorRequest], bool]:
    """Make a condition: something stands at a path that is neither false nor empty."""
    return lambda request: any(value for _, value in request.find(path))


def when_unset(path: str) -> Callable[[VendorRequest], bool]:
    """Make a condition: nothing stands at a path, or only something that is false or empty."""
    return lambda request: not any(value for _, value in request.find(path))


def find(document: Any, path: str) -> Matches:
    """Return the pointers and values at a path; `*` is any item or member. Null is skipped: it means absent."""
    found: Matches = [("", document)]
    for step in _split_path(path):
        found = _step_into(found, step)
        if not found:
            break
    return found


def _step_into(places: Matches, step: str) -> Matches:
    """Return what is one step below these places."""
    found: Matches = []
    for where, value in places:
        if step == "*":
            found += [(f"{where}/{name}", item) for name, item in _iterate_members(value) if item is not None]
        elif isinstance(value, dict):
            member = cast("Json", value).get(step)
            if member is not None:
                found.append((f"{where}/{step}", member))
    return found


def _iterate_members(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, list):
        return enumerate(cast("list[Any]", value))
    if isinstance(value, dict):
        return [(escape(name), member) for name, member in cast("Json", value).items()]
    return ()


@cache
def _split_path(path: str) -> list[str]:
    """Split a path; there are only those that rules have."""
    return path.split("/")[1:]


def truncate_pointer(pointer: str, steps: int) -> str:
    """Return the first steps of a pointer."""
    return "/".join(pointer.split("/")[: steps + 1])


def is_absent(model: str) -> bool:
    """Tell whether a model shall not exist."""
    return _ABSENT_NAME.search(model) is not None
