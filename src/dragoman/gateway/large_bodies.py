"""Handles bodies with very many values in a process of its own, where they delay no other request.

The process starts with the first such body and handles one at a time; it ends when it has been idle for some minutes. A
client that disconnects ends it too, as does a body that takes too long: the next body starts another process.
"""

import asyncio
import contextlib
import pickle  # only what this program itself has written
import sys
from asyncio.subprocess import PIPE, Process
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.errors import Rejection, map_rejection
from dragoman.gateway.media import MediaFetcher
from dragoman.gateway.router import Target
from dragoman.gateway.signatures import OwnerSigner, SignatureStore
from dragoman.gateway.upstream_call import translate
from dragoman.http.message import Request
from dragoman.interpreter.translation import Links, MissingLinks, NeededLink, SavedSignatures, Translation
from dragoman.interpreter.undo import NO_UNDO

T = TypeVar("T")
LENGTH_BYTES = 8
"""Bytes before each message of the process, which are its length."""
_MOST_WAITING = 16
"""Bodies that may wait for the process."""
_MOST_SECONDS = 60.0
"""Seconds that one body may take."""
_IDLE_SECONDS = 300.0
"""Seconds without work after which the process ends, to free its memory."""
_MOST_LOSSES = 20_000
"""Losses in a large body that are reported; a request with more is rejected."""
_READ_SIZE = 1 << 20
_UNPARSED_TYPES = (
    "multipart/",
    "audio/",
    "image/",
    "video/",
    "application/octet-stream",
    "application/jsonl",
    "text/csv",
)
"""Content types of files, which are forwarded without being parsed."""
_OFFLOADED_OPERATIONS = frozenset({"generate", "count", "translate"})
"""Operations whose large bodies another process handles."""
_MANY_SEPARATORS = 200_000
"""Commas and colons in the body of such an operation from which on it is large."""
_MOST_ON_LOOP = 500_000
"""Commas and colons in a body of another operation."""
_LARGE_BYTES = 32 << 20
"""Bytes from which on such a body is large however few values it has."""
_COUNTED_AT_ONCE = 4 << 20
_EMPTY = Message(role="user", parts=())
_Saved = OrderedDict[tuple[str, str], Mapping[str, SavedSignatures]]


