"""How OpenAI says what is wrong: the names of parameters and the sentences about them."""

import re
from collections.abc import Iterable
from typing import get_args

from dragoman.simulator.apis.chat.shape import Effort, Level
from dragoman.simulator.shape import Misshapen
from dragoman.wire.pointer import escape, split

GOT = "{got}"
"""Stands for the value at fault, which only the body knows."""

SOME = "..."
"""How msgspec names a member of a map: it does not tell which."""
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS = ("text", "image_url", "input_audio", "refusal", "file")
UNPARSED = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
    "figuring out how to fix this, please contact us through our help center at help.openai.com.)"
)
_SUPPORTED: dict[str, tuple[str, ...]] = {
    "/audio/format": ("wav", "aac", "mp3", "flac", "opus", "pcm16"),
    "/function_call": ("none", "auto"),
    "/messages/content/image_url/detail": ("auto", "low", "high", "original"),
    "/messages/content/input_audio/format": ("wav", "mp3"),
    "/messages/content/type": PARTS,
    "/messages/role": ROLES,
    "/messages/tool_calls/type": ("function", "custom"),
    "/modalities": ("text", "audio"),
    "/prompt_cache_options/mode": ("implicit", "explicit"),
    "/prompt_cache_options/ttl": ("30m",),
    "/prompt_cache_retention": ("in_memory", "24h"),
    "/reasoning_effort": get_args(Effort),
    "/response_format/type": ("json_object", "json_schema", "text"),
    "/service_tier": ("auto", "default", "fast", "flex", "priority"),
    "/tool_choice": ("none", "auto", "required"),
    "/tool_choice/allowed_tools/mode": ("auto", "required"),
    "/tool_choice/allowed_tools/tools/type": ("function", "custom"),
    "/tool_choice/type": ("function", "allowed_tools", "custom"),
    "/tools/custom/format/grammar/syntax": ("lark", "regex"),
    "/tools/custom/format/type": ("text", "grammar"),
    "/tools/type": ("function", "custom"),
    "/verbosity": get_args(Level),
    "/web_search_options/search_context_size": get_args(Level),
}
_INDEX = re.compile(r"/\d+(?=/|$)")
_TYPES = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<got>[^`]*)`")
_BOUND = re.compile(r"Expected `(?P<type>int|float)` (?P<relation><=|>=) (?P<limit>\S+)")
_EXPECTED = {
    "int": "an integer",
    "float": "a decimal",
    "str": "a string",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array of objects",
}
_FOUND = _EXPECTED | {"float": "a decimal number", "array": "an array", "null": "null"}


def named(pointer: str) -> str:
    """Write a JSON pointer as OpenAI names a parameter: `messages[0].content`."""
    name = ""
    for token in split(pointer):
        if token == SOME:
            break
        name += f"[{token}]" if token.isdecimal() else f".{token}" if name else token
    return name


def listed(words: Iterable[str], last: str = "and") -> str:
    """Write `'a', 'b', and 'c'`."""
    quoted = [f"'{word}'" for word in words]
    if len(quoted) < 3:
        return f" {last} ".join(quoted)
    return f"{', '.join(quoted[:-1])}, {last} {quoted[-1]}"


def unknown(pointer: str) -> str:
    """A member nobody knows."""
    return f"Unknown parameter: '{named(pointer)}'."


def missing(pointer: str) -> str:
    """A member that must be there."""
    return f"Missing required parameter: '{named(pointer)}'."


def unsupported(name: str) -> str:
    """A parameter that the model does not take."""
    return f"Unsupported parameter: '{name}' is not supported with this model."


def invalid_value(value: str, supported: Iterable[str]) -> str:
    """A word that is not in a list."""
    return f"Invalid value: '{value}'. Supported values are: {listed(supported)}."


def empty_array(pointer: str) -> str:
    """A list without items."""
    return (
        f"Invalid '{named(pointer)}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead."
    )


def long_array(pointer: str, most: int, length: int) -> str:
    """A list with too many items."""
    return (
        f"Invalid '{named(pointer)}': array too long. Expected an array with maximum length {most}, "
        f"but got an array with length {length} instead."
    )


def empty_string(pointer: str) -> str:
    """A text without characters."""
    return (
        f"Invalid '{named(pointer)}': empty string. Expected a string with minimum length 1, "
        "but got an empty string instead."
    )


def long_string(pointer: str, most: int, length: int) -> str:
    """A text with too many characters."""
    return (
        f"Invalid '{named(pointer)}': string too long. Expected a string with maximum length {most}, "
        f"but got a string with length {length} instead."
    )


def unlike_pattern(pointer: str, pattern: str) -> str:
    """A text of the wrong form."""
    return (
        f"Invalid '{named(pointer)}': string does not match pattern. "
        f"Expected a string that matches the pattern '{pattern}'."
    )


def say(wrong: Misshapen) -> str:
    """Say what is wrong with a body's shape."""
    inside = f"{wrong.where}/{escape(wrong.name)}"
    match wrong.fault:
        case "json":
            return UNPARSED
        case "unknown-field":
            return unknown(inside)
        case "required":
            return "you must provide a model parameter" if inside == "/model" else missing(inside)
        case "enum":
            supported = _SUPPORTED.get(_INDEX.sub("", wrong.where))
            value = wrong.name.strip("'")
            return invalid_value(value, supported) if supported else f"Invalid value: '{value}'."
        case "bounds":
            return _out_of_bounds(wrong)
        case _:
            return _wrong_type(wrong)


def _wrong_type(wrong: Misshapen) -> str:
    types = _TYPES.match(wrong.words)
    if types is None:
        return f"Invalid type for '{named(wrong.where)}'."
    expected = [_EXPECTED[word] for word in types["expected"].split(" | ") if word in _EXPECTED]
    wanted = " or ".join([expected[0], *(word.split(" ", 1)[1] for word in expected[1:])])
    several = "one of " if len(expected) > 1 else ""
    found = _FOUND.get(types["got"], types["got"])
    return f"Invalid type for '{named(wrong.where)}': expected {several}{wanted}, but got {found} instead."


def _out_of_bounds(wrong: Misshapen) -> str:
    bound = _BOUND.match(wrong.words)
    if bound is None:
        return f"Invalid '{named(wrong.where)}': {wrong.words}."
    kind = "integer" if bound["type"] == "int" else "decimal"
    side = "above maximum" if bound["relation"] == "<=" else "below minimum"
    limit = bound["limit"].removesuffix(".0")
    expected = f"Expected a value {bound['relation']} {limit}, but got {GOT} instead."
    return f"Invalid '{named(wrong.where)}': {kind} {side} value. {expected}"
