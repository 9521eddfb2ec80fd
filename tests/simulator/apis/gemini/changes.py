"""Access to bodies for mutators: names in either spelling, single values in place of lists, tokens to sign with."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.gemini.signatures import sign
from dragoman.simulator.apis.rule import Json

SIGNER = TokenSigner()
MODEL = "gemini-3.8-flash"
"""Mutators sign with the default seed and as this model."""
WEATHER: Json = {"name": "look_up_weather", "description": "Tells the weather.", "parameters": {"type": "OBJECT"}}


def camel(name: str) -> str:
    """Convert a snake_case name to camelCase."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


def copy_body(body: Json) -> Json:
    """Return a copy of a body to change, and the request within it."""
    return copy.deepcopy(body)


def request_in(body: Json) -> Json:
    """Return the request in a body that may be a token-count request."""
    return get(body, "generate_content_request") or body


def key_of(holder: Json, name: str) -> str:
    """Return the spelling of a name in an object: the one it already has, or camel case."""
    return name if name in holder else camel(name)


def get(holder: Json, name: str) -> Any:
    """Return a field in either spelling."""
    return holder.get(key_of(holder, name))


def put(holder: Json, name: str, value: Any) -> None:
    """Set a field in its existing spelling."""
    holder[key_of(holder, name)] = value


def drop(holder: Json, name: str) -> None:
    """Remove a field."""
    holder.pop(key_of(holder, name), None)


def as_items(holder: Json, name: str) -> list[Any]:
    """Return a repeated field as a list, and replace a single value by the list."""
    value = get(holder, name)
    if value is None:
        return []
    if not isinstance(value, list):
        value = [value]
        put(holder, name, value)
    return value


def ensure_message(holder: Json, *names: str) -> Json:
    """Return a nested message; it is created if it is missing."""
    for name in names:
        if get(holder, name) is None:
            put(holder, name, {})
        holder = get(holder, name)
    return holder


def contents(body: Json) -> list[Json]:
    """Return the contents."""
    return as_items(request_in(body), "contents")


def parts(content: Json) -> list[Json]:
    """Return the parts of a content."""
    return as_items(content, "parts")


def functions(body: Json) -> list[Json]:
    """Return the functions of all tools."""
    return [
        function for tool in as_items(request_in(body), "tools") for function in as_items(tool, "function_declarations")
    ]


def config(body: Json) -> Json:
    """Return the generation config; it is created if it is missing."""
    return ensure_message(request_in(body), "generation_config")


def with_tools(body: Json, *given: Json) -> Json:
    """Return a copy with these tools only, without fields that depend on other tools."""
    changed = copy_body(body)
    request = request_in(changed)
    put(request, "tools", [copy.deepcopy(tool) for tool in given])
    drop(request, "tool_config")
    if (
        get(request, "cached_content") is not None
        or get(ensure_message(request, "generation_config"), "response_mime_type") is not None
    ):
        drop(request, "cached_content")
        drop(request, "generation_config")
    return changed


def with_function(body: Json, **members: Any) -> Json:
    """Return a copy with one function and no other tool."""
    return with_tools(body, {"functionDeclarations": [{**WEATHER, **members}]})


def with_config(body: Json, **members: Any) -> Json:
    """Return a copy with these fields in its generation config."""
    changed = copy_body(body)
    for name, value in members.items():
        put(config(changed), name, value)
    return changed


def place_parts(body: Json) -> Iterator[tuple[Json, int, Json]]:
    """Yield every part with its content and index."""
    for content in contents(body):
        for index, part in enumerate(parts(content)):
            yield content, index, part


def calls(body: Json) -> list[Json]:
    """Return the parts that are function calls."""
    return [part for _, _, part in place_parts(body) if get(part, "function_call") is not None]


def responses(body: Json) -> list[Json]:
    """Return the function responses."""
    return [
        get(part, "function_response") for _, _, part in place_parts(body) if get(part, "function_response") is not None
    ]


def token_for(part: Json, occasion: str, model: str = MODEL) -> str:
    """Sign a part."""
    call = get(part, "function_call")
    return sign({} if call is None else {"functionCall": call}, model, SIGNER, occasion)


def sign_body(body: Json) -> Json:
    """Return a copy in which the simulator has signed all calls, and all parts that are only a signature."""
    changed = copy_body(body)
    for _, _, part in place_parts(changed):
        if part.keys() - {"thoughtSignature", "thought_signature"}:
            drop(part, "thought_signature")
        else:
            put(part, "thought_signature", token_for(part, "mutated alone"))
    for number, part in enumerate(calls(changed)):
        put(part, "thought_signature", token_for(part, f"mutated {number}"))
    return changed
