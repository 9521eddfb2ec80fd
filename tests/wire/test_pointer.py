"""JSON pointers."""

from dragoman.wire.pointer import Numbered, escape, from_path, split, to_path, unescape


def test_a_token_is_escaped_and_read_back():
    assert escape("a/b~c") == "a~1b~0c"
    assert unescape("a~1b~0c") == "a/b~c"
    assert split("/a~1b/0/c~0") == ["a/b", "0", "c~"]


def test_a_path_of_the_reader_becomes_a_pointer():
    assert from_path("$.messages[0].content[...]") == "/messages/0/content/..."
    assert from_path("$") == ""


def test_a_pointer_becomes_a_path_as_vendors_write_them():
    assert to_path("/messages/0/content/a~1b") == "messages[0].content.a/b"
    assert to_path("") == ""


def test_numbered_pointers_begin_at_any_number():
    numbered = Numbered("/a/", "/b")
    assert numbered.some(2, 2) == ["/a/2/b", "/a/3/b"]
    assert numbered.some(0, 3) == ["/a/0/b", "/a/1/b", "/a/2/b"]
    assert numbered.some(4095, 2) == ["/a/4095/b", "/a/4096/b"]
    assert numbered.some(5, 0) == []


def test_numbered_pointers_are_made_once_as_long_as_they_are_few():
    numbered = Numbered("/a/")
    assert numbered.some(7, 1)[0] is numbered.some(0, 8)[7]
    assert numbered.some(5000, 1)[0] is not numbered.some(5000, 1)[0]
