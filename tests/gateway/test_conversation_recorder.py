"""The fields about the conversation are inserted into a response, and nothing else changes."""

from dragoman.gateway.conversation_recorder import MemberInjector


def test_members_of_a_whole_answer_are_replaced_or_added():
    echo = MemberInjector({"id": b'"resp_1"', "store": b"true"}, "response")
    assert echo.add_to_reply(b'{"id": "a", "output": [ ]}') == b'{"id": "resp_1", "output": [ ],"store":true}'


def test_only_events_that_hold_the_answer_are_touched():
    echo = MemberInjector({"id": b'"resp_1"'}, "response")
    delta = b'event: d\ndata: {"type":"d","delta":"say \\"response\\": {}"}\n\n'
    created = b'event: c\ndata: {"type":"c","response":{"id":"a","output":[]}}\n\n'
    result = b'event: c\ndata: {"type":"c","response":{"id":"resp_1","output":[]}}\n\n'
    assert (
        echo.add_to_events(delta + created + delta + b"data: [DONE]\n\n")
        == delta + result + delta + b"data: [DONE]\n\n"
    )


def test_an_event_that_is_the_answer_is_touched_itself():
    echo = MemberInjector({"conversation": b'"c"'}, "")
    result = echo.add_to_events(b'data: {"candidates":[]}\r\n\r\ndata: {"candidates":[]}\n\n')
    assert result.count(b'"conversation":"c"') == 2
    assert echo.add_to_events(b"\n") == b"\n"
