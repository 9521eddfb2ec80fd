"""Change a document the way the world breaks documents: odd values, moved and missing members, torn bytes.

Changes to JSON are made on values, so that most results are still JSON and reach the code behind the parser; what plain values
cannot say (a duplicate key, a lone surrogate, `1e999`, a thousand brackets) is put in verbatim.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw
from msgspec.json import encode

from fuzz.seeds import Frame, Seeds

DESCEND = 0.88
Change = Callable[[Any, random.Random, Any], Any]


def _nest(opening: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + b"1" + closing * depth


_INNER = (
    '{"a":"\\ud800"}',
    '{"a":"\\udc00\\ud800"}',
    '{"a":1e999}',
    '{"a":NaN}',
    '{"a":1,"a":2}',
    '{"a":' + "9" * 5000 + "}",
    '{"a":{"$ref":"#"}}',
    '{"a":',
    "[1]",
    "null",
    '"text"',
    " ",
    "{}{}",
    "{'a':1}",
    _nest(b'{"a":', b"}", 900).decode(),
    _nest(b"[", b"]", 100_000).decode(),
)
"""JSON within a string: the outer document is whole whatever these are."""
ODD: tuple[bytes, ...] = (
    *(b"null", b"true", b"false", b"0", b"-1", b"-0", b"1.0", b"1.5", b'""', b'" "', b"[]", b"{}", b"[null]", b"[[]]"),
    *(b'{"a":null}', b'{"":{}}', b'{"type":"text"}', b'{"type":null}', b'[{"type":"text","text":null}]', b'"0"'),
    *(b"1e999", b"-1e999", b"1e-999", b"1e308", b"NaN", b"Infinity", b"-Infinity", b"nan"),
    *(
        b"9007199254740993",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551616",
        b"9" * 400,
        b"9" * 5000,
    ),
    *(
        b'"\\ud800"',
        b'"\\udc00x"',
        b'"\\ud83d\\ude00"',
        b'"\\u0000"',
        b'"\xff\xfe"',
        b'"\xed\xa0\x80"',
        b'"a\nb"',
        b'"\\n\\r"',
    ),
    *(b'"\xe2\x80\xa8"', b'"' + b"x" * 70_000 + b'"', b'"' + "é".encode() * 300 + b'"'),
    *(_nest(b"[", b"]", depth) for depth in (60, 400, 990, 5000)),
    *(_nest(b'{"a":', b"}", depth) for depth in (60, 400, 990, 5000)),
    *(_nest(b'{"type":"object","properties":{"a":', b"}}", depth) for depth in (30, 200, 480)),
    *(
        b'{"$ref":"#"}',
        b'{"$ref":"#/$defs/none"}',
        b'{"$ref":"#/properties/city"}',
        b'{"$ref":7}',
        b'{"$ref":"https://e.com/x"}',
    ),
    *(b'"data:"', b'"data:,"', b'"data:image/png;base64,"', b'"data:;base64,AA"', b'"https://"', b'"%%%"', b'"call_1"'),
    *(
        b'{"error":{}}',
        b'{"error":null}',
        b'{"error":"x"}',
        b'"[DONE]"',
        b'"dragoman:unknown"',
        b'{"type":"dragoman:unknown","raw":1}',
    ),
    *(encode(text) for text in _INNER),
)
ODD_KEYS = (
    "",
    "type",
    "raw",
    "error",
    "$ref",
    "~0/1",
    "a\nb",
    "x" * 300,
    "é",
    "0",
    "__proto__",
    "properties",
    "tool_calls",
)
ODD_BYTES = (
    *(
        b"\x00",
        b"\xff",
        b"\xf0\x9f\x98",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\r\n\r\n",
        b"\n\n",
        b"\\",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(
        b",",
        b":",
        b"data:",
        b"data: ",
        b"event: error\n",
        b": comment\n",
        b"data: [DONE]\n\n",
        b"id: 1\n",
        b"retry: x\n",
        b"1e999",
        b"null",
    ),
)


def change_one(value: Any, chance: random.Random, donor: Any) -> Any:
    """Change one thing somewhere in `value`; `donor` is another document to take things from."""
    return _somewhere(value, chance, donor, chance.choice(CHANGES))


def _somewhere(value: Any, chance: random.Random, donor: Any, change: Change) -> Any:
    if isinstance(value, dict) and value and chance.random() < DESCEND:
        key = chance.choice(list(value))
        return {**value, key: _somewhere(value[key], chance, donor, change)}
    if isinstance(value, list) and value and chance.random() < DESCEND:
        at = chance.randrange(len(value))
        return [*value[:at], _somewhere(value[at], chance, donor, change), *value[at + 1 :]]
    return change(value, chance, donor)


def _take(chance: random.Random, donor: Any) -> Any:
    """Some part of the donor."""
    while isinstance(donor, dict | list) and donor and chance.random() < DESCEND:
        donor = chance.choice(list(donor.values()) if isinstance(donor, dict) else donor)
    return donor


def _take_member(chance: random.Random, donor: Any) -> tuple[str, Any]:
    """Some member of an object in the donor, with its name."""
    found = ("type", "text")
    while isinstance(donor, dict | list) and donor and chance.random() < DESCEND:
        if isinstance(donor, dict):
            key = chance.choice(list(donor))
            found = (key, donor[key])
            donor = donor[key]
        else:
            donor = chance.choice(donor)
    return found


def _odd(value: Any, chance: random.Random, donor: Any) -> Any:
    return Raw(chance.choice(ODD))


def _other(value: Any, chance: random.Random, donor: Any) -> Any:
    return _take(chance, donor)


def _less(value: Any, chance: random.Random, donor: Any) -> Any:
    if isinstance(value, dict) and value:
        gone = chance.choice(list(value))
        return {key: member for key, member in value.items() if key != gone}
    if isinstance(value, list) and value:
        at = chance.randrange(len(value))
        return value[:at] + value[at + 1 :]
    if isinstance(value, str):
        return value[: chance.randrange(len(value) + 1)]
    return None


def _more(value: Any, chance: random.Random, donor: Any) -> Any:
    if isinstance(value, dict):
        key, member = _take_member(chance, donor)
        if chance.random() < 0.3:
            key = chance.choice(ODD_KEYS)
        return {**value, key: Raw(chance.choice(ODD)) if chance.random() < 0.3 else member}
    if isinstance(value, list):
        at = chance.randrange(len(value) + 1)
        return [
            *value[:at],
            chance.choice(value) if value and chance.random() < 0.5 else _take(chance, donor),
            *value[at:],
        ]
    if isinstance(value, str):
        return value + chance.choice(("\u0000", "x", "😀", '"', "\n", " ", value))
    return [value]


def _twice(value: Any, chance: random.Random, donor: Any) -> Any:
    """Give an object the same key twice, which no dict can."""
    if not isinstance(value, dict) or not value:
        return [value, value]
    key = chance.choice(list(value))
    again = chance.choice(ODD) if chance.random() < 0.5 else encode(_take(chance, donor))
    return Raw(encode(value)[:-1] + b"," + encode(key) + b":" + again + b"}")


def _rename(value: Any, chance: random.Random, donor: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return {"type": value}
    old = chance.choice(list(value))
    new = chance.choice(ODD_KEYS) if chance.random() < 0.3 else _take_member(chance, donor)[0]
    return {new if key == old else key: member for key, member in value.items()}


def _shuffle(value: Any, chance: random.Random, donor: Any) -> Any:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return chance.sample(value, len(value))
    return {"value": value}


CHANGES: tuple[Change, ...] = (
    _odd,
    _odd,
    _odd,
    _other,
    _other,
    _less,
    _less,
    _more,
    _more,
    _twice,
    _rename,
    _shuffle,
)


def document(seeds: Seeds, chance: random.Random) -> bytes:
    """A mutated document."""
    value = seeds.choose(chance)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        value = change_one(value, chance, seeds.choose(chance))
    return torn(encode(value), chance, lambda: encode(seeds.choose(chance)))


def stream(seeds: Seeds, chance: random.Random) -> bytes:
    """A mutated stream: SSE in any spelling or, now and then, one JSON array or bare values."""
    frames: list[Frame] = list(seeds.choose(chance))
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        frames = _rearrange(frames, chance, seeds.choose(chance))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(frames))
        donor = chance.choice(seeds.choose(chance)).data
        frames[at] = Frame(frames[at].event, change_one(frames[at].data, chance, donor))
    return torn(_write(frames, chance), chance, lambda: _write(seeds.choose(chance), chance))


def _rearrange(frames: list[Frame], chance: random.Random, donors: Sequence[Frame]) -> list[Frame]:
    at = chance.randrange(len(frames))
    match chance.randrange(8):
        case 0 if len(frames) > 1:
            return frames[:at] + frames[at + 1 :]
        case 1:
            return [*frames[:at], frames[at], *frames[at:]]
        case 2:
            to = chance.randrange(len(frames))
            frames = list(frames)
            frames[at], frames[to] = frames[to], frames[at]
            return frames
        case 3:
            return [*frames[:at], chance.choice(donors), *frames[at:]]
        case 4:
            return frames[: at + 1]
        case 5:
            return [*frames[: at + 1], *donors[chance.randrange(len(donors)) :]]
        case 6:
            return chance.sample(frames, len(frames))
        case _:
            event = chance.choice((chance.choice(donors).event, "", "error", "ping", "done", "é"))
            return [*frames[:at], Frame(event, frames[at].data, frames[at].verbatim), *frames[at + 1 :]]


def _write(frames: Sequence[Frame], chance: random.Random) -> bytes:
    datas = [frame.verbatim.encode() if frame.verbatim else encode(frame.data) for frame in frames]
    form = chance.random()
    if form < 0.06:
        return b"[" + chance.choice((b",", b",\r\n", b"\n")).join(datas) + b"]"
    if form < 0.1:
        return chance.choice((b"", b"\n", b" ")).join(datas)
    end = chance.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r"))
    prefix = chance.choice((b"data: ", b"data: ", b"data:"))
    written = [b"event: " + frame.event.encode() + end if frame.event else b"" for frame in frames]
    blocks = [name + prefix + data + end + end for name, data in zip(written, datas, strict=True)]
    return (b"\xef\xbb\xbf" if form > 0.98 else b"") + b"".join(blocks)


def torn(data: bytes, chance: random.Random, other: Callable[[], bytes]) -> bytes:
    """Damage bytes, two times in five."""
    while chance.random() < 0.4 and data:
        at = chance.randrange(len(data))
        span = min(chance.choice((1, 1, 2, 8, 64, 512)), len(data) - at)
        match chance.randrange(8):
            case 0:
                data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + span :]
            case 2:
                data = data[:at] + chance.choice(ODD_BYTES) + data[at:]
            case 3:
                data = data[:at] + data[at : at + span] * chance.choice((2, 3, 40)) + data[at + span :]
            case 4:
                data = data[:at]
            case 5:
                again = other()
                data = data[:at] + again[chance.randrange(len(again) + 1) :]
            case 6:
                data = data[:at] + chance.randbytes(span) + data[at + span :]
            case _:
                data = data.replace(data[at : at + span], chance.choice(ODD_BYTES), chance.randrange(1, 4))
    return data
