"""Recorded replies of the real vendors reach every SDK intact through the running gateway."""

import pytest

from conformance.comparison import same_reading
from conformance.recordings import DIALECTS, replies
from end_to_end.replaying import differences, find_passing_differences, own_reading, run_replay, sample
from oracles import read_stream
from shelf import enough

SAMPLED = 25


@pytest.fixture(scope="module")
def replay():
    with run_replay() as found:
        yield found


def failures(replay, recordings, dialect):
    """Say which recordings do not reach which client."""
    found = []
    for recording in recordings:
        own = own_reading(recording, dialect)
        result = {dialect: list(find_passing_differences(replay, recording, dialect, own))}
        for client in DIALECTS:
            if client != dialect:
                result[client] = list(differences(replay, recording, dialect, client, own))
        found += [f"{recording.id} to {client}: {'; '.join(what)}" for client, what in result.items() if what]
    return "\n".join(found)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_replies_of_distinct_shapes_reach_every_client(replay, dialect):
    recordings = sample(dialect, SAMPLED)
    assert len(recordings) > enough(10)
    assert len({recording.streamed for recording in recordings}) == 2
    assert not (result := failures(replay, recordings, dialect)), result


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_recorded_reply_reaches_every_client(replay, dialect):
    assert len(replies(dialect)) > enough(600)
    assert not (result := failures(replay, replies(dialect), dialect)), result


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_reply_to_a_request_for_a_stream_reaches_every_client_as_a_stream(replay, dialect):
    """Some servers ignore `stream`; the clients of all dialects still get the events that they asked for."""
    recordings = [one for one in sample(dialect, SAMPLED) if not one.streamed]
    assert len(recordings) > enough(4)
    found = []
    for recording in recordings:
        own = own_reading(recording, dialect)
        if own.problem or recording.id.startswith("codeassist/"):
            continue
        asked = recording._replace(streamed=True)
        for client in DIALECTS:
            if client != dialect:
                result = list(differences(replay, asked, dialect, client, own))
            else:
                reply = replay.ask(asked, dialect, client)
                assert reply.headers["content-type"].startswith("text/event-stream")
                result = list(same_reading(own, read_stream(client, reply.content, strict=False), exact=False))
            found += [f"{recording.id} to {client}: {what}" for what in result]
    assert not found, "\n".join(found)