class SeparatorLimit:
    """Finds the bodies with very many values, and rejects those with too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.uncounted = min(most, _MANY_SEPARATORS)
        """Bytes of a body up to which its separators need not be counted."""

    async def check(self, request: Request, operation: str) -> None:
        """Find whether a JSON body has many values; raise a `Problem` for one with too many."""
        if request.headers_by_name.get("content-type", "").lower().startswith(_UNPARSED_TYPES):
            return
        body, count, is_offloaded = request.body, 0, operation in _OFFLOADED_OPERATIONS
        most = self._most if is_offloaded else min(self._most, _MOST_ON_LOOP)
        for start in range(0, len(body), _COUNTED_AT_ONCE):
            end = start + _COUNTED_AT_ONCE
            count += body.count(b",", start, end) + body.count(b":", start, end)
            if end < len(body):
                await asyncio.sleep(0)
        if count > most:
            message = f"the body has {count} commas and colons; the limit is {most} (`separators` in [server.limits])"
            raise Problem("invalid_request", message)
        request.is_large = is_offloaded and (count >= _MANY_SEPARATORS or len(body) >= _LARGE_BYTES)


class LargeBodies:
    """Calls functions in the process for large bodies, and starts it if necessary."""

    def __init__(self, module: str) -> None:
        self._module = module
        """The module that the process runs."""
        self._process: Process | None = None
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function of a module in the process and return its result, or raise its `Problem`."""
        if self._waiting > _MOST_WAITING:
            raise Problem("overloaded", "the gateway handles too many large bodies; retry", retry_after=5)
        self._waiting += 1
        try:
            async with self._lock:
                result, error = await self._call(dump((function, arguments)))
        finally:
            self._waiting -= 1
        if error is not None:
            raise error
        return result

    async def _call(self, message: bytes) -> Any:
        try:
            async with self._kill_on_error(), asyncio.timeout(_MOST_SECONDS):
                process = self._process or await self._start()
                return await _exchange(process, message)
        except TimeoutError:
            reason = f"the body takes more than {_MOST_SECONDS:g} seconds to process: it has too many values"
            raise Problem("invalid_request", reason) from None
        except (ConnectionError, asyncio.IncompleteReadError):
            raise Problem("internal", "the process that handles large bodies has ended; see the gateway log") from None
        finally:
            self._set_timer()

    @contextlib.asynccontextmanager
    async def _kill_on_error(self) -> AsyncGenerator[None]:
        """Kill the process if the block fails or is cancelled: the rest of its answer may be in the pipe."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            yield
            stack.pop_all()

    async def _start(self) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, stdin=PIPE, stdout=PIPE, limit=_READ_SIZE
        )
        return self._process

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        """End the process: it does at the end of its input."""
        if not self._waiting and self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process = None

    async def _stop(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        """End the process."""
        if self._timer is not None:
            self._timer.cancel()
        await self._stop()

    async def translate(
        self,
        request: ClientRequest,
        target: Target,
        store: SignatureStore | None = None,
        turn_functions: frozenset[str] = frozenset(),
        losses: tuple[Loss, ...] = (),
    ) -> Translation:
        """Translate a request in the process as `translate` of `upstream_call` does in this one.

        The translation has only what its reply needs of the request.
        """
        inputs = await _Inputs.find(request.owner, store)
        while True:
            try:
                answer = await self.run(translate_body, request, _strip(target), inputs, turn_functions, losses)
            except MissingInputs as missing:
                await inputs.add(missing, target, store, request.owner)
                continue
            translation = answer.translation
            return structs.replace(translation, undo=NO_UNDO) if answer.undoes_nothing else translation

    async def map_rejection(
        self, request: ClientRequest, target: Target, store: SignatureStore | None, rejection: Rejection
    ) -> Problem:
        """Return the error for a translated request that an upstream has rejected; see `map_rejection` of `errors`."""
        inputs = await _Inputs.find(request.owner, store)
        while True:
            try:
                return await self.run(map_body_rejection, request, _strip(target), inputs, rejection)
            except MissingInputs as missing:
                await inputs.add(missing, target, store, request.owner)


async def _exchange(process: Process, message: bytes) -> Any:
    """Send a message to the process and return its answer."""
    writer, reader = process.stdin, process.stdout
    if writer is None or reader is None:
        raise ConnectionError("the process has no pipes")
    writer.write(len(message).to_bytes(LENGTH_BYTES))
    writer.write(message)
    await writer.drain()
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
    return load(await reader.readexactly(length))


def dump(value: object) -> bytes:
    """Encode a message from or to the process."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def load(message: bytes) -> Any:
    """Decode a message from or to the process."""
    return pickle.loads(message)  # noqa: S301  written by `dump`


class MissingInputs(Exception):  # noqa: N818  it lists what is missing
    """Raised in the process if a translation needs sections or links that must be looked up first."""

    def __init__(self, sections: Sequence[str], links: Mapping[str, NeededLink], options: Links | None) -> None:
        super().__init__(sections, links, options)
        self.sections = sections
        self.links = links
        self.options = options


class _Inputs(Struct):
    """What a translation in the process needs beyond the request: saved signatures, and fetched links."""

    has_store: bool = False
    is_empty: bool = True
    """Nothing of the request's owner is saved."""
    saved: _Saved = OrderedDict()
    links: Links | None = None

    @classmethod
    async def find(cls, owner: str, store: SignatureStore | None) -> "_Inputs":
        """Return the inputs that every request of an owner has."""
        is_empty = store is None or not await store.has_any(owner)
        return cls(store is not None, is_empty, OrderedDict())

    async def add(self, missing: MissingInputs, target: Target, store: SignatureStore | None, owner: str) -> None:
        """Look up what a translation has missed."""
        if missing.sections and store is not None:
            signer = store.signer_for(owner)
            await signer.look_up(missing.sections)
            for section in missing.sections:
                self.saved[owner, section] = signer.find_signatures(section) or {}
        if missing.options is not None and target.media_fetcher is not None:
            links = MissingLinks(dict(missing.links))
            self.links = await target.media_fetcher.translate_with_media(_keep_links, links, missing.options)


