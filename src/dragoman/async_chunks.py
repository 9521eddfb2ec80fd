"""Decode a stream as it arrives in an asyncio program; the packages that decode are free of asyncio."""

from collections.abc import AsyncGenerator, AsyncIterable

from dragoman.interpreter.chunks import Chunk, ChunkReader


async def decode_stream(stream: AsyncIterable[bytes], dialect: str) -> AsyncGenerator[Chunk]:
    """Iterate the chunks of a stream of bytes, such as `response.aiter_bytes()`; raises the `Problem` of a failure."""
    reader = ChunkReader(dialect)
    async for piece in stream:
        for chunk in reader.feed(piece):
            yield chunk
    for chunk in reader.close():
        yield chunk
