"""A long reply is recorded with its whole text, and without an object for each delta."""

from dragoman.core.events import PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import Reasoning, Signature, ToolCall
from dragoman.interpreter.signature_recorder import SignatureRecorder

COUNT = 20_000


def test_the_deltas_of_a_long_reply_are_joined_and_none_is_lost():
    recorder = SignatureRecorder()
    recorder.record_event(PartStarted(0, Reasoning()))
    deltas = recorder.find_deltas(0)
    for at in range(COUNT):
        deltas.append(PartDelta(0, f"thought {at},", at // (COUNT // 2)))
        assert recorder.add_bytes(200)
        assert len(deltas) < 200
    thought = Signature("anthropic", "s")
    for event in (
        PartSigned(0, thought),
        PartEnded(0),
        PartStarted(1, ToolCall(id="a", name="f", arguments="{}")),
        PartEnded(1),
    ):
        recorder.record_event(event)
    (section,) = recorder.ended
    (placed,) = section.saved.placed
    halves = (range(COUNT // 2), range(COUNT // 2, COUNT))
    assert placed.texts == tuple("".join(f"thought {at}," for at in half) for half in halves)
