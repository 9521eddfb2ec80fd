"""A stream of bytes is read as it arrives."""

import asyncio

import openai
import pytest

from dragoman import Problem, read_chunks
from dragoman.async_chunks import decode_stream
from dragoman.simulator import in_thread


def collect(pieces, dialect):
    async def arrive():
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece

    async def read():
        return [chunk async for chunk in decode_stream(arrive(), dialect)]

    return asyncio.run(read())


def test_a_stream_from_a_socket_is_decoded_as_it_arrives():
    async def read(base_url):
        async with openai.AsyncOpenAI(base_url=f"{base_url}/v1", api_key="k") as client:
            created = client.chat.completions.with_streaming_response.create(
                model="gpt-5.2", stream=True, messages=[{"role": "user", "content": "Say hello."}]
            )
            async with created as reply:
                return [chunk async for chunk in decode_stream(reply.iter_bytes(), "chat")]

    with in_thread() as simulator:
        chunks = asyncio.run(read(simulator.base_url))
    assert "".join(chunk.text for chunk in chunks)
    assert chunks[-1].finish.reason == "stop"


def test_calls_without_an_id_get_the_same_one_as_in_a_sync_program():
    stream = [
        b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]},"finishReason":"STOP"}]}',
        b"\n\n",
    ]
    chunks = collect(stream, "gemini")
    assert chunks == list(read_chunks(stream, "gemini"))
    assert chunks[0].call.id


def test_a_stream_that_fails_raises_its_problem():
    with pytest.raises(Problem):
        collect([b'data: {"error":{"message":"busy","code":503,"status":"UNAVAILABLE"}}\n\n'], "gemini")
