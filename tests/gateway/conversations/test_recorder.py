"""What an answer says of its conversation is put into it, and nothing else is touched."""

from dragoman.gateway.conversations.recorder import Echo


def test_members_of_a_whole_answer_are_replaced_or_added():
    echo = Echo({"id": b'"resp_1"', "store": b"true"}, "response")
    assert echo.whole(b'{"id": "a", "output": [ ]}') == b'{"id": "resp_1", "output": [ ],"store":true}'


def test_only_events_that_hold_the_answer_are_touched():
    echo = Echo({"id": b'"resp_1"'}, "response")
    delta = b'event: d\ndata: {"type":"d","delta":"say \\"response\\": {}"}\n\n'
    created = b'event: c\ndata: {"type":"c","response":{"id":"a","output":[]}}\n\n'
    told = b'event: c\ndata: {"type":"c","response":{"id":"resp_1","output":[]}}\n\n'
    assert echo.events(delta + created + delta + b"data: [DONE]\n\n") == delta + told + delta + b"data: [DONE]\n\n"


def test_an_event_that_is_the_answer_is_touched_itself():
    echo = Echo({"conversation": b'"c"'}, "")
    told = echo.events(b'data: {"candidates":[]}\r\n\r\ndata: {"candidates":[]}\n\n')
    assert told.count(b'"conversation":"c"') == 2
    assert echo.events(b"\n") == b"\n"
