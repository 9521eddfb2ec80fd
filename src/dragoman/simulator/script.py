"""Scripts: fixed replies instead of the simulated model's own.

A script is a list of steps. A step applies when its conditions hold; then the request is checked against the step's
expectations (a request that does not meet them is rejected, with a readable diff), and the step's reply is sent.
In TOML:

    [[step]]
    when = { contains = "weather", model = "gemini-*", turn = 1 }
    expect = { "/temperature" = 0.2, "/tools/0/function/name" = "get_weather" }
    calls = [{ name = "get_weather", arguments = { city = "Paris" } }]

    [[step]]
    text = "It is sunny."

Steps without `when` apply in order, each once; steps with `when` apply whenever it holds, unless `times` limits that.
In Python a script is any function from a `Received` to an `Answer`, a `Fault`, or None for the model's own answer; a
Python file names it `script`.
"""

import difflib
import json
import runpy
import tomllib
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, field

from dragoman.former_names import keep_attributes
from dragoman.guard import attempt
from dragoman.simulator.apis.conversation import Answer, AnswerEnd, AnswerSource, Call, ModelRequest
from dragoman.simulator.apis.routes import ServerName
from dragoman.simulator.faults import Fault, read_fault
from dragoman.wire.pointer import split


class Received(Struct, frozen=True, kw_only=True):
    """A request as a script receives it."""

    api: str
    request: ModelRequest
    body: Any
    """The JSON of the request."""


keep_attributes(Received, ask="request")


class Unmet(Exception):  # noqa: N818  the name says what the expectation is
    """A request does not meet the expectations of the script."""


Script = Callable[[Received], Answer | Fault | None]
ABSENT = "(absent)"
"""The value a script expects at a pointer where the request must have none."""


def read_script(path: Path) -> Script:
    """Read a script from a TOML or Python file; raises `ValueError` if it is not one."""
    if path.suffix != ".py":
        return TomlScript.read(path)
    ran = attempt(runpy.run_path, str(path))
    if ran.error is not None:
        raise ValueError(f"{path.name} is not a script: {type(ran.error).__name__}: {ran.error}") from ran.error
    script = ran.value.get("script")
    if callable(script):
        return cast("Script", script)
    raise ValueError(f"{path.name} is not a script: it has no function `script`")


class When(Struct, forbid_unknown_fields=True):
    """Conditions of a step; all that are given must hold."""

    contains: str | None = None
    """Text that occurs in the user's last text, case-insensitive."""
    model: str | None = None
    """A pattern such as `gemini-*`."""
    api: Literal["chat", "responses", "messages", "gemini"] | ServerName | None = None
    turn: int | None = None
    """The number of the assistant turn to come, from 1."""
    after: str | None = None
    """The name of a tool whose result came last."""


class ScriptedCall(Struct, forbid_unknown_fields=True):
    """A call to make."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""


class ScriptedSource(Struct, forbid_unknown_fields=True):
    """A page that a web search found; `quote` are the words of the text that it is cited for, if any."""

    url: str
    title: str = ""
    quote: str = ""


class Step(Struct, forbid_unknown_fields=True):
    """One step of a script."""

    when: When | None = None
    expect: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the request must contain, by JSON pointer."""
    text: str = ""
    refusal: str = ""
    """A refusal instead of an answer."""
    thought: str = ""
    calls: list[ScriptedCall] = field(default_factory=list[ScriptedCall])
    query: str = ""
    """The query of a web search, whose results are `sources`."""
    sources: list[ScriptedSource] = field(default_factory=list[ScriptedSource])
    end: AnswerEnd | None = None
    fault: str | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        """Validate the step when it is read, before any request arrives."""
        invalid = [pointer for pointer in self.expect if pointer and not pointer.startswith("/")]
        if invalid:
            raise ValueError(f"not a JSON pointer: {invalid[0]!r}; it must begin with a slash")
        if self.refusal and (self.text or self.calls):
            raise ValueError("a step with `refusal` cannot have `text` or `calls`")
        if self.sources and not self.query:
            raise ValueError("a step with `sources` needs a `query`")
        if self.fault is None:
            return
        read_fault(self.fault)
        if self.text or self.refusal or self.thought or self.calls or self.query or self.end is not None:
            raise ValueError("a step with `fault` cannot have `text`, `refusal`, `thought`, `calls`, `query` or `end`")


class _Steps(Struct, forbid_unknown_fields=True):
    step: list[Step]


class TomlScript:
    """The steps of a TOML file, with how often each was used."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self._use_counts = [0] * len(steps)

    @classmethod
    def read(cls, path: Path) -> "TomlScript":
        """Read a file; raises `ValueError` if it is not a script."""
        source = path.read_bytes()
        try:
            return cls(msgspec.convert(tomllib.loads(source.decode()), _Steps).step)
        except ValueError as error:
            raise ValueError(f"{path.name} is not a script: {error}") from None

    def __call__(self, received: Received) -> Answer | Fault | None:
        """Return the reply of the first step that applies; None if none does."""
        for number, step in enumerate(self._steps):
            most = step.times if step.times is not None or step.when is not None else 1
            if (most is None or self._use_counts[number] < most) and _is_applicable(step.when, received):
                _check_expectations(step.expect, received.body)
                self._use_counts[number] += 1
                return _build_answer(step)
        return None


def _is_applicable(when: When | None, received: Received) -> bool:
    if when is None:
        return True
    request = received.request
    last_text = next((turn.text for turn in reversed(request.turns) if turn.role == "user" and turn.text), "")
    results = request.turns[-1].results if request.turns else ()
    assistant_turns = sum(turn.role == "assistant" for turn in request.turns)
    return (
        (when.contains is None or when.contains.lower() in last_text.lower())
        and (when.model is None or fnmatchcase(request.model, when.model))
        and (when.api is None or when.api == received.api)
        and (when.turn is None or when.turn == assistant_turns + 1)
        and (when.after is None or when.after in {result.name for result in results})
    )


def _check_expectations(expected: dict[str, Any], body: Any) -> None:
    found = {pointer: _read_pointer(body, pointer) for pointer in expected}
    if found == expected:
        return
    wanted, received = (
        json.dumps(side, indent=1, sort_keys=True, default=str).splitlines() for side in (expected, found)
    )
    difference = difflib.unified_diff(wanted, received, "expected", "received", n=99, lineterm="")
    raise Unmet("the request does not meet the script's expectations:\n" + "\n".join(difference))


def _read_pointer(body: Any, pointer: str) -> Any:
    """Return the value at a pointer; `ABSENT` if there is none."""
    for token in split(pointer):
        if isinstance(body, list) and token.isdecimal() and int(token) < len(body):  # pyright: ignore[reportUnknownArgumentType]
            body = body[int(token)]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(body, dict) and token in body:
            body = body[token]  # pyright: ignore[reportUnknownVariableType]
        else:
            return ABSENT
    return body  # pyright: ignore[reportUnknownVariableType]


def _build_answer(step: Step) -> Answer | Fault:
    if step.fault is not None:
        return read_fault(step.fault)
    calls = tuple(
        Call(id=call.id or f"{number:024x}", name=call.name, arguments=call.arguments)
        for number, call in enumerate(step.calls, 1)
    )
    end: AnswerEnd = step.end or ("calls" if calls else "stop")
    return Answer(
        text=step.text,
        refusal=step.refusal,
        thought=step.thought,
        calls=calls,
        end=end,
        query=step.query,
        sources=tuple(AnswerSource(url=one.url, title=one.title, quote=one.quote) for one in step.sources),
    )
