"""Generated core values, widely: every kind of part, odd names and ids, numbers written oddly, text of any script.

`responses()` and `requests()` are what the laws draw from. A tidy request answers every call in the next turn;
`requests(tidy=False)` also has orphans, duplicates, reused ids and turns in any order, as clients send them.
`DRAGOMAN_EXAMPLES` sets how many examples each law tries.
"""

import base64
import json
from typing import get_args

from hypothesis import strategies as st

from dragoman.core import parts
from dragoman.core.request import (
    EFFORTS,
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.value import Extras

DIALECTS = ("chat", "responses", "messages", "gemini")
ISSUERS = ("google", "anthropic", "openai")

words = st.text(max_size=40)
some_words = st.text(min_size=1, max_size=40)
pointers = st.sampled_from(["/novelty", "/vendor/deep", "/a~1b", "/x_y", "/list"])
legal_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", fullmatch=True)
odd_names = st.one_of(st.from_regex(r"[a-z]+\.[a-z]+:[0-9]", fullmatch=True), st.just("n" * 90), some_words)
names = st.one_of(legal_names, legal_names, legal_names, odd_names)
call_ids = st.one_of(
    st.from_regex(r"(call|toolu|fc)_[A-Za-z0-9]{6,24}", fullmatch=True),
    st.just("functions.get_weather:0"),
    st.just("x" * 70),
)
unnamed = st.just("")
tokens = st.integers(0, 10**6)
base64s = st.binary(min_size=1, max_size=24).map(lambda data: base64.b64encode(data).decode())

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    words,
)
json_values = st.recursive(
    _scalars,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(words, below, max_size=3)),
    max_leaves=6,
)
json_objects = st.dictionaries(words, json_values, max_size=4)


@st.composite
def json_texts(draw, values=json_objects):
    """JSON as models and people write it: spaced, escaped or compact, sometimes with number tokens Python would not write."""
    value = draw(values)
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, None, 2])),
        separators=draw(st.sampled_from([None, (",", ":")])),
    )
    if isinstance(value, dict) and not value and draw(st.booleans()):
        return draw(st.sampled_from(['{"n": 1.50e+2}', '{ "n":1.0 }', '{"n":123456789012345678901234567890}', "{ }"]))
    return text


raw_json = json_texts(json_values).map(str.encode)
raw_objects = json_texts(json_objects).map(str.encode)


def extras(dialect=None):
    """Nothing, mostly, or fields only one dialect understands; never an empty set of them."""
    fields = st.dictionaries(pointers, raw_json, min_size=1, max_size=2)
    return st.one_of(
        st.none(), st.none(), st.builds(Extras, st.just(dialect) if dialect else st.sampled_from(DIALECTS), fields)
    )


signatures = st.builds(parts.Signature, st.sampled_from(ISSUERS), base64s)
maybe_signed = st.one_of(st.none(), signatures)
citations = st.builds(
    parts.Citation,
    dialect=st.sampled_from(DIALECTS),
    raw=raw_objects,
    url=st.sampled_from(["", "https://example.org/a"]),
    title=words,
)


def texts(dialect=None):
    cited = st.lists(citations, max_size=2).map(tuple)
    return st.builds(parts.Text, text=words, citations=cited, signature=maybe_signed, extras=extras(dialect))


def reasonings(dialect=None):
    shown = st.builds(
        parts.Reasoning, texts=st.lists(words, max_size=3).map(tuple), signature=maybe_signed, extras=extras(dialect)
    )
    hidden = st.builds(parts.Reasoning, redacted=st.sampled_from([True]), signature=signatures)
    return st.one_of(shown, hidden)


def calls(dialect=None, ids=call_ids, called=names):
    """Tool calls: JSON, free text, and cut off inside their arguments."""
    whole = st.builds(
        parts.ToolCall, id=ids, name=called, arguments=json_texts(), signature=maybe_signed, extras=extras(dialect)
    )
    free = st.builds(parts.ToolCall, id=ids, name=called, arguments=words, form=st.just("text"))
    cut = st.builds(
        parts.ToolCall,
        id=ids,
        name=called,
        arguments=json_texts(st.dictionaries(some_words, json_values, min_size=1)).map(lambda text: text[:-1]),
        complete=st.sampled_from([False]),
    )
    return st.one_of(whole, whole, whole, free, cut)


