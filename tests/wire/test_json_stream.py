"""The reader of JSON values that come one after the other: array, lines, or simply concatenated."""

import json

import pytest

from dragoman.wire.json import Malformed
from dragoman.wire.json_stream import JsonStreamReader

VALUES = [
    {"text": 'quote " brace } bracket ] comma , backslash \\ end'},
    {"nested": {"list": [1, [2, {"x": None}]], "empty": {}}},
    {"text": 'š€ \\" \\\\'},
    {},
]
TEXTS = [json.dumps(value, ensure_ascii=False) for value in VALUES]
FORMS = {
    "array": "[" + ",".join(TEXTS) + "]",
    "pretty array": "  [\n" + "\n,\r\n".join(json.dumps(v, indent=2, ensure_ascii=False) for v in VALUES) + "\n]\n",
    "lines": "\n".join(TEXTS) + "\n",
    "windows lines": "\r\n".join(TEXTS),
    "concatenated": "".join(TEXTS),
}


def read(chunks) -> list[bytes]:
    reader = JsonStreamReader()
    values = [value for chunk in chunks for value in reader.feed(chunk)]
    return values + reader.close()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form):
    assert [json.loads(value) for value in read([FORMS[form].encode()])] == VALUES


@pytest.mark.parametrize("form", FORMS)
def test_a_cut_anywhere_changes_nothing(form):
    stream = FORMS[form].encode()
    whole = read([stream])
    for cut in range(len(stream) + 1):
        assert read([stream[:cut], stream[cut:]]) == whole


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_small_chunks_change_nothing(form, size):
    stream = FORMS[form].encode()
    assert read([stream[at : at + size] for at in range(0, len(stream), size)]) == read([stream])


@pytest.mark.parametrize("form", ["lines", "concatenated"])
def test_a_value_is_returned_with_the_byte_that_ends_it(form):
    stream = FORMS[form].encode()
    first = len(TEXTS[0].encode())
    reader = JsonStreamReader()
    assert reader.feed(stream[: first - 1]) == []
    assert reader.feed(stream[first - 1 : first]) == [TEXTS[0].encode()]


def test_items_of_an_array_may_be_any_values():
    assert read([b'[1, "a,b" , null,[2,3] ]']) == [b"1", b'"a,b"', b"null", b"[2,3]"]


def test_the_bytes_of_a_value_are_kept():
    assert read([b'[ {"n": 1.50,  "m":1e3} ]']) == [b'{"n": 1.50,  "m":1e3}']


@pytest.mark.parametrize("stream", [b"", b"  \n", b"[]", b"[ ]\n"])
def test_a_stream_without_values_is_empty(stream):
    assert read([stream]) == []


@pytest.mark.parametrize(
    "stream", [b'{"a":', b'{"a":"', b'{"a":"\\', b"[", b'[{"a":1}', b'[{"a":1},', b"[{]", b'{"a":1}\n{"b"', b"nul"]
)
def test_an_end_inside_a_value_is_malformed(stream):
    with pytest.raises(Malformed):
        read([stream])


@pytest.mark.parametrize("stream", [b"[1]2", b"[1] [2]", b"[1]]", b"[1],", b'[1]"a"', b"{},{}", b"{}}", b"{}]"])
def test_what_does_not_belong_between_values_is_malformed(stream):
    with pytest.raises(Malformed):
        read([stream])
    with pytest.raises(Malformed):
        read([stream[at : at + 1] for at in range(len(stream))])


def test_a_value_larger_than_the_limit_is_malformed():
    reader = JsonStreamReader(max_value_bytes=100)
    reader.feed(b'{"a":"' + b"x" * 60)
    with pytest.raises(Malformed, match="larger than 100 bytes"):
        reader.feed(b"x" * 60)


def test_many_values_within_the_limit_pass_it_together():
    reader = JsonStreamReader(max_value_bytes=100)
    value = b'{"a":"' + b"x" * 80 + b'"}'
    assert [result for chunk in [value[:40], value[40:]] * 50 for result in reader.feed(chunk)] == [value] * 50


def test_each_byte_is_kept_once():
    """Fed byte by byte, an open value must not be copied or searched again with each byte."""
    reader = JsonStreamReader()
    reader.feed(b'{"a":"')
    for _ in range(5000):
        reader.feed(b"x")
    assert sum(map(len, reader._pieces)) == 5006
