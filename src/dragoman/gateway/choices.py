"""Answers a request for several choices at a target that generates one: with as many upstream requests at once.

All choices come from one target. Each is retried on its own, until the client has received a part of it, but only at
the last target: before that, a failed choice sends all of them to the next one. The request fails as the first choice
that finally fails does, and the other choices are cancelled.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from dragoman.core.events import Failed, Started
from dragoman.core.problems import Problem
from dragoman.core.response import Response, Usage, add_usage
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import CallContext, RequestContext
from dragoman.gateway.errors import map_error_in_reply
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import ReplyStream, StreamWriter, read_reply, send_whole
from dragoman.gateway.retry import RetryLoop, RetryPolicy, may_succeed_elsewhere
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import UpstreamClient, UpstreamReply, choose_api
from dragoman.interpreter.choices import ChoiceMerger, SeveralChoices, split_request
from dragoman.tasks import run_all

if TYPE_CHECKING:
    from dragoman.interpreter.translation import Translation

T = TypeVar("T")
_TASK_NAME = "generate one of several choices"


class ChoiceContext(CallContext):
    """One choice: it has a record of its own, and is retried until the client has received a part of it."""

    has_begun: bool = False

    @property
    def has_started(self) -> bool:
        """Whether the client has received a part of this choice."""
        return self.has_begun


ReadChoice = Callable[[int, ChoiceContext, UpstreamReply], Awaitable[T]]
"""Reads the reply with the choice of an index."""


class ChoiceCalls:
    """Calls upstreams once for each choice."""

    def __init__(self, upstreams: UpstreamClient, retry: RetryLoop, max_choices: int) -> None:
        self._upstreams = upstreams
        self._retry = retry
        self._single_attempt = RetryLoop(RetryPolicy(retries=0))
        self._max_choices = max_choices

    async def answer(
        self,
        context: RequestContext,
        targets: Sequence[Target],
        several: SeveralChoices,
        answer_whole: Callable[[Target], Awaitable[None]],
    ) -> None:
        """Reply from the first target that can; `answer_whole` replies from one that generates several choices."""
        if several.count > self._max_choices:
            name = several.where.rpartition("/")[2]
            raise Problem(
                "invalid_request",
                f"{name} is {several.count}, but the gateway's limit is {self._max_choices} ([server] max_choices)",
                where=several.where,
            )
        for target in targets:
            is_last = target is targets[-1]
            retry = self._retry if is_last else self._single_attempt
            try:
                await self._answer_from(context, target, retry, answer_whole)
            except Problem as problem:
                if is_last or context.has_started or not may_succeed_elsewhere(problem):
                    raise
            else:
                return

    async def _answer_from(
        self,
        context: RequestContext,
        target: Target,
        retry: RetryLoop,
        answer_whole: Callable[[Target], Awaitable[None]],
    ) -> None:
        try:
            await retry.run((target,), answer_whole, context)
        except SeveralChoices as several:
            run = _ChoiceRun(self._upstreams, retry, context, target)
            await run.translate(several)
            await (run.write_stream() if context.request.call.stream else run.write_whole())


class _ChoiceRun:
    """The requests for all choices at one target, and their merged reply."""

    def __init__(self, upstreams: UpstreamClient, retry: RetryLoop, context: RequestContext, target: Target) -> None:
        self._upstreams = upstreams
        self._retry = retry
        self._context = context
        self._target = target
        self._dialect = dialect_named(context.request.dialect)
        self._merger = ChoiceMerger(self._dialect)
        self._choices: list[ChoiceContext] = []
        self._translations: list[Translation] = []
        self._last_events = b""
        """The last events of a choice that failed after the client had received a part of it."""

    async def translate(self, several: SeveralChoices) -> None:
        """Translate the request for every choice, before any is sent."""
        request, record = self._context.request, self._context.record
        calls = split_request(request.call, self._dialect, several)
        self._target, losses = choose_api(structs.replace(request, call=calls[0]), self._target)
        translated = {
            call: await self._upstreams.translate(structs.replace(request, call=call), self._target, losses)
            for call in dict.fromkeys(calls)
        }
        self._translations = [translated[call] for call in calls]
        self._choices = [
            ChoiceContext(structs.replace(request, call=call), Record(owner=record.owner, dialect=request.dialect))
            for call in calls
        ]
        record.upstream, record.upstream_model = self._target.upstream.name, self._target.model

    async def write_whole(self) -> None:
        """Send one whole reply with all choices."""
        try:
            replies = await self._run_all(self._read_choice)
        finally:
            self._note_choices()
        responses = [response for _, response in replies]
        usage = _sum_usage([response.usage for response in responses])
        # A conversation continues from the first choice.
        first = structs.replace(responses[0], usage=usage)
        await send_whole(self._merger.merge_replies([body for body, _ in replies]), first, self._context)

    async def write_stream(self) -> None:
        """Send the events of all choices as they arrive."""
        context, problem = self._context, None
        record = context.record
        self._writer = StreamWriter(self._translations[0].request, context)
        try:
            await self._run_all(self._stream_choice)
            events = self._merger.close()
        except Problem as failure:
            if record.first_token_seconds is None:
                raise
            problem, events = failure, self._last_events or self._render_failure(failure)
        finally:
            self._note_choices()
        record.problem = await self._writer.end(events, problem)

    def _render_failure(self, problem: Problem) -> bytes:
        encoder = self._dialect.encoder(self._translations[0].request)
        encoder.feed(Started("", self._context.request.call.model))
        return encoder.feed(Failed(problem))

    async def _run_all(self, read: ReadChoice[T]) -> list[T]:
        """Call the upstream for all choices at once; the first that fails cancels the others."""
        return await run_all([self._run_choice(index, read) for index in range(len(self._choices))], _TASK_NAME)

    async def _run_choice(self, index: int, read: ReadChoice[T]) -> T:
        context = self._choices[index]
        return await self._retry.run((self._target,), partial(self._call_upstream, index, context, read), context)

    async def _call_upstream(self, index: int, context: ChoiceContext, read: ReadChoice[T], target: Target) -> T:
        reply = await self._upstreams.send_translated(context, target, self._translations[index])
        self._context.record.losses = context.record.losses
        try:
            result = await read(index, context, reply)
            reply.incoming.drain()
        except Problem as problem:
            raise map_error_in_reply(problem, context.request.dialect) from None
        finally:
            reply.incoming.close()
        return result

    async def _read_choice(self, _index: int, context: ChoiceContext, reply: UpstreamReply) -> tuple[bytes, Response]:
        body, response = await read_reply(reply, context)
        context.record.usage, context.record.finish = response.usage, response.finish.reason
        return body, response

    async def _stream_choice(self, index: int, context: ChoiceContext, reply: UpstreamReply) -> None:
        stream, held = ReplyStream(reply, context.request), b""
        try:
            while not stream.translator.over:
                held += await stream.read_events()
                problem = stream.translator.problem
                if problem is not None:
                    if context.has_begun:
                        self._last_events = self._merger.feed(index, held)
                    raise problem
                if stream.translator.begun:
                    context.has_begun = True
                    # The merger counts what is sent: a failed attempt is not.
                    events, held = self._merger.feed(index, held), b""
                    await self._writer.write(events, has_begun=True)
        finally:
            stream.note_end(context.record)

    def _note_choices(self) -> None:
        """Note in the record of the request what happened to its choices."""
        record, records = self._context.record, [choice.record for choice in self._choices]
        record.tries += max(each.tries for each in records)
        record.is_retry_budget_spent = any(each.is_retry_budget_spent for each in records)
        record.reply_losses = tuple(dict.fromkeys(loss for each in records for loss in each.reply_losses))
        record.usage, record.finish = _sum_usage([each.usage for each in records]), records[0].finish


def _sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sum of all counts, without those that only one vendor has; None if no choice has any."""
    found = [usage for usage in usages if usage is not None]
    return structs.replace(reduce(add_usage, found), extras=None) if found else None
