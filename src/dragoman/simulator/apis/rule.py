"""A rule: one thing a vendor rejects, with the source of that knowledge and the checks that detect it.

A check is a function of the request and its context that yields violations. Most are data: `PathCheck` names a path in
the document, a test of the value found there, and the vendor's error text. Each vendor's package has shorter forms of
it for its limits, required fields, exclusions and allowed values. A function is written only where a rule needs one.
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
"""The rule as every API lists it. The name patterns are those of recorded rejections."""
Json = dict[str, Any]
Body = TypeVar("Body")
Matches = list[tuple[str, Any]]
"""JSON pointers and the values at them."""
ErrorText = str | Callable[[str, Any], str]
"""The vendor's error text, or a function of pointer and value that returns it ("" if nothing is wrong)."""


class Violation(Struct, frozen=True):
    """An error in a request: the vendor's error text, and its location (a JSON pointer, or "" for the whole body)."""

    message: str
    where: str = ""
    status: int = 400
    rule: str = ""
    """The name of the rule, filled in by the rule that found the violation."""


class CheckContext(Struct, frozen=True, kw_only=True):
    """What a check knows about a request besides its body."""

    model: str
    recorded: bool = False
    """Accept well-formed signatures of the real vendor, because the request is a recording."""
    vertex: bool = False
    """The request came on a Vertex path (rawPredict, aiplatform)."""
    counting: bool = False
    """The request only counts tokens; nothing is generated."""
    compacting: bool = False
    """The request only compacts the conversation; nothing is answered."""
    version: str = ""
    """The API version named by a header or the path; "" if there is none."""
    betas: tuple[str, ...] | None = None
    """The beta features named by a header; None if the headers are not known."""


class Rule(Generic[Body]):
    """One rule and its source (documented or recorded); without checks, the declaration of the body enforces it."""

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
        """The top-level field without which the checks are skipped; "" to run them always."""


def find_first_violation(rules: Iterable[Rule[Body]], request: Body, context: CheckContext) -> Violation | None:
    """Return the first violation of a request, or None; vendors report only one."""
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
    """Return all checks, each with the field it needs and the name of its rule."""
    return [(getattr(check, "root", rule.root), check, rule.name) for rule in rules for check in rule.checks]


class VendorRequest(Struct, frozen=True):
    """A request as checks see it: its JSON. An API's subclass adds what else its rules need. Null means absent."""

    document: Json
    computed: Json = field(default_factory=dict[str, Any])
    """Cache of values that several rules use, by name."""

    def get(self, name: str) -> Any:
        """Return a field, or None if it is absent."""
        return self.document.get(name)

    def list(self, name: str) -> list[Any]:
        """Return a field that is a list, or an empty list if it is absent."""
        return self.document.get(name) or []

    def object(self, name: str) -> Json:
        """Return a field that is an object, or an empty one if it is absent."""
        return self.document.get(name) or {}

    def at(self, path: str) -> Any:
        """Return the first value at a path, or None if there is none."""
        return next((value for _, value in self.find(path)), None)

    def find(self, path: str) -> Matches:
        """Return the pointers and values at a path, as `find` does; shared prefixes of paths are searched once."""
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
    """Decorate a function whose result several rules use, so that it is computed once per request."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    def look_up(request: RequestT) -> list[Item]:
        if name not in request.computed:
            request.computed[name] = list(compute(request))
        return request.computed[name]

    return look_up


class PathCheck(Struct, frozen=True):
    """Reject the value at a path if `test` is true for the value and `when` for the request."""

    path: str
    message: ErrorText
    test: Callable[[Any], bool] | None = None
    when: Callable[[Any], bool] | None = None
    steps: int | None = None
    """Report only the first so many steps of the pointer."""
    status: int = 400

    @property
    def root(self) -> str:
        """The top-level field that is searched; the check is skipped if it is absent."""
        return self.path.split("/", 2)[1]

    def __call__(self, request: VendorRequest, _: CheckContext) -> Iterable[Violation]:
        """Return the violations of a request."""
        return () if self.when and not self.when(request) else self._find_violations(request)

    def _find_violations(self, request: VendorRequest) -> Iterator[Violation]:
        for pointer, value in request.find(self.path):
            if self.test is None or self.test(value):
                where = pointer if self.steps is None else truncate_pointer(pointer, self.steps)
                message = self.message if isinstance(self.message, str) else self.message(where, value)
                if message:
                    yield Violation(message, where, self.status)


def when_set(path: str) -> Callable[[VendorRequest], bool]:
    """Return a condition that is true if a value at the path is neither false nor empty."""
    return lambda request: any(value for _, value in request.find(path))


def when_unset(path: str) -> Callable[[VendorRequest], bool]:
    """Return a condition that is true if the path has no value, or only false or empty ones."""
    return lambda request: not any(value for _, value in request.find(path))


def find(document: Any, path: str) -> Matches:
    """Return the pointers and values at a path.

    `*` matches any item or member; null is skipped because it means absent.
    """
    found: Matches = [("", document)]
    for step in _split_path(path):
        found = _step_into(found, step)
        if not found:
            break
    return found


def _step_into(places: Matches, step: str) -> Matches:
    """Return the pointers and values one step below the given ones."""
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
    """Split a path into steps; the cache is bounded by the number of paths in rules."""
    return path.split("/")[1:]


def truncate_pointer(pointer: str, steps: int) -> str:
    """Return the first steps of a pointer."""
    return "/".join(pointer.split("/")[: steps + 1])


def is_absent(model: str) -> bool:
    """Return whether a model is simulated as one that does not exist, by its name."""
    return _ABSENT_NAME.search(model) is not None
