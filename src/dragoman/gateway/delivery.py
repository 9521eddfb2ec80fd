"""A good reply on its way to the client, whole or as a stream."""

from dragoman.core.problems import NOTHING_SAID, Problem
from dragoman.core.response import Finish, Response
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.attempt import Reached, told
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.telling import headers_of, signed_event
from dragoman.http.exchange import Exchange
from dragoman.http.link import Failure
from dragoman.http.message import JSON
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signing import CallWatch, calls_in
from dragoman.interpreter.stream import StreamTranslator


async def send_whole(
    reached: Reached, ask: Ask, exchange: Exchange, record: Record, keeper: Keeper | None = None
) -> None:
    """Translate a whole reply and send it."""
    try:
        body = await reached.incoming.read()
    except Failure as failure:
        raise told(failure, record.upstream) from None
    source = reached.target.upstream.dialect
    rendered = translate_response(body, source, ask.dialect, reached.context)
    response = rendered.response or _read(body, source)
    record.reply_losses = rendered.losses
    record.usage, record.finish = response.usage, response.finish.reason
    if reached.vault is not None and (calls := calls_in(response)):
        await reached.vault.keep(ask.owner, calls)
    sent = rendered.body if keeper is None else await keeper.whole(rendered.body, response)
    record.status = 200
    record.note_first()
    await exchange.send(200, headers_of(record, JSON), sent)
    record.outcome = "answered"


def _read(body: bytes, dialect: str) -> Response:
    """Read what is passed on as it came: an error, a page or half a reply is no answer."""
    try:
        return dialect_named(dialect).parse_response(body)
    except Problem as problem:
        if problem.code != NOTHING_SAID:
            raise
        return Response(id="", model="", parts=(), finish=Finish("other", ""))


class Stream:
    """A stream on its way to the client, which begins with its first real event, or when its pulse begins it."""

    def __init__(  # noqa: PLR0913  what a stream needs is what a request has
        self,
        reached: Reached,
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None = None,
        *,
        pulse: Pulse,
    ) -> None:
        self._incoming = reached.incoming
        self._exchange = exchange
        self._record = record
        self._keeper = keeper
        if keeper is not None:
            keeper.begin()
        self._request = reached.translation.request
        self._owner = ask.owner
        self._vault = reached.vault
        self._watch = CallWatch()
        watch = self._watch if reached.vault is not None else None
        self._translator = StreamTranslator(reached.target.upstream.dialect, ask.dialect, reached.context, watch)
        self._pulse = pulse
        self._unsent = b""
        """What was said last, if it cannot be sent without a second look."""
        if not exchange.started:
            pulse.renew()

    async def send(self) -> None:
        """Send all of it; raise the `Problem` of a stream that fails before it begins."""
        try:
            await self._send()
        finally:
            record, translator = self._record, self._translator
            record.reply_losses = translator.losses
            record.usage, record.problem = translator.usage, translator.problem
            record.finish = translator.finish.reason if translator.finish is not None else ""

    async def _send(self) -> None:
        translator, exchange, pulse = self._translator, self._exchange, self._pulse
        feed = pulse.framer.feed
        told_now = b""
        while not translator.over:
            told_now = feed(self._signed(await self._next()))
            if not told_now and not exchange.is_behind:
                continue
            if not exchange.started:
                pulse.held, told_now = pulse.held + told_now, b""
                if translator.problem is not None:
                    raise translator.problem
                if not translator.begun:
                    continue
                self._record.note_first()
                pulse.begin()
            else:
                pulse.spoke = True
                if translator.begun:
                    self._record.note_first()
            if not translator.over or self._keeper is not None:
                await exchange.write(told_now)
                told_now = b""
        last = told_now + feed(self._signed(await self._kept()))
        if not exchange.started:
            pulse.begin()
        if not exchange.is_gone:
            self._note_end()
        await exchange.end(last + pulse.framer.close())

    def _signed(self, events: bytes) -> bytes:
        """Name the request in the error that ends a stream."""
        return events if self._translator.problem is None else signed_event(events, self._record)

    def _note_end(self) -> None:
        self._record.outcome = "failed" if self._translator.problem is not None else "answered"

    async def _next(self) -> bytes:
        """Return what the next bytes of the upstream are to the client."""
        try:
            if self._keeper is None and self._record.first is not None:
                is_whole = await self._incoming.deliver_to(self._on_data)
                told_now, self._unsent = self._unsent, b""
                if is_whole and not self._translator.over:
                    told_now += self._translator.close()
            else:
                piece = await self._incoming.piece()
                told_now = self._translator.feed(piece) if piece else self._translator.close()
        except Failure as failure:
            problem = told(failure, self._record.upstream)
            if not self._exchange.started:
                raise problem from None
            return self._translator.fail(problem)
        if self._vault is not None and (calls := self._watch.take()):
            await self._vault.keep(self._owner, calls)
        return told_now if self._keeper is None else self._keeper.passing(told_now)

    def _on_data(self, data: bytes) -> bool:
        """Send the client at once what has come; return whether more may come this way."""
        translator, exchange, pulse = self._translator, self._exchange, self._pulse
        rendered = translator.feed(data)
        if translator.over or self._watch.has_ended:
            self._unsent = rendered
            return False
        if rendered := pulse.framer.feed(rendered):
            exchange.push(rendered)
            pulse.spoke = True
        return not exchange.is_behind

    async def _kept(self) -> bytes:
        """Keep the answer if somebody wants that; return what the client has not heard of it yet."""
        keeper = self._keeper
        if keeper is None or self._translator.problem is not None:
            return b"" if keeper is None else keeper.let_go()
        try:
            return await keeper.ended(self._request)
        except Problem as problem:
            if not self._exchange.started:
                raise
            self._translator.problem = problem
            return keeper.failed(problem, self._request)
