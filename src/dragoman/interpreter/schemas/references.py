"""Find what a `$ref` points at, inside the same document only. Nothing is ever fetched."""

from typing import Any
from urllib.parse import unquote, urljoin

from dragoman.interpreter.schemas.nodes import DEEPEST_SCHEMA, Node, as_list, as_node, children
from dragoman.interpreter.schemas.outcome import Note
from dragoman.interpreter.schemas.sentences import with_sentences
from dragoman.wire.pointer import split, unescape

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """The targets of one document, by pointer, anchor and embedded id."""

    def __init__(self, root: object) -> None:
        self.root = root
        self._named: dict[str, str] = {}
        self._resources: dict[str, str] = {}
        self._collected = False

    def locate(self, reference: object, where: str = "") -> str | None:
        """Return the pointer of what `reference`, standing at `where`, names; None if it is not in this document."""
        if not isinstance(reference, str):
            return None
        if not self._collected:
            self._collected = True
            self._collect(self.root, "", "", 0)
        resource, base = self._resource(where) if self._resources else ("", "")
        location, _, fragment = reference.partition("#")
        if location:
            found = self._named.get(_joined(base, location))
            if found is None:
                return None
            resource, base = found, _joined(base, location)
        if not fragment or fragment.startswith("/"):
            return self._existing(resource + unquote(fragment))
        return self._named.get(f"{base}#{fragment}")

    def at(self, pointer: str) -> Any:
        """Return the schema at a pointer that `locate` gave."""
        value: Any = self.root
        for token in split(pointer):
            node = as_node(value)
            value = as_list(value)[int(token)] if node is None else node[token]
        return value

    def _resource(self, where: str) -> tuple[str, str]:
        """Return pointer and base URI of the innermost schema with an id around `where`."""
        while where not in self._resources and where:
            where = where.rpartition("/")[0]
        return where, self._resources.get(where, "")

    def _existing(self, pointer: str) -> str | None:
        return pointer if existing_part(self.root, pointer) == pointer and self._is_schema(pointer) else None

    def _is_schema(self, pointer: str) -> bool:
        return isinstance(self.at(pointer), dict | bool)

    def _collect(self, schema: object, where: str, base: str, depth: int) -> None:
        node = as_node(schema)
        if node is None or depth > DEEPEST_SCHEMA:
            return
        identity = node.get("$id")
        if isinstance(identity, str) and identity:
            # Draft 7 wrote anchors as ids.
            uri = base + identity if identity.startswith("#") else _joined(base, identity)
            self._named.setdefault(uri, where)
            if not identity.startswith("#"):
                base = uri.rstrip("#")
                self._resources[where] = base
                self._named.setdefault(base, where)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._named.setdefault(f"{base}#{node[keyword]}", where)
        for relative, child in children(node):
            self._collect(child, where + relative, base, depth + 1)


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def reference_of(node: Node) -> object:
    """Return the reference a node makes, None if it makes none."""
    for keyword in REFERENCES:
        if keyword in node:
            return node[keyword]
    return None


def without_reference(node: Node) -> Node:
    """Return what stands beside a reference."""
    return {keyword: value for keyword, value in node.items() if keyword not in REFERENCES}


def severed(node: Node, where: str, notes: list[Note]) -> Node:
    """Say in words what a reference to another document names: vendors refuse it, and nobody fetches it."""
    keyword = next(word for word in REFERENCES if word in node)
    reference = node[keyword]
    what = f"reference {reference} is not in this schema: said in the description only"
    notes.append(Note(f"{where}/{keyword}", what, "approximated"))
    rest = without_reference(node)
    return {**rest, "description": with_sentences(rest.get("description"), [f"as described at {reference}"])}


def name_of(pointer: str) -> str:
    """Return the last step of a pointer, for people."""
    tokens = split(pointer)
    return tokens[-1] if tokens else "the whole schema"


def existing_part(root: object, pointer: str) -> str:
    """Cut a pointer to the part that exists in the document; merged schemas have places that do not."""
    value: Any = root
    found = ""
    for step in pointer.split("/")[1:]:
        token = unescape(step)
        if (node := as_node(value)) is not None and token in node:
            value = node[token]
        elif token.isdecimal() and int(token) < len(as_list(value)):
            value = value[int(token)]
        else:
            break
        found += "/" + step
    return found
