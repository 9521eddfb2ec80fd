"""Texts that are empty or only white space: no target gets one that it rejects, and the others keep them."""

import copy
import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.history import adapt_messages
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from interpreter.workbench import adaptation_for, build_message
from laws.maximal import REQUESTS

BLANKS = ["", " ", "\r\n\t", "\x0b\x0c", "\x1c\x1d\x1e\x1f", "\x85", "\u2028\u2029\u3000"]
TEXTS = {"text", "refusal", "content", "instructions", "reasoning_content", "thinking", "output", "input"}
MODELS = {"chat": "gpt-4.1", "responses": "gpt-4.1", "messages": "claude-opus-5-5", "gemini": "gemini-2.5-flash"}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
PAIRS = [(source, target) for source in REQUESTS for target in MODELS if source != target]


def find_texts(value, path=()):
    """Yield the paths of all texts in a request."""
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from find_texts(member, (*path, key))
    elif isinstance(value, str) and path[-1] in TEXTS:
        yield path


def replace_at(document, paths, text):
    changed = copy.deepcopy(document)
    for path in paths:
        owner = changed
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = text
    return changed


def check(document, source, target):
    call = translate_request(Call(json.dumps(document).encode(), "m"), source, target, model=MODELS[target]).call
    for vertex in {False, target == "gemini"}:
        context = CheckContext(model=MODELS[target], recorded=True, vertex=vertex)
        verdict = APIS[target].accept(call.body, context, TokenSigner())
        if isinstance(verdict, Violation) and "text" in verdict.rule + verdict.message:
            return f"{verdict.rule} at {verdict.where}: {verdict.message}"
    return ""


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
def test_no_target_gets_a_blank_text_that_it_rejects(source, target, blank):
    paths = list(find_texts(REQUESTS[source]))
    assert len(paths) > 2
    found = {path: check(replace_at(REQUESTS[source], [path], blank), source, target) for path in paths}
    found[()] = check(replace_at(REQUESTS[source], paths, blank), source, target)
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
@pytest.mark.parametrize("target", ["gemini", "chat", "responses"])
def test_a_blank_document_is_not_sent_as_a_text_that_the_target_rejects(target, blank):
    block = replace_at(DOCUMENT, [("source", "data")], blank)
    turn = {"role": "user", "content": [{"type": "text", "text": "hi"}, block]}
    body = {"model": "m", "max_tokens": 99, "messages": [turn]}
    assert check(body, "messages", target) == ""


@pytest.mark.parametrize("blank", BLANKS[1:], ids=ascii)
def test_a_blank_text_is_kept_where_it_is_accepted_and_reported_where_it_is_not(blank):
    message = build_message("user", "a", blank, "b")
    kept = adapt_messages((message,), adaptation_for("chat", "gpt-4.1", source="messages"))
    assert [part.text for part in kept[0].parts] == ["a", blank, "b"]
    adaptation = adaptation_for("messages", "claude-opus-5", source="chat")
    assert [part.text for part in adapt_messages((message,), adaptation)[0].parts] == ["a", "b"]
    assert len(adaptation.ledger) == 1
