"""The law of prompt caches: turn n+1 starts with what turn n sent, so the vendor finds it in its cache.

Compared is what the vendor compares: tools, then instructions, then blocks, without cache marks. Text alone in a
message is the same as a list of one text block.
"""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import strategies
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Tool
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from laws.documents import DIALECTS, MODELS, requests
from shelf import enough

CLAUDE = MODELS["messages"]
MARKLESS = [dialect for dialect in DIALECTS if dialect != "messages"]
MARK = {"type": "ephemeral"}


def _caches(*, small: bool) -> Caches:
    return Caches(ToolsCache(), PrefixCache(min_bytes=64 if small else 1 << 40))


def _to_claude(body: bytes, source: str, caches: Caches, *, marks: bool = True) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "CACHES", caches)
        return translate_request(Call(body, "m"), source, "messages", model=CLAUDE, cache_marks=marks).call.body


def _without_mark(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "cache_control"}


def _blocks(content: Any) -> list[dict[str, Any]]:
    """The blocks of a content as the vendor sees them."""
    found = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [
        _without_mark(block)
        | ({"content": _blocks(block["content"])} if isinstance(block.get("content"), list) else {})
        for block in found
    ]


def _prefix_of(body: bytes) -> tuple[list[str], list[str], list[str]]:
    """Tools, instructions and turns in the vendor's order, each item as its text: the order of members counts."""
    request = json.loads(body)
    turns = [(turn["role"], block) for turn in request["messages"] for block in _blocks(turn["content"])]
    tools = [_without_mark(tool) for tool in request.get("tools", [])]
    return _texts(tools), _texts(_blocks(request.get("system"))), _texts(turns)


def _texts(items: list[Any]) -> list[str]:
    return [json.dumps(item) for item in items]


def _assert_starts_with(longer: bytes, shorter: bytes) -> None:
    tools, system, turns = _prefix_of(longer)
    before_tools, before_system, before_turns = _prefix_of(shorter)
    assert tools == before_tools
    assert system == before_system
    assert turns[: len(before_turns)] == before_turns


def _marks(body: bytes) -> list[str]:
    """The pointers of all marks, in the vendor's order."""
    request = json.loads(body)
    places = [(f"/tools/{at}", tool) for at, tool in enumerate(request.get("tools", []))]
    system = request.get("system")
    places += [(f"/system/{at}", block) for at, block in enumerate(system if isinstance(system, list) else [])]
    for number, turn in enumerate(request["messages"]):
        if isinstance(turn["content"], list):
            places += [(f"/messages/{number}/{at}", block) for at, block in enumerate(turn["content"])]
    return [where for where, item in places if item.get("cache_control") == MARK]


def _cuts(messages: tuple[Message, ...]) -> list[int]:
    """Where a request may have ended: before an answer, and at the end."""
    roles = [message.role for message in messages]
    answered = [at for at in range(1, len(roles)) if (roles[at - 1], roles[at]) == ("user", "assistant")]
    return [*answered, *([len(roles)] if roles and roles[-1] == "user" else [])]


def _turns_of(request: Request, source: str) -> list[bytes]:
    """The requests of a conversation with tools, one after the other, in the client's dialect."""
    dialect, traits = dialect_named(source), traits_for(source, "")
    request = structs.replace(request, tools=(*request.tools, Tool(name="look_up", parameters=b'{"type":"object"}')))
    adapted, _ = adapt(structs.replace(request, candidates=None), Adaptation(traits, Ledger({}), dialect.issuer))
    return [
        dialect.render_request(structs.replace(adapted, messages=adapted.messages[:cut]), traits).body
        for cut in _cuts(adapted.messages)
    ]


@settings(deadline=None)
@given(data=st.data(), source=st.sampled_from(DIALECTS))
def test_the_next_turn_starts_with_what_the_last_turn_sent(data, source):
    request = data.draw(strategies.requests(source))
    caches, none = _caches(small=True), _caches(small=False)
    shorter = b""
    for body in _turns_of(request, source):
        try:
            longer = _to_claude(body, source, caches)
        except Problem:
            return
        assert longer == _to_claude(body, source, none), "marks do not depend on the caches of the translation"
        if shorter:
            _assert_starts_with(longer, shorter)
        assert len(_marks(longer)) <= 4
        if source != "messages":
            plain = _to_claude(body, source, none, marks=False)
            assert _prefix_of(longer) == _prefix_of(plain), "a mark changes nothing else"
        shorter = longer


@settings(deadline=None)
@given(data=st.data(), source=st.sampled_from(MARKLESS))
def test_a_request_finds_a_mark_where_the_last_one_ended(data, source):
    bodies = _turns_of(data.draw(strategies.requests(source)), source)
    try:
        sent = [_to_claude(body, source, _caches(small=True)) for body in bodies]
    except Problem:
        return
    for shorter, longer in itertools.pairwise(sent):
        ends = [where for where in _marks(shorter) if where.startswith("/messages/")]
        # The first question, without tools, has no mark.
        assert set(ends[-1:]) <= set(_marks(longer))
        assert len([where for where in _marks(longer) if where.startswith("/messages/")]) == 2


@pytest.mark.parametrize("source", MARKLESS)
def test_recorded_requests_with_marks_are_accepted_and_have_them_at_the_ends(source):
    caches, marked = _caches(small=True), 0
    for name, body in requests(source):
        document = json.dumps(body).encode()
        try:
            plain, sent = (_to_claude(document, source, caches, marks=marks) for marks in (False, True))
        except Problem:
            continue
        assert _prefix_of(plain) == _prefix_of(sent), name
        places = _marks(sent)
        if b"cache_control" in plain:
            assert sent == plain, name
            continue
        request = json.loads(sent)
        # A deferred tool takes no mark.
        if request.get("tools") and not request["tools"][-1].get("defer_loading"):
            assert f"/tools/{len(request['tools']) - 1}" in places, name
        if request.get("system"):
            assert f"/system/{len(request['system']) - 1}" in places, name
        verdicts = [APIS["messages"].accept(one, CheckContext(model=CLAUDE), TokenSigner()) for one in (plain, sent)]
        assert isinstance(verdicts[0], Violation) == isinstance(verdicts[1], Violation), (name, verdicts)
        marked += bool(places)
    assert marked > enough(20)


NAMES = ["zebra", "apple", "Mango", "b2", "b10"]


def _tools_of(dialect: str, names: list[str]) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
    match dialect:
        case "chat":
            return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
        case "responses":
            return [{"type": "function", "name": name, "parameters": schema, "strict": False} for name in names]
        case "messages":
            return [{"name": name, "input_schema": schema} for name in names]
        case _:
            return [{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema} for name in names]}]


def _question(dialect: str) -> dict[str, Any]:
    turn = {"role": "user", "content": "hi"}
    match dialect:
        case "responses":
            return {"input": [turn]}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        case _:
            return {"messages": [turn]}


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_tools_keep_their_order_and_the_order_of_their_parameters(source, target):
    for names in (NAMES, NAMES[::-1], sorted(NAMES)):
        for _ in range(2):  # the second time from the tools cache
            body = {"model": "m", **_question(source), "tools": _tools_of(source, names)}
            sent = translate_request(Call(json.dumps(body).encode()), source, target, model=MODELS[target]).call.body
            at = [sent.index(json.dumps(name).encode()) for name in names]
            assert at == sorted(at)
            assert sent.count(b'"z"') == len(names)
            assert sent.index(b'"z"') < sent.index(b'"a"')
