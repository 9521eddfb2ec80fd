"""Common types of scenarios, SDKs and upstreams, independent of the interpreter."""

import json
from typing import Any

from msgspec import Struct


class Tool(Struct, frozen=True):
    """A tool that is declared."""

    name: str
    description: str
    schema: dict[str, Any]


class VendorTool(Struct, frozen=True, kw_only=True):
    """A vendor's own tool that the client runs."""

    declaration: dict[str, Any]
    name: str
    """The name that its calls have at other vendors."""
    parameters: frozenset[str]
    """The names of the parameters that it has at other vendors."""
    arguments: dict[str, Any]
    result: Any
    text: str
    """The result at other vendors."""


class Call(Struct, frozen=True):
    """A call, as it is read."""

    id: str
    name: str
    arguments: dict[str, Any]


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answered, for the client to send."""

    value: Any
    """JSON, or words where it failed."""
    failed: bool = False
    image: bytes = b""

    @property
    def text(self) -> str:
        """The value as dialects with text results have it."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value)


class Reply(Struct, frozen=True, kw_only=True):
    """What an SDK saw."""

    text: str
    thought: str
    calls: tuple[Call, ...]
    finish: str
    """`stop` or `calls`."""
    tokens: tuple[int, int]
    """What went in and what came out."""
    cached: int
    """How many of the first were read from the vendor's prompt cache."""


class ReceivedResult(Struct, frozen=True, kw_only=True):
    """A result, as an upstream got it."""

    call_id: str
    name: str | None = None
    """The tool's name, where the dialect wants it again."""
    value: Any
    failed: bool | None = None
    """None where the dialect cannot say it."""
    images: tuple[bytes, ...] = ()


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """What an upstream got, read in its own dialect."""

    system: str
    prompt: str
    tools: tuple[Tool, ...]
    vendor_tools: tuple[dict[str, Any], ...] = ()
    """The declarations of the vendor's own tools."""
    choice: str
    """`auto`, `none`, or the name of the tool that must be called."""
    calls: tuple[Call, ...]
    results: tuple[ReceivedResult, ...]
    images: tuple[bytes, ...]
    """Images that follow the results and are not in them."""
    thoughts: tuple[str, ...]
    """Reasoning that came back."""
    signatures: tuple[str, ...]


def value_of(text: str) -> Any:
    """Return a text as JSON if it is valid JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
