"""One line for every exchange: what was asked, where it went, how it ended and what it cost.

What was said in a request or a reply is never in it, and whatever looks like a secret is taken out. Our own failures
have a line of their own with their traceback, also where no other lines are wanted.
"""

import traceback
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from time import gmtime, strftime, time
from typing import Any

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Record
from dragoman.gateway.redact import redact
from dragoman.server.watching.lines import Lines
from dragoman.server.watching.metrics import QUIET
from dragoman.wire import json

_LONGEST = 500
"""Letters of somebody else's words that go into a line."""
_MOST_READ = 4000
"""Letters that are looked at for these; secrets among them are longer than what stands in their place."""
_LONGEST_TRACE = 64 << 10
Fields = dict[str, Any]


class Log:
    """Writes a line for every exchange."""

    def __init__(
        self,
        add: Callable[[bytes], None],
        *,
        form: str = "json",
        secrets: Collection[str] = (),
        crashes: bool = False,
        more: Fields | None = None,
    ) -> None:
        self._add = add
        self._secrets = secrets
        self._form = _plain if form == "text" else json.encode
        self._crashes_only = crashes
        self._more = more

    def ended(self, record: Record) -> None:
        """Tell of an exchange that is over."""
        if record.crash is not None:
            self.crashed(record.crash, record.id)
        if not self._crashes_only and (record.operation not in QUIET or record.problem is not None):
            self._add(self._form(self._fields(record)))

    def crashed(self, error: BaseException, exchange: str = "", words: str = "") -> None:
        """Tell of a failure of our own."""
        lines = redact("".join(traceback.format_exception(error))[-_LONGEST_TRACE:], self._secrets)
        fields: Fields = {"time": _moment(time()), "event": "crash", "exchange": exchange, "message": words}
        if self._form is _plain:
            self._add(f"{fields['time']} crash {exchange} {words}\n{lines}".encode())
        else:
            self._add(json.encode({**fields, "error": type(error).__name__, "traceback": lines}))

    def loop_failed(self, _: object, context: dict[str, Any]) -> None:
        """Take what the event loop could tell nobody else."""
        error = context.get("exception")
        words = self._clean(str(context.get("message", "")))
        self.crashed(error if isinstance(error, BaseException) else RuntimeError(words), words=words)

    def _fields(self, record: Record) -> Fields:
        problem, usage = record.problem, record.usage
        fields: Fields = {
            "time": _moment(record.began),
            "exchange": record.id,
            "owner": record.owner,
            "operation": record.operation,
            "dialect": record.dialect,
            # A name that was answered to is no secret; any other is a client's word.
            "model": record.model if record.outcome == "answered" else self._clean(record.model),
            "upstream": record.upstream,
            "upstream_model": record.upstream_model
            if record.outcome == "answered"
            else self._clean(record.upstream_model),
            "status": record.status,
            "outcome": record.outcome,
            "tries": record.tries,
            "stream": record.stream,
            "first_ms": _milliseconds(record.first),
            "total_ms": _milliseconds(record.seconds),
            "finish": record.finish,
            "losses": len(record.losses),
        }
        if usage is not None:
            counted = {"input": usage.input, "output": usage.output}
            fields["tokens"] = {**counted, "cached": usage.cached, "reasoning": usage.reasoning}
        if problem is not None:
            fields["problem"] = problem.kind
            fields["message"] = self._clean(problem.message)
        if self._more is not None:
            fields.update(self._more)
        return fields

    def _clean(self, text: str) -> str:
        # It is cut before it is read: a client may name a model with a million letters.
        return redact(text[:_MOST_READ], self._secrets)[:_LONGEST]


def _moment(seconds: float) -> str:
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03}Z"


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    # Many exchanges begin in the same second, and this is half of what a line would cost.
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(whole))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else int(seconds * 10_000) / 10


def _plain(fields: Fields) -> bytes:
    """Return a line for a person."""
    words = [fields["time"][11:], str(fields["status"] or "-"), fields["outcome"], fields["dialect"]]
    if fields["model"]:
        words.append(fields["model"])
    if fields["upstream"]:
        words.append(f"-> {fields['upstream']}/{fields['upstream_model']}")
    words.append(f"{fields['total_ms']:.0f} ms")
    if fields["stream"] and fields["first_ms"] is not None:
        words.append(f"(first {fields['first_ms']:.0f} ms)")
    if "tokens" in fields:
        words.append(f"{fields['tokens']['input']}+{fields['tokens']['output']} tokens")
    if fields["losses"]:
        words.append(f"{fields['losses']} losses")
    if fields["tries"] > 1:
        words.append(f"{fields['tries']} tries")
    if "problem" in fields:
        words.append(f"{fields['problem']}: {fields['message']}")
    return " ".join([*words, fields["exchange"]]).replace("\n", " ").encode()


@contextmanager
def opened(config: Config, worker: int | None = None) -> Generator[Log]:
    """Keep the log that is configured open as long as the block runs; of several workers each says which it is."""
    said = config.server.log
    try:
        lines = Lines(None if said in {"stderr", "off"} else Path(said))
    except OSError as error:
        words = f'{said!r} cannot be written ({error.strerror}): name another file, "stderr" or "off"'
        raise ConfigError(config.source, "server.log", words) from None
    try:
        more = None if worker is None else {"worker": worker}
        form, crashes = config.server.log_format, said == "off"
        yield Log(lines.add, form=form, secrets=config.secrets, crashes=crashes, more=more)
    finally:
        lines.close()
