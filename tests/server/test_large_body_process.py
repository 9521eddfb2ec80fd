"""The process for large bodies answers one call after the other until there are no more."""

from io import BytesIO

from dragoman.gateway.large_bodies import LENGTH_BYTES, dump, load
from dragoman.server.large_body_process import answer_calls


def frame(message: bytes) -> bytes:
    return len(message).to_bytes(LENGTH_BYTES) + message


def test_calls_are_answered_in_order_and_an_error_ends_nothing():
    calls = [(divmod, (7, 2)), (divmod, (1, 0)), (len, (b"abc",))]
    answers = BytesIO()
    answer_calls(BytesIO(b"".join(frame(dump(call)) for call in calls)), answers)
    answers.seek(0)
    found = []
    while head := answers.read(LENGTH_BYTES):
        found.append(load(answers.read(int.from_bytes(head))))
    assert [result for result, _ in found] == [(3, 1), None, 3]
    assert [type(error) for _, error in found] == [type(None), RuntimeError, type(None)]
