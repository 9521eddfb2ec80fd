"""A good reply on its way to the client, whole or as a stream."""

import asyncio

from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.attempt import Reached, told
from dragoman.gateway.framing import framer
from dragoman.gateway.record import Record
from dragoman.gateway.telling import headers_of
from dragoman.http.exchange import Exchange
from dragoman.http.link import Failure
from dragoman.interpreter.translate import StreamTranslator, translate_response

_JSON = {"content-type": "application/json"}
_BEAT = b"\n"
"""A blank line: the only heartbeat that no client stumbles over."""


async def send_whole(reached: Reached, ask: Ask, exchange: Exchange, record: Record) -> None:
    """Translate a whole reply and send it."""
    try:
        body = await reached.incoming.read()
    except Failure as failure:
        raise told(failure, record.upstream) from None
    source = reached.target.upstream.dialect
    rendered = translate_response(body, source, ask.dialect, reached.context)
    # What is passed on as it came is read all the same: an error, a page or half a reply is no answer.
    response = rendered.response or dialect_named(source).parse_response(body)
    record.losses = (*record.losses, *rendered.losses)
    record.usage, record.finish = response.usage, response.finish.reason
    record.status = 200
    record.note_first()
    await exchange.send(200, headers_of(record, _JSON), rendered.body)
    record.outcome = "answered"


class Stream:
    """A stream on its way to the client.

    It begins for the client with the first real event, or when that is too long in coming; from then on blank lines
    keep the connection alive while nothing else comes.
    """

    def __init__(self, reached: Reached, ask: Ask, exchange: Exchange, record: Record) -> None:
        self._incoming = reached.incoming
        self._exchange = exchange
        self._record = record
        self._translator = StreamTranslator(reached.target.upstream.dialect, ask.dialect, reached.context)
        self._framer = framer(ask.framing)
        self._held = b""
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, hold: float, beat: float) -> None:
        """Send all of it; raise the `Problem` of a stream that fails before it begins."""
        self._timer = self._loop.call_later(hold, self._nudge, beat)
        try:
            await self._send()
        finally:
            self._timer.cancel()
            record, translator = self._record, self._translator
            record.losses = (*record.losses, *translator.losses)
            record.usage, record.problem = translator.usage, translator.problem
            record.finish = translator.finish.reason if translator.finish is not None else ""

    async def _send(self) -> None:
        translator, exchange, feed = self._translator, self._exchange, self._framer.feed
        while not translator.over:
            told_now = feed(await self._next())
            if not told_now:
                continue
            if not exchange.started:
                self._held += told_now
                if translator.problem is not None:
                    raise translator.problem
                if not translator.begun:
                    continue
                self._record.note_first()
                self._begin()
                told_now = b""
            else:
                self._last = self._loop.time()
                if translator.begun:
                    self._record.note_first()
            await exchange.write(told_now)
        if not exchange.started:
            self._begin()
        await exchange.write(self._framer.close())
        self._record.outcome = "failed" if translator.problem is not None else "answered"
        await exchange.end()

    async def _next(self) -> bytes:
        """Return what the next bytes of the upstream are to the client."""
        try:
            piece = await self._incoming.piece()
        except Failure as failure:
            problem = told(failure, self._record.upstream)
            if not self._exchange.started:
                raise problem from None
            return self._translator.fail(problem)
        return self._translator.feed(piece) if piece else self._translator.close()

    def _begin(self) -> None:
        record = self._record
        record.status = 200
        headers = headers_of(record, {"content-type": self._framer.kind, "cache-control": "no-cache"})
        self._exchange.start(200, headers)
        self._exchange.push(self._held)
        self._held = b""
        self._last = self._loop.time()

    def _nudge(self, beat: float) -> None:
        """Begin if nothing has yet, else send a sign of life if there was none for long."""
        if not self._exchange.started:
            self._begin()
        elif self._loop.time() - self._last >= beat:
            self._exchange.push(_BEAT)
            self._last = self._loop.time()
        self._timer = self._loop.call_later(beat, self._nudge, beat)
