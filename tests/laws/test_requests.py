"""Laws of requests over every pair of dialects: away, pure, append."""

import json

import msgspec
import pytest

from dragoman.core.parts import AnyPart, Content, Data, FoundTools, Media, Text, ToolCall, ToolResult, ToolSearch
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.turns import CONTINUE
from dragoman.wire.json import is_object
from laws.documents import DIALECTS, MODELS, requests
from shelf import enough

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]


def _adapt(source: str, target: str, body: bytes) -> tuple[Request, Call]:
    source_dialect, target_dialect = dialect_named(source), dialect_named(target)
    traits = traits_for(target, MODELS[target])
    adaptation = Adaptation(traits, Ledger(source_dialect.pointers, body), source_dialect.issuer)
    request, _ = adapt(source_dialect.parse_request(Call(body, "m")), adaptation)
    return request, target_dialect.render_request(request, traits)


def _get_meaning(request: Request, target: str) -> Request:
    """The request as the target can express it: results in its only form, without defaults that its types require."""
    messages = tuple(
        msgspec.structs.replace(message, parts=tuple(_normalize_part(part, target) for part in message.parts))
        for message in request.messages
    )
    return msgspec.structs.replace(request, spelling=frozenset(), messages=messages)


def _normalize_part(part: AnyPart, target: str) -> AnyPart:
    match part:
        case ToolResult(content=content):
            result = _as_response if target == "gemini" else _as_texts
            return msgspec.structs.replace(
                part, content=tuple(_normalize_part(item, target) for item in result(part, content))
            )
        case ToolSearch():
            return msgspec.structs.replace(part, dialect="", raw=b"")
        case FoundTools():
            return msgspec.structs.replace(part, dialect="", raw=b"", tools=b"")
        case Media(extras=Extras(fields={"/detail": b'"auto"', **rest})) if not rest:
            return msgspec.structs.replace(part, extras=None)
        case _:
            return part


def _as_response(result: ToolResult, content: tuple[Content, ...]) -> tuple[Content, ...]:
    """The one rule: an object as {"output": object}, text as {"output": text}, failure as {"error": …}."""
    if result.spelling.startswith("response"):
        return content
    written = [item for item in content if isinstance(item, Text | Data)]
    word = "error" if result.failed else "output"
    if len(written) == 1 and isinstance(written[0], Data):
        value = json.loads(written[0].json)
    else:
        value = "\n".join(item.text if isinstance(item, Text) else item.json.decode() for item in written)
        if len(written) == 1 and '"$ref"' not in value and is_object(value):
            value = msgspec.Raw(value.encode())
    rest = tuple(item for item in content if not isinstance(item, Text | Data))
    return (Data(json=msgspec.json.encode({word: value})), *rest)


def _as_texts(_result: ToolResult, content: tuple[Content, ...]) -> tuple[Content, ...]:
    return tuple(Text(text=item.json.decode()) if isinstance(item, Data) else item for item in content)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_written_for_a_target_reads_back_as_what_was_adapted(source, target):
    wrong: dict[str, str] = {}
    for name, body in requests(source):
        try:
            adapted, call = _adapt(source, target, json.dumps(body).encode())
        except Problem as problem:
            if problem.kind not in {"unsupported", "invalid_request"}:
                wrong[name] = repr(problem)
            continue
        again = dialect_named(target).parse_request(call)
        if _get_meaning(again, target) != _get_meaning(adapted, target):
            wrong[name] = _difference(_get_meaning(adapted, target), _get_meaning(again, target))
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(
        f"{name}: {what}" for name, what in sorted(wrong.items())[:40]
    )


def _difference(left: object, right: object, where: str = "") -> str:
    """Return the pointer of the first difference in meaning between two values."""
    if left == right:
        return ""
    if isinstance(left, msgspec.Struct) and type(left) is type(right):
        for field in left.__struct_fields__:
            if field not in {"where", "spelling"} and (
                found := _difference(getattr(left, field), getattr(right, field), f"{where}.{field}")
            ):
                return found
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            if found := _difference(one, other, f"{where}[{index}]"):
                return found
    return f"{where}: {left!r:.300} != {right!r:.300}"


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_translation_is_pure(source, target):
    for _, body in requests(source)[::7]:
        document = json.dumps(body).encode()
        before = bytes(bytearray(document))
        try:
            once = translate_request(Call(document, "m"), source, target, model=MODELS[target])
            twice = translate_request(Call(document, "m"), source, target, model=MODELS[target])
        except Problem:
            continue
        assert once.call == twice.call
        assert once.losses == twice.losses
        assert document == before


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_longer_history_starts_with_the_translation_of_its_prefix(source, target):
    """For a prefix in which every call is answered and the next message changes role."""
    source_dialect = dialect_named(source)
    traits = traits_for(target, MODELS[target])
    compared = 0
    for name, body in requests(source):
        document = json.dumps(body).encode()
        request = source_dialect.parse_request(Call(document, "m"))
        try:
            whole, _ = adapt(request, Adaptation(traits, Ledger({}), source_dialect.issuer))
        except Problem:
            continue
        for cut in _complete_prefixes(request.messages):
            short, _ = adapt(_cut(request, cut), Adaptation(traits, Ledger({}), source_dialect.issuer))
            actual = _without_last_word(short.messages)
            assert whole.messages[: len(actual)] == actual, f"{name} cut at {cut}"
            compared += 1
    assert compared > enough(20)


def _cut(request: Request, cut: int) -> Request:
    return msgspec.structs.replace(request, messages=request.messages[:cut])


def _without_last_word(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A target without prefill gets an additional last user message that a longer history does not have."""
    last = messages[-1] if messages else None
    added = last is not None and not last.where and getattr(last.parts[-1], "text", "") == CONTINUE
    return messages[:-1] if added else messages


def _complete_prefixes(messages: tuple[Message, ...]) -> list[int]:
    cuts: list[int] = []
    waiting: set[str] = set()
    repeated: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                repeated |= {part.id} & seen
                seen.add(part.id)
                waiting.add(part.id)
            elif isinstance(part, ToolResult):
                waiting.discard(part.call_id)
        following = messages[index + 1] if index + 1 < len(messages) else None
        if following is not None and not waiting and {message.role, following.role} == {"user", "assistant"}:
            cuts.append(index + 1)
    later = {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}
    return [] if repeated or "" in later or "" in seen else cuts