def _keep_links(links: Links | None) -> Links | None:
    return links


class _Snapshot(SignatureStore):
    """The saved signatures that were looked up for one request."""

    def __init__(self, inputs: _Inputs) -> None:
        self._inputs = inputs

    def signer_for(self, owner: str) -> OwnerSigner:
        return OwnerSigner(owner, self._inputs.saved, self, self._inputs.is_empty)

    async def has_any(self, owner: str) -> bool:
        return self.knows(owner)

    def knows(self, owner: str) -> bool:
        del owner
        return not self._inputs.is_empty

    async def has_recorded(self, owner: str) -> bool:
        return await self.has_any(owner)

    async def look_up(self, owner: str, ids: Sequence[str]) -> bool:
        missing = [section for section in ids if (owner, section) not in self._inputs.saved]
        if missing:
            raise MissingInputs(missing, {}, None)
        return any(self._inputs.saved[owner, section] for section in ids)


class _FetchedMedia(MediaFetcher):
    """The links that were fetched for one request."""

    def __init__(self, inputs: _Inputs) -> None:
        self._inputs = inputs

    async def translate_with_media(
        self, translate: Callable[[Links | None], T], missing: MissingLinks, links: Links
    ) -> T:
        if self._inputs.links is None:
            raise MissingInputs((), missing.links, structs.replace(links, missing={}))
        return translate(self._inputs.links)


class _UpstreamFacts(Struct, frozen=True):
    """What a translation depends on of an upstream."""

    name: str
    dialect: str
    form: str


class _Answer(Struct, frozen=True):
    """A translation by the process."""

    undoes_nothing: bool
    translation: Translation


def _strip(target: Target) -> Target:
    """Return a target with only what a translation depends on, so that it can be sent to the process."""
    upstream = target.upstream
    facts = cast("Any", _UpstreamFacts(upstream.name, upstream.dialect, upstream.form))
    has_fetcher = cast("Any", True) if target.media_fetcher is not None else None  # noqa: FBT003  a mark
    return structs.replace(target, upstream=facts, media_fetcher=has_fetcher, other_api=None)


async def _translate(
    request: ClientRequest,
    target: Target,
    inputs: _Inputs,
    turn_functions: frozenset[str] = frozenset(),
    losses: tuple[Loss, ...] = (),
) -> Translation:
    """Translate a request for a target that `_strip` has made, with the inputs in place of what fetches them."""
    fetcher = _FetchedMedia(inputs) if target.media_fetcher is not None else None
    store = _Snapshot(inputs) if inputs.has_store else None
    return await translate(request, structs.replace(target, media_fetcher=fetcher), store, turn_functions, losses)


def translate_body(
    request: ClientRequest,
    target: Target,
    inputs: _Inputs,
    turn_functions: frozenset[str],
    losses: tuple[Loss, ...],
) -> _Answer:
    """Translate a request; called in the process."""
    translation = asyncio.run(_translate(request, target, inputs, turn_functions, losses))
    if len(translation.losses) > _MOST_LOSSES:
        message = f"{len(translation.losses)} fields of the request cannot be translated; the limit is {_MOST_LOSSES}"
        raise Problem("invalid_request", message, where=translation.losses[0].where)
    core = translation.request
    if core is not None:
        # Replies depend on the first instructions and on how many messages there are.
        leading = tuple(message for message in core.messages[:1] if message.role == "system")
        rest = (_EMPTY,) * (len(core.messages) - len(leading))
        core = structs.replace(core, messages=(*leading, *rest))
    small = structs.replace(translation, request=core, tool_set=None)
    return _Answer(translation.undo is NO_UNDO, small)


def map_body_rejection(request: ClientRequest, target: Target, inputs: _Inputs, rejection: Rejection) -> Problem:
    """Map an upstream's error for a request, which is translated once more; called in the process."""
    translation = asyncio.run(_translate(request, target, inputs))
    return map_rejection(rejection, target, translation, request.dialect, request.call.body)
