"""Run many inputs, each drawn from a seed and its own number, and report every distinct failure."""

import base64
import random
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

from cpu_limit import Hang, cpu_limit
from dragoman.wire.json import Malformed
from fuzz.targets import Broken, Target, targets

SECONDS = 5.0
"""Maximum seconds for one input, in CPU time of this process."""
_VOLATILE = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")


@dataclass
class Failure:
    """One distinct way to fail, with the shortest input seen to do it."""

    target: str
    what: str
    data: bytes
    trace: str
    count: int = 1

    def describe(self) -> str:
        """For a person: what, where, and how to see it again."""
        encoded = base64.b64encode(self.data).decode()
        return f"{self.trace}{self.what}  [{self.count} times]\n  --replay {self.target} {encoded}\n"

    def merge(self, other: "Failure") -> None:
        """Count another one like it and keep the shorter input."""
        self.count += other.count
        if len(other.data) < len(self.data):
            self.target, self.data, self.trace = other.target, other.data, other.trace


def make(seed: int, number: int, chosen: list[Target]) -> tuple[Target, bytes]:
    """Input `number` of campaign `seed`."""
    chance = random.Random(seed << 40 | number)  # noqa: S311
    target = chance.choice(chosen)
    return target, target.make(chance)


def attempt(target: Target, data: bytes) -> Failure | None:
    """Run one input; None when all is well."""
    try:
        target.try_(data)
    except (Exception, Hang) as error:  # noqa: BLE001  # whatever it is, it is the finding
        return Failure(target.name, _what(error, target), data, "".join(traceback.format_exception(error)[-14:]))
    return None


def shrunk(failure: Failure, attempts: int = 600) -> Failure:
    """Cut pieces out of the input, ever smaller ones, while it fails in the same way."""
    target = targets()[failure.target]
    size = len(failure.data) // 2
    while size and attempts > 0:
        at = 0
        while at < len(failure.data) and attempts > 0:
            attempts -= 1
            found = attempt(target, failure.data[:at] + failure.data[at + size :])
            if found is not None and found.what == failure.what:
                failure = replace(found, count=failure.count)
            else:
                at += size
        size //= 2
    return failure


def _what(error: BaseException, target: Target) -> str:
    """Distinguish failures by kind and location, not by values."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/dragoman/" in frame.filename]
    # The wire only says what is wrong; the fault is with whoever did not expect it.
    frames = [frame for frame in frames if "/dragoman/wire/" not in frame.filename] or frames
    place = f" at {frames[-1].filename.rpartition('/dragoman/')[2]}:{frames[-1].name}" if frames else ""
    if isinstance(error, Hang):
        return f"Hang at {target.name}"
    if isinstance(error, Broken | AssertionError):
        place = f" at {target.name}"
    words = "" if isinstance(error, Malformed) else _VOLATILE.sub("_", str(error))[:120]
    return f"{type(error).__name__}: {words}{place}"


def run(
    seed: int, numbers: range, chosen: list[Target] | None = None, before: Callable[[int], None] | None = None
) -> dict[str, Failure]:
    """Run inputs `numbers` of campaign `seed`; `before` is called with each number first."""
    failures: dict[str, Failure] = {}
    chosen = chosen or list(targets().values())
    with cpu_limit(SECONDS) as restart:
        for number in numbers:
            if before is not None:
                before(number)
            target, data = make(seed, number, chosen)
            restart()
            failure = attempt(target, data)
            if failure is None:
                continue
            if failure.what in failures:
                failures[failure.what].merge(failure)
            else:
                failures[failure.what] = failure
    return failures
