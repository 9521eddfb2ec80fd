"""JSON pointers."""

from dragoman.wire.pointer import escape, from_path, join, split, to_path, unescape


def test_a_token_is_escaped_and_read_back():
    assert escape("a/b~c") == "a~1b~0c"
    assert unescape("a~1b~0c") == "a/b~c"
    assert split("/a~1b/0/c~0") == ["a/b", "0", "c~"]
    assert join(["a/b", 0, "c~"]) == "/a~1b/0/c~0"
    assert join([]) == ""


def test_a_path_of_the_reader_becomes_a_pointer():
    assert from_path("$.messages[0].content[...]") == "/messages/0/content/..."
    assert from_path("$") == ""


def test_a_pointer_becomes_a_path_as_vendors_write_them():
    assert to_path("/messages/0/content/a~1b") == "messages[0].content.a/b"
    assert to_path("") == ""
