"""Starts a stream to the client in time and keeps its connection alive.

A stream starts with the first event with content, or after `hold` seconds, even if the upstream has not responded yet.
From then on blank lines keep the connection alive while nothing else is sent, and errors are sent in the stream.
"""

import asyncio
from collections.abc import Awaitable

from dragoman.core.problems import Problem
from dragoman.gateway.context import RequestContext
from dragoman.gateway.response_writer import StreamWriter, start_stream

_BLANK_LINE = b"\n"
"""The only heartbeat that every client ignores."""


class Heartbeat:
    """Starts one stream after `hold` seconds at the latest, and keeps it alive every `interval` seconds."""

    def __init__(self, context: RequestContext, hold: float, interval: float) -> None:
        self._context = context
        self._hold = hold
        self._interval = interval
        self._loop = asyncio.get_running_loop()

    async def run(self, work: Awaitable[object]) -> None:
        """Await `work`, which replies; keep the stream alive until it is done.

        An error before the first content is sent in the stream if that has started, else raised.
        """
        exchange, record = self._context.exchange, self._context.record
        self._timer = self._loop.call_later(self._hold, self._on_timer)
        try:
            await work
        except Problem as problem:
            if not exchange.started or exchange.ended or record.first_token_seconds is not None:
                raise
            await StreamWriter(None, self._context).fail(problem)
        finally:
            self._timer.cancel()

    def _on_timer(self) -> None:
        """Start the stream if it has not started; else send a blank line if nothing was sent since the last one."""
        context = self._context
        if context.exchange.is_disconnected:
            return
        if not context.exchange.started:
            start_stream(context)
        elif not context.has_sent:
            context.exchange.push(_BLANK_LINE)
        context.has_sent = False
        self._timer = self._loop.call_later(self._interval, self._on_timer)
