"""Compact declarations of request bodies, and the search for the first mismatch with one.

A declaration is one of

    str, int, float, bool, dict, Any
                                    a value of that type; an integer is also a float
    Number(int, least=1)            a number within bounds
    String(most=64)                 a string with a limited number of characters
    StringEnum("a", "b")            one of these strings
    [X]                             an array of X
    (X, Y)                          one of several, by JSON type
    MapOf(X, names=String(most=64), most=16)
                                    an object with arbitrary keys
    {"a": X, "b?": Y}               an object with these members; those with `?` may be absent or null
    TaggedUnion("type", {"a": {...}})
                                    objects discriminated by the value of one member
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

from dragoman.wire.pointer import escape

MismatchReason = Literal["unknown-field", "required", "type", "enum", "bounds"]
_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    dict: "object",
    list: "array",
    type(None): "null",
}
_TYPE_ORDER = ("bool", "int", "float", "str", "object", "array")
ANY_KEY = "..."
"""Replaces an arbitrary key in a pointer."""


class Mismatch(Exception):  # noqa: N818  the name says what the value is
    """A value does not match its declaration; the pointer is built from the inside out while the error is raised."""

    def __init__(self, reason: MismatchReason, value: Any, kind: "Kind", name: str = "") -> None:
        super().__init__(reason)
        self.reason: MismatchReason = reason
        self.value = value
        self.kind = kind
        self.name = name
        """The member that is unknown or missing."""
        self.where = ""

    def prepend(self, token: str | int) -> "Mismatch":
        """Add one step to the front of the pointer."""
        self.where = f"/{escape(str(token))}{self.where}"
        return self


class Kind:
    """The values allowed at a place: those of the given JSON types, or any value if none is given."""

    def __init__(self, *types: str) -> None:
        self.types = types
        names = (*types, "int") if "float" in types else types or _NAMES.values()
        self.python_types = frozenset(kind for kind, name in _NAMES.items() if name in names)
        """The Python types of such values."""

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless a value is as declared."""
        if type(value) not in self.python_types:
            raise Mismatch("type", value, self)


