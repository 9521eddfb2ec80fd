"""Calls in a model's text: every form of them, in whatever pieces the text comes."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_limit import cpu_limit
from dragoman.interpreter.text_calls.forms import UnreadableText, WrittenCall
from dragoman.interpreter.text_calls.reader import TextCallReader
from strategies import words

ARGUMENTS = '{"query": {"all": [{"a": "}"}, {"b": "\\"{"}]}, "tags": ["x", ["y"]]}'


def read(*pieces):
    """What is read of a text that comes in pieces, texts that follow each other as one."""
    reader = TextCallReader()
    result = [one for piece in pieces for one in reader.feed(piece)] + reader.close()
    joined = []
    for one in result:
        if isinstance(one, str) and joined and isinstance(joined[-1], str):
            joined[-1] += one
        else:
            joined.append(one if isinstance(one, str) else (one.name, one.arguments))
    return joined


CASES = {
    "no call": ("Hello <b>world</b>,\n  TOOLS are `fine`.\n", ["Hello <b>world</b>,\n  TOOLS are `fine`.\n"]),
    "tags": (f'<tool_call>\n{{"name": "a", "arguments": {ARGUMENTS}}}\n</tool_call>', [("a", ARGUMENTS)]),
    "legacy": (f"TOOL_CALL: a\nARGUMENTS: {ARGUMENTS}", [("a", ARGUMENTS)]),
    "words around": (
        'I look.\n\n<tool_call>{"name": "a"}</tool_call>\n\nThen I tell.',
        ["I look.", ("a", "{}"), "Then I tell."],
    ),
    "words around legacy": ("I look.\n\nTOOL_CALL: a\nARGUMENTS: {}\n\nDone.", ["I look.", ("a", "{}"), "Done."]),
    "parallel tags": (
        '<tool_call>{"name": "a"}</tool_call>\n<tool_call>{"name": "b"}</tool_call>',
        [("a", "{}"), ("b", "{}")],
    ),
    "parallel in one tag": (
        '<tool_call>{"name": "a"}\n{"name": "b"}</tool_call><tool_call>{"name": "c"}</tool_call>',
        [("a", "{}"), ("b", "{}"), ("c", "{}")],
    ),
    "parallel as an array": (
        '<tool_calls>[{"name": "a"}, {"name": "b", "arguments": {"x": 1}}]</tool_calls>',
        [("a", "{}"), ("b", '{"x": 1}')],
    ),
    "parallel legacy": (
        'TOOL_CALL: a\nARGUMENTS: {"x": 1}\nTOOL_CALL: b\nTOOL_CALL: c\nARGUMENTS: {"z": [1, 2]}',
        [("a", '{"x": 1}'), ("b", "{}"), ("c", '{"z": [1, 2]}')],
    ),
    "a name behind a blank that is none of ours": ("TOOL_CALL:\u00a0a\nARGUMENTS: {}", [("a", "{}")]),
    "legacy on one line": ('TOOL_CALL: a ARGUMENTS: {"x": 1}', [("a", '{"x": 1}')]),
    "any letter case": (
        'Tool_Call: a\narguments : {"x": 1}\n<TOOL_call>{"name": "b"}</Tool_Call>',
        [("a", '{"x": 1}'), ("b", "{}")],
    ),
    "legacy without arguments": ("TOOL_CALL: a\n", [("a", "{}")]),
    "legacy with an empty line for arguments": ("TOOL_CALL: a\nARGUMENTS:\n", [("a", "{}")]),
    "null arguments": (
        'TOOL_CALL: a\nARGUMENTS: null\n<tool_call>{"name": "b", "arguments": null}</tool_call>',
        [("a", "{}"), ("b", "{}")],
    ),
    "ornaments": ('**TOOL_CALL:** `a`\n**ARGUMENTS:** `{"x": 1}`\nok', [("a", '{"x": 1}'), "ok"]),
    "a fence around tags": ('```json\n<tool_call>{"name": "a"}</tool_call>\n```\nok', [("a", "{}"), "ok"]),
    "a fence in tags": ('<tool_call>\n```json\n{"name": "a"}\n```\n</tool_call>', [("a", "{}")]),
    "a fence for tags": ('```tool_call\n{"name": "a"}\n{"name": "b"}\n```', [("a", "{}"), ("b", "{}")]),
    "a fence around legacy": ("```\nTOOL_CALL: a\nARGUMENTS: {}\nTOOL_CALL: b\n```", [("a", "{}"), ("b", "{}")]),
    "a fence around arguments": ('TOOL_CALL: a\nARGUMENTS:\n```json\n{"x": 1}\n```\nok', [("a", '{"x": 1}'), "ok"]),
    "code that is no call": ('```python\nprint("TOOL_CALL: a")\n```\n', ['```python\nprint("TOOL_CALL: a")\n```\n']),
    "JSON that nobody called a call": (
        '```json\n{"name": "a", "arguments": {}}\n```',
        ['```json\n{"name": "a", "arguments": {}}\n```'],
    ),
    "a tag that is talked of": ("Write <tool_call> and </tool_call>.", ["Write <tool_call> and </tool_call>."]),
    "a word that is talked of": ("TOOL_CALL: is how it begins", ["TOOL_CALL: is how it begins"]),
    "no end tag": ('<tool_call>{"name": "a"}', [("a", "{}")]),
    "OpenAI's form": (
        '<tool_call>{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{\\"x\\": 1}"}}</tool_call>',
        [("a", '{"x": 1}')],
    ),
    "other words for members": ('<tool_call>{"tool": "a", "parameters": {"x": 1}}</tool_call>', [("a", '{"x": 1}')]),
    "a line break in a string": (
        '<tool_call>{"name": "a", "arguments": {"x": "1\n2"}}</tool_call>',
        [("a", '{"x": "1\\n2"}')],
    ),
}
BROKEN = {
    "a comma too many": 'TOOL_CALL: a\nARGUMENTS: {"x": 1,}\nTOOL_CALL: b\nARGUMENTS: {}',
    "nothing but an array": "TOOL_CALL: a\nARGUMENTS: [1, 2]",
    "words for arguments": "TOOL_CALL: a\nARGUMENTS: the usual",
    "cut off": '<tool_call>{"name": "a", "arguments": {"x": "1',
    "cut off in legacy": 'TOOL_CALL: a\nARGUMENTS: {"x": "1',
    "the wrong bracket": '<tool_call>{"name": "a", "arguments": {"x": [1}}</tool_call>',
    "no name": '<tool_call>{"arguments": {"x": 1}}</tool_call>',
    "two names": '<tool_call>{"name": "a", "tool": "b"}</tool_call>',
    "one name twice": '<tool_call>{"name": "a", "name": "b"}</tool_call>',
    "more than a call": '<tool_call>{"name": "a", "arguments": {}, "why": "because"}</tool_call>',
    "arguments that are no object": '<tool_call>{"name": "a", "arguments": 3}</tool_call>',
    "text for arguments": '<tool_call>{"name": "a", "arguments": "x"}</tool_call>',
    "no number": '<tool_call>{"name": "a", "arguments": {"x": NaN}}</tool_call>',
    "no calls": "<tool_call>[]</tool_call>",
    "one of two": '<tool_call>[{"name": "a"}, 3]</tool_call>',
    "very deep": "<tool_call>" + "[" * 5000 + "]" * 5000,
}
TEXTS = {name: text for name, (text, _) in CASES.items()} | BROKEN


@pytest.mark.parametrize("case", CASES)
def test_a_call_is_read(case):
    text, expected = CASES[case]
    assert read(text) == expected


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_stays_text(case):
    text = BROKEN[case]
    reader = TextCallReader()
    assert "".join([*reader.feed(text), *reader.close()]) == text
    assert reader.unread_count == 1


@pytest.mark.parametrize("case", TEXTS)
def test_the_same_is_read_wherever_a_text_is_split(case):
    text = TEXTS[case]
    whole = read(text)
    places = range(len(text) + 1) if len(text) < 400 else range(0, len(text), 997)
    for at in places:
        assert read(text[:at], text[at:]) == whole
    assert read(*text) == whole


WORDS = "<tool_call> </tool_call> <tool_result> </tool_result> <think> </think> TOOL_CALL: ARGUMENTS: ``` null a tool"
JSON = ['{"name": "a"}', '{"name": "b", "arguments": {"x": [1]}}', '{"x": 1}', "{", "}", "[", "]", '"', "\\"]
REST = [
    "```json\n",
    "```tool_call\n",
    "_",
    "<",
    "</",
    "*",
    "`",
    " ",
    "\n",
    "\n\n",
    "\t",
    "word ",
    ":",
    ",",
    "T",
    "é",
    "İ",
]
TOKENS = st.sampled_from([*WORDS.split(), *JSON, *REST]) | words


@given(st.lists(TOKENS, max_size=25), st.data())
def test_any_text_is_read_alike_in_any_pieces_and_none_of_it_is_lost(tokens, data):
    text = "".join(tokens)
    whole = read(text)
    pieces, rest = [], text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces.append(rest[:size])
        rest = rest[size:]
    assert read(*pieces) == whole
    if all(isinstance(one, str) for one in whole):
        assert "".join(whole) == text
    for one in whole:
        if isinstance(one, str):
            assert one in text
        else:
            assert json.loads(one[1]).__class__ is dict


def test_a_call_in_fifty_pieces_is_emitted_only_when_complete():
    text = f'<tool_call>{{"name": "search", "arguments": {ARGUMENTS}}}</tool_call>'
    places = [at * len(text) // 50 for at in range(51)]
    reader = TextCallReader()
    result = [reader.feed(text[begin:end]) for begin, end in pairwise(places)]
    assert len(result) == 50
    assert sum(map(len, result)) == 1
    assert [one for some in result for one in some] == [WrittenCall("search", ARGUMENTS)]
    assert reader.close() == []


def test_ordinary_text_is_emitted_at_once():
    reader = TextCallReader()
    for word in ["The", " weather", " in", " Tokyo", ":", "\n-", " Temperature", " 72", " <b>", "F", "</b>", " **ok**"]:
        result = "".join(map(str, reader.feed(word)))
        assert result.endswith(word.strip())


def test_what_may_become_a_call_is_held_until_it_cannot():
    reader = TextCallReader()
    assert reader.feed("Take this: <tool") == ["Take this:"]
    assert reader.feed("_call> and") == [" <tool_call>", " and"]
    assert reader.feed("\nTOOL_CA") == []
    assert reader.feed("KE") == ["\nTOOL_CAKE"]


@pytest.mark.parametrize(
    "content",
    [
        "<tool_result>\nTOOL_CALL: a\nARGUMENTS: {}\n</tool_result>",
        'I got <tool_result name="x"><tool_call>{"name": "a"}</tool_call></tool_result>',
        '<tool_result>\n<tool_call>{"name": "a"}</tool_call>',
    ],
)
def test_nothing_is_called_out_of_a_result_that_a_model_repeats(content):
    assert read(content) == [content]


@pytest.mark.parametrize("word", ["think", "thinking", "THINK"])
def test_nothing_is_called_out_of_a_thought_that_a_server_leaves_in_the_text(word):
    thought = f"<{word}>\nI could say\nTOOL_CALL: a\nor <tool_call>{{}}</tool_call>\n</{word}>"
    assert read(f"{thought}\n\nTOOL_CALL: b\nARGUMENTS: {{}}") == [thought, ("b", "{}")]
    assert read(f"Well.\n  {thought}") == [f"Well.\n  {thought}"]
    assert read(f"<{word}>\nTOOL_CALL: a\n") == [f"<{word}>\nTOOL_CALL: a\n"]


def test_a_thought_that_is_only_talked_of_changes_nothing():
    assert read("I <think> so.\nTOOL_CALL: a\n") == ["I <think> so.", ("a", "{}")]


def test_after_a_repeated_result_calls_are_detected_again():
    content = "<tool_result>\nTOOL_CALL: a\n</tool_result>"
    assert read(f"{content}\nTOOL_CALL: b\n") == [content, ("b", "{}")]


def test_nothing_is_called_out_of_what_a_broken_call_was_about():
    text = 'TOOL_CALL: write\nARGUMENTS: {"text": "a"b\nTOOL_CALL: erase\nARGUMENTS: {"all": true}"}'
    assert read(text) == [text]


def test_after_the_end_of_a_broken_call_the_next_is_detected():
    broken = '<tool_call>{"name": "a", "arguments": {"x": }}</tool_call>'
    assert read(f'{broken}\n<tool_call>{{"name": "b"}}</tool_call>') == [broken, ("b", "{}")]


def test_a_long_call_in_small_pieces_is_not_read_again_with_each_piece():
    text = '<tool_call>{"name": "a", "arguments": {"text": "' + "x{}" * 1_600_000 + '"}}</tool_call>'
    reader = TextCallReader()
    with cpu_limit(20):
        result = [one for at in range(0, len(text), 6) for one in reader.feed(text[at : at + 6])]
    assert len(result) == 1


def stretches(text, size):
    """What is read of a text, and which of it is of a call that cannot be read."""
    reader, result = TextCallReader(), []
    pieces = [one for at in range(0, len(text), size) for one in reader.feed(text[at : at + size])]
    for piece in [*pieces, *reader.close()]:
        kind = (
            WrittenCall
            if isinstance(piece, WrittenCall)
            else UnreadableText
            if isinstance(piece, UnreadableText)
            else str
        )
        if result and result[-1][0] is kind is not WrittenCall:
            result[-1] = (kind, result[-1][1] + piece)
        else:
            result.append((kind, piece.name if kind is WrittenCall else piece))
    return [(kind.__name__, one) for kind, one in result]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I look.\n\nTOOL_CALL: a\nARGUMENTS: {,}\nSo.", ["I look.", ("\n\nTOOL_CALL: a\nARGUMENTS: {,}\nSo.",)]),
        ("<tool_call>{,}</tool_call> So.", [("<tool_call>{,}</tool_call>",), " So."]),
        ("<tool_calls>[,]</tool_calls>\nSo.", [("<tool_calls>[,]</tool_calls>",), "\nSo."]),
        (
            "Look:\n```json\n<tool_call>{,}</tool_call>\n```\nSo.",
            ["Look:", ("\n```json\n<tool_call>{,}</tool_call>\n```",), "\nSo."],
        ),
        ("<tool_result>\nTOOL_CALL: a\n</tool_result>\n", ["<tool_result>\nTOOL_CALL: a\n</tool_result>\n"]),
        ('TOOL_CALL: a\nARGUMENTS: {"x', [('TOOL_CALL: a\nARGUMENTS: {"x',)]),
        ("So:\nTOOL_CALL: a(x=1)\n", ["So:", ("\nTOOL_CALL: a(x=1)\n",)]),
        ("TOOL_CALL: get weather\nARGUMENTS: {}", [("TOOL_CALL: get weather\nARGUMENTS: {}",)]),
        ("TOOL_CALL: is a word (of two).\nArguments follow.", ["TOOL_CALL: is a word (of two).\nArguments follow."]),
        ("TOOL_CALL: is\nARGUMENTS: {,}", [("TOOL_CALL: is\nARGUMENTS: {,}",)]),
        (
            '<tool_call>{"name": "a", "arguments": {"x": "\\ud800"}}</tool_call>',
            [('<tool_call>{"name": "a", "arguments": {"x": "\\ud800"}}</tool_call>',)],
        ),
        ('TOOL_CALL: a\nARGUMENTS: {"x": "\\udfff"}', [('TOOL_CALL: a\nARGUMENTS: {"x": "\\udfff"}',)]),
    ],
)
def test_the_text_of_a_call_that_cannot_be_read_is_known_as_such(text, expected, size):
    result = [("UnreadableText", *one) if isinstance(one, tuple) else ("str", one) for one in expected]
    assert stretches(text, size) == result
