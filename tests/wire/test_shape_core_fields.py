"""Members of a wire struct that are fields of the core: read, written and found by what their types say."""

from typing import Annotated

import pytest
from msgspec import Struct

from dragoman.wire.shape import (
    ABSENT,
    CoreFields,
    Shape,
    Wire,
    core_field,
    core_location,
    core_pointers,
    non_null_bytes,
)
from dragoman.wire.unread import RawMember


def whole(value: float, where: str) -> int:
    if value != int(value):
        raise ValueError(where)
    return int(value)


class Config(Wire, rename="camel"):
    top_p: Annotated[float | None, core_field("sampling.top_p")] = None
    max_tokens: Annotated[float | None, core_field("sampling.limit", whole)] = None
    stop_words: Annotated[str | list[str] | None, core_location("sampling.stop")] = None
    answer_count: Annotated[int | None, core_field("count")] = None


class Body(Wire):
    config: Config | None = None
    old_words: Annotated[list[str] | None, core_location("sampling.stop")] = None
    user: Annotated[str | None, core_field("user")] = None
    kept: RawMember = ABSENT


class Sampling(Struct):
    top_p: float | None = None
    limit: int | None = None


class Request(Struct):
    count: int | None = None


SAMPLING = CoreFields(Config, "sampling")


def test_fields_are_read_by_the_names_of_the_core():
    assert SAMPLING.read(Config(top_p=0.5, max_tokens=2.0)) == {"top_p": 0.5, "limit": 2}
    assert SAMPLING.read(Config()) == {}


def test_a_reader_gets_the_pointer_of_what_it_refuses():
    with pytest.raises(ValueError, match=r"^/config/maxTokens$"):
        SAMPLING.read(Config(max_tokens=0.5), "/config")


def test_fields_that_are_set_are_written_by_the_names_of_the_wire():
    assert SAMPLING.write(Sampling(limit=3)) == {"maxTokens": 3}
    assert SAMPLING.write(Sampling(top_p=0.0)) == {"topP": 0.0}


def test_fields_of_the_request_itself_have_no_group():
    fields = CoreFields(Config)
    assert fields.read(Config(answer_count=2)) == {"count": 2}
    assert fields.write(Request(2)) == {"answerCount": 2}
    assert fields.write(Request()) == {}


def test_places_follow_from_the_structs_in_the_order_of_their_members():
    assert core_pointers(Body) == {
        "sampling.top_p": ("/config/topP",),
        "sampling.limit": ("/config/maxTokens",),
        "sampling.stop": ("/config/stopWords", "/old_words"),
        "count": ("/config/answerCount",),
        "user": ("/user",),
    }
    assert core_pointers(Config, "/inner")["count"] == ("/inner/answerCount",)


def test_marked_members_are_read_level_by_level_too():
    body, unread = Shape(Body).read(b'{"config":{"stopWords":["a"],"novel":1},"user":"u"}')
    assert body.config == Config(stop_words=["a"])
    assert unread is not None
    assert unread.rest() == {"/config/novel": b"1"}


@pytest.mark.parametrize(("raw", "value"), [(ABSENT, None), (None, None), (b"null", None), (b"{}", b"{}")])
def test_null_and_what_was_not_sent_are_not_present(raw, value):
    assert non_null_bytes(raw) == value