sources = st.one_of(
    st.builds(parts.Inline, base64s),
    st.builds(parts.Link, st.just("https://example.org/picture.png")),
    st.builds(parts.Stored, st.sampled_from(ISSUERS), st.just("file-123")),
)
media = st.one_of(
    st.builds(
        parts.Media, kind=st.just("image"), media_type=st.sampled_from(["image/png", "image/jpeg"]), source=sources
    ),
    st.builds(parts.Media, kind=st.just("document"), media_type=st.just("application/pdf"), source=sources, name=words),
    st.builds(
        parts.Media, kind=st.just("document"), media_type=st.just("text/plain"), source=st.builds(parts.Plain, words)
    ),
    st.builds(
        parts.Media, kind=st.just("audio"), media_type=st.just("audio/wav"), source=st.builds(parts.Inline, base64s)
    ),
)
refusals = st.builds(parts.Refusal, text=words)


def opaques(dialect=None):
    of = st.just(dialect) if dialect else st.sampled_from(DIALECTS)
    return st.builds(
        parts.Opaque,
        dialect=of,
        raw=json_objects.map(lambda value: json.dumps({"type": "new_block", **value}).encode()),
    )


def contents(dialect=None):
    """What a tool may answer."""
    data = st.builds(parts.Data, json=raw_json)
    return st.lists(st.one_of(texts(dialect), texts(dialect), data, media), max_size=3).map(tuple)


def results(dialect=None, ids=call_ids, called=unnamed):
    return st.builds(
        parts.ToolResult,
        call_id=ids,
        name=called,
        content=contents(dialect),
        failed=st.booleans(),
        extras=extras(dialect),
    )


def reply_parts(dialect=None):
    """Parts a model can say."""
    return st.one_of(
        texts(dialect),
        texts(dialect),
        reasonings(dialect),
        calls(dialect),
        calls(dialect),
        media,
        refusals,
        opaques(dialect),
    )


usages = st.builds(
    Usage,
    input=st.one_of(st.none(), tokens),
    output=st.one_of(st.none(), tokens),
    cached=st.one_of(st.none(), tokens),
    cache_written=st.one_of(st.none(), tokens),
    reasoning=st.one_of(st.none(), tokens),
)
finishes = st.builds(Finish, st.sampled_from(get_args(FinishReason)), st.sampled_from(["", "stop", "STOP", "novel"]))


def responses(dialect=None):
    """Whole replies."""
    return st.builds(
        Response,
        id=some_words,
        model=some_words,
        parts=st.lists(reply_parts(dialect), max_size=5).map(tuple),
        finish=finishes,
        usage=st.one_of(st.none(), usages),
        created=st.one_of(st.none(), st.integers(0, 2**31)),
        extras=extras(dialect),
    )


schemas = st.one_of(
    st.just(b'{"type":"object","properties":{}}'),
    st.just(
        b'{"type": "object", "properties": {"city": {"type": "string", "enum": ["a", "b"]}}, "required": ["city"]}'
    ),
    st.just(
        b'{"type":"object","properties":{"type":{"type":["integer","null"],"minimum":0}},"additionalProperties":false}'
    ),
)


def tools(dialect=None):
    function = st.builds(
        Tool,
        name=names,
        description=words,
        parameters=st.one_of(st.none(), schemas),
        strict=st.sampled_from([None, True, False]),
        extras=extras(dialect),
    )
    free = st.builds(Tool, name=legal_names, description=words, form=st.just("text"))
    of = st.just(dialect) if dialect else st.sampled_from(DIALECTS)
    native = st.builds(NativeTool, dialect=of, raw=st.just(b'{"type":"web_search"}'))
    return st.one_of(function, function, function, free, native)


