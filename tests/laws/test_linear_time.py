"""The work for a stream grows linearly with its length, whatever it consists of."""

from collections.abc import Callable

import pytest

from dragoman.interpreter.stream import StreamTranslator
from laws.documents import DIALECTS
from laws.streams import STREAMS
from work import assert_linear

SIZE = 50
PIECE = 65_536
CASES = [(s, kind, t) for s in DIALECTS for kind in STREAMS[s] for t in DIALECTS if s != t]


def translate(sse: bytes, source: str, client: str) -> None:
    translator = StreamTranslator(source, client)
    for at in range(0, len(sse), PIECE):
        translator.feed(sse[at : at + PIECE])
    translator.close()
    assert translator.losses is not None


@pytest.mark.slow
@pytest.mark.parametrize(("source", "kind", "client"), CASES)
def test_the_work_for_a_stream_grows_with_its_length(source, kind, client):
    def prepare(size: int) -> Callable[[], None]:
        sse = STREAMS[source][kind](size)
        return lambda: translate(sse, source, client)

    assert_linear(prepare, SIZE)


@pytest.mark.parametrize(
    ("repeat", "size"),
    [
        (lambda size: sum(1 for one in range(size) for other in range(one)), 20),
        (lambda size: [b"word" * one for one in range(size)], SIZE),
    ],
    ids=["loops", "copies"],
)
def test_quadratic_work_is_noticed(repeat, size):
    with pytest.raises(AssertionError, match=r"(lines|allocated) for sizes"):
        assert_linear(lambda size: lambda: repeat(size), size)


@pytest.mark.parametrize(("source", "kind"), [(source, kind) for source in DIALECTS for kind in STREAMS[source]])
def test_these_streams_are_whole(source, kind):
    translator = StreamTranslator(source, next(name for name in DIALECTS if name != source))
    translator.feed(STREAMS[source][kind](8))
    translator.close()
    assert translator.problem is None or translator.problem.kind == "malformed_reply"
    assert translator.begun
