"""Values found by their pointers."""

import pytest

from dragoman.wire.lookup import Document, find_leaves, lookup


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("/generationConfig/topP", ("/generation_config/top_p", b"0.50")),
        ("/items/1/x", ("/items/1/x", b"2")),
        ("/a~1b", ("/a~1b", b"null")),
        ("", ("", b'{"generation_config":{"top_p":0.50},"items":[{},{"x":2}],"a/b":null}')),
        ("/items/2", None),
        ("/items/x", None),
        ("/missing", None),
        ("/items/1/x/y", None),
    ],
)
def test_a_value_is_found_in_camel_and_snake_case(where, expected):
    body = b'{"generation_config":{"top_p":0.50},"items":[{},{"x":2}],"a/b":null}'
    assert lookup(body, where) == expected


def test_a_document_can_be_searched_many_times():
    document = Document(b'{"items":[{"x":1},{"x":[2]}],"textOf":"[3]"}')
    assert document.find("/items/1/x/0") == ("/items/1/x/0", b"2")
    assert document.find("/items/0/x") == ("/items/0/x", b"1")
    assert document.find("/items/1/x/1") is None
    assert document.find("/textOf/0") is None
    assert document.find("/text_of") is None
    assert document.find("/items/1") == ("/items/1", b'{"x":[2]}')


def test_leaves_have_escaped_names_and_include_empty_containers():
    body = b'{"a":{"b/c":[1,{"d~":null}]},"e":[],"f":{},"":0}'
    assert list(find_leaves(body, "")) == ["/a/b~1c/0", "/a/b~1c/1/d~0", "/e", "/f", "/"]
    assert list(find_leaves(b"3", "/x")) == ["/x"]


def test_the_pointer_of_a_new_value_has_the_spelling_of_the_objects_above_it():
    document = Document(b'{"function_call":{"name":"f"},"list":[{}]}')
    assert document.spell("/functionCall/id") == "/function_call/id"
    assert document.spell("/functionCall/newOne/id") == "/function_call/newOne/id"
    assert document.spell("/list/0/id") == "/list/0/id"
    assert document.spell("/other/id") == "/other/id"