fractions = st.one_of(st.none(), st.floats(0, 1))
samplings = st.builds(
    Sampling,
    temperature=fractions,
    top_p=fractions,
    top_k=st.one_of(st.none(), st.integers(1, 100)),
    max_tokens=st.one_of(st.none(), st.integers(1, 10**5)),
    stop=st.lists(some_words, max_size=3).map(tuple),
    seed=st.one_of(st.none(), st.integers(0, 2**31 - 1)),
    presence_penalty=fractions,
    frequency_penalty=fractions,
)
thinkings = st.builds(
    Thinking,
    mode=st.sampled_from([None, "adaptive", "enabled", "disabled"]),
    effort=st.one_of(st.none(), st.sampled_from(EFFORTS)),
    budget=st.one_of(st.none(), st.integers(1024, 32000)),
    visible=st.sampled_from([None, True, False]),
)
outputs = st.one_of(
    st.just(OutputFormat(kind="text")),
    st.just(OutputFormat(kind="json")),
    st.builds(
        OutputFormat,
        kind=st.just("json_schema"),
        schema=schemas,
        name=legal_names,
        strict=st.sampled_from([None, True]),
    ),
)


@st.composite
def turns(draw, dialect=None):
    """Messages of a tidy conversation: roles alternate after the system's word, every call is answered in the next turn."""
    messages = []
    if draw(st.booleans()):
        messages.append(Message(role="system", parts=tuple(draw(st.lists(texts(dialect), min_size=1, max_size=2)))))
    for _ in range(draw(st.integers(0, 2))):
        messages.append(
            Message(role="user", parts=tuple(draw(st.lists(st.one_of(texts(dialect), media), min_size=1, max_size=3))))
        )
        called = draw(st.lists(calls(dialect), max_size=3, unique_by=lambda call: call.id))
        output = draw(st.lists(st.one_of(texts(dialect), reasonings(dialect)), min_size=not called, max_size=2))
        messages.append(Message(role="assistant", parts=(*output, *called), extras=draw(extras(dialect))))
        if called:
            answers = tuple(draw(results(dialect, st.just(call.id), st.just(call.name))) for call in called)
            messages.append(Message(role="user", parts=answers))
            messages.append(Message(role="assistant", parts=(draw(texts(dialect)),)))
    messages.append(Message(role="user", parts=(draw(texts(dialect)),)))
    return tuple(messages)


def untidy_turns(dialect=None):
    """Messages in any order: orphaned and doubled results, reused ids, two turns of one role."""
    few = st.sampled_from(["call_1", "call_2", "functions.f:0"])
    lines = st.one_of(reply_parts(dialect), calls(dialect, few))
    user = st.builds(
        Message,
        role=st.just("user"),
        parts=st.lists(st.one_of(texts(dialect), media, results(dialect, few)), max_size=3).map(tuple),
    )
    assistant = st.builds(Message, role=st.just("assistant"), parts=st.lists(lines, max_size=3).map(tuple))
    system = st.builds(Message, role=st.just("system"), parts=st.lists(texts(dialect), max_size=2).map(tuple))
    return st.lists(st.one_of(user, user, assistant, assistant, system), max_size=6).map(tuple)


def requests(dialect=None, *, tidy=True):
    """Everything a caller can ask for; with `dialect`, extras and opaque blocks are all of that dialect."""
    return st.builds(
        Request,
        model=some_words,
        messages=turns(dialect) if tidy else untidy_turns(dialect),
        tools=st.lists(tools(dialect), max_size=3, unique_by=lambda tool: getattr(tool, "name", tool.where)).map(tuple),
        tool_choice=st.one_of(st.none(), st.builds(ToolChoice, mode=st.sampled_from(["auto", "none", "required"]))),
        sampling=samplings,
        thinking=st.one_of(st.none(), thinkings),
        output=st.one_of(st.none(), outputs),
        verbosity=st.sampled_from([None, "low", "high"]),
        stream=st.booleans(),
        candidates=st.sampled_from([None, 1, 2]),
        user=st.one_of(st.none(), some_words),
        metadata=st.one_of(st.none(), st.dictionaries(legal_names, words, max_size=2)),
        extras=extras(dialect),
    )