class Number(Kind):
    """A number, with optional bounds."""

    def __init__(self, of: type, least: float | None = None, most: float | None = None) -> None:
        super().__init__(_NAMES[of])
        self.least = least
        self.most = most

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless a value is such a number."""
        super().check(value)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise Mismatch("bounds", value, self)


class String(Kind):
    """A string with a limited number of characters."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        super().__init__("str")
        self.least = least
        self.most = most

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless a value is such a string."""
        super().check(value)
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            raise Mismatch("bounds", value, self)


class StringEnum(Kind):
    """One of a list of strings, in the vendor's order; `unlisted` ones are accepted but not named in errors."""

    def __init__(self, *words: str, unlisted: tuple[str, ...] = ()) -> None:
        super().__init__("str")
        self.allowed = words
        self._accepted = frozenset((*words, *unlisted))

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless a value is one of the strings."""
        super().check(value)
        if value not in self._accepted:
            raise Mismatch("enum", value, self)


class TagEnum(StringEnum):
    """The allowed values of a discriminator."""


class Array(Kind):
    """An array whose items are all of one kind."""

    def __init__(self, items: Any) -> None:
        super().__init__("array")
        self.items = parse_declaration(items)

    def check(self, value: Any) -> None:
        """Raise `Mismatch` for the first item that is not as declared."""
        super().check(value)
        for index, item in enumerate(cast("list[Any]", value)):
            try:
                self.items.check(item)
            except Mismatch as found:
                raise found.prepend(index) from None


class MapOf(Kind):
    """An object with arbitrary keys, at most `most` of them."""

    def __init__(self, values: Any, names: Any = str, most: int | None = None) -> None:
        super().__init__("object")
        self.values = parse_declaration(values)
        self.names = parse_declaration(names)
        self.most = most

    def check(self, value: Any) -> None:
        """Raise `Mismatch` for the first key or value that is not as declared, or if there are too many."""
        super().check(value)
        if self.most is not None and len(value) > self.most:
            raise Mismatch("bounds", value, self)
        for name, inner in cast("dict[str, Any]", value).items():
            try:
                self.names.check(name)
                self.values.check(inner)
            except Mismatch as found:
                raise found.prepend(ANY_KEY) from None


class Object(Kind):
    """An object; an `is_open` one may have members that are not declared."""

    def __init__(self, members: dict[str, Any], *, is_open: bool = False) -> None:
        super().__init__("object")
        self.members = {name.removesuffix("?"): parse_declaration(kind) for name, kind in members.items()}
        self._required = tuple(name for name in members if not name.endswith("?"))
        self._is_open = is_open
        self._simple = {name: kind.python_types for name, kind in self.members.items() if type(kind) is Kind}
        """The types of members that declare nothing but a type: most do, so these are checked first."""

    def check(self, value: Any) -> None:
        """Raise `Mismatch` for the first member that is not as declared, then for the first that is missing."""
        super().check(value)
        for name, inner in cast("dict[str, Any]", value).items():
            if type(inner) in self._simple.get(name, ()):
                continue
            kind = self.members.get(name)
            if kind is None:
                if self._is_open:
                    continue
                raise Mismatch("unknown-field", inner, self, name)
            if inner is None and name not in self._required:
                continue
            try:
                kind.check(inner)
            except Mismatch as found:
                raise found.prepend(name) from None
        for name in self._required:
            if name not in value:
                raise Mismatch("required", None, self, name)


class TaggedUnion(Kind):
    """Objects discriminated by the value of one member, in the order in which the vendor lists the values.

    An object without that member has the form `default`, if there is one; with `nullable`, null means the same.
    """

    def __init__(self, tag: str, forms: Mapping[str, Any], default: str = "", *, nullable: bool = False) -> None:
        super().__init__("object")
        self.tag = tag
        self.forms = {
            name: form if isinstance(form, Kind) else Object({f"{tag}?": str, **form}) for name, form in forms.items()
        }
        self.tag_enum = TagEnum(*forms)
        self.default = default
        self._nullable = nullable

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless an object has a known tag and the members of that form."""
        super().check(value)
        tag: Any = value.get(self.tag, self.default)
        if tag is None and self._nullable:
            tag = self.default
        form = self.forms.get(tag) if isinstance(tag, str) else None
        if form is None and self.tag not in value:
            raise Mismatch("required", None, self, self.tag)
        if form is None:
            raise Mismatch("enum" if isinstance(tag, str) else "type", tag, self.tag_enum).prepend(self.tag)
        form.check(value)


class OneOf(Kind):
    """One of several kinds, discriminated by their JSON types."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.kinds = tuple(parse_declaration(kind) for kind in kinds)
        types = {name for kind in self.kinds for name in kind.types}
        super().__init__(*(name for name in _TYPE_ORDER if name in types))
        self._by_type = {accepted: kind for kind in reversed(self.kinds) for accepted in kind.python_types}

    def check(self, value: Any) -> None:
        """Raise `Mismatch` unless the kind for the value's JSON type accepts it."""
        super().check(value)
        self._by_type[type(value)].check(value)


def parse_declaration(declaration: Any) -> Kind:
    """Return the kind for a declaration."""
    match declaration:
        case Kind():
            return declaration
        case dict():
            return Object(cast("dict[str, Any]", declaration))
        case list():
            return Array(declaration[0])
        case tuple():
            return OneOf(cast("tuple[Any, ...]", declaration))
        case type() if declaration in _NAMES:
            return Kind(_NAMES[declaration])
        case _:
            return Kind()


def find_first_mismatch(kind: Kind, body: Any) -> Mismatch | None:
    """Return the first mismatch of a body with its declaration, in the order of the body."""
    try:
        kind.check(body)
    except Mismatch as found:
        return found
    return None
