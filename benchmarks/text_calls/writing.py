"""The simulator's model in a world without tools: it reads of them in the prompt, and writes its calls as text.

What it decides is decided by the same program as with native calls. It reads the protocol by itself: nothing here is
the interpreter's. How it writes is a habit, from exact to as careless as small models are.
"""

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

from dragoman.simulator import Answer, Received
from dragoman.simulator.apis.conversation import Call, ModelRequest, RequestResult, RequestTool, RequestTurn
from dragoman.simulator.model import answer

_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_LINED = re.compile(r"^TOOL_CALL: (\S+)\nARGUMENTS: (\{.*\})$", re.MULTILINE)
_RESULT = re.compile(r'<tool_result name="([^"]*)"( failed="true")?>\n(.*?)\n</tool_result>', re.DOTALL)
_BROKEN = ",}}"
Habit = Callable[[Call, int], str]
"""Write a call; the number counts the calls of all tasks."""


def _tag(name: str, arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def exact(call: Call, _number: int) -> str:
    """Write a call in the requested form."""
    return _tag(call.name, call.arguments)


def split_lines(call: Call, _number: int) -> str:
    """Write a call in the requested legacy form."""
    return f"TOOL_CALL: {call.name}\nARGUMENTS: {json.dumps(call.arguments)}"


def careless(call: Call, number: int) -> str:
    """In fences, in other letters, in the other form, and with words around."""
    camel = "".join(word.title() for word in call.name.split("_"))
    written = (
        f"```json\n{_tag(call.name, call.arguments)}\n```",
        f"I will look it up.\n\n**TOOL_CALL:** `{call.name}`\n**ARGUMENTS:** {json.dumps(call.arguments)}",
        f"<TOOL_CALL>{json.dumps({'name': camel, 'parameters': call.arguments})}",
        f"tool_call: {call.name.upper()}\narguments:\n```json\n{json.dumps(call.arguments, indent=1)}\n```",
    )
    return written[number % len(written)]


def broken(call: Call, number: int) -> str:
    """With a comma too many in one call of five."""
    output = exact(call, number)
    return output.replace("}}", _BROKEN) if number % 5 == 0 else output


class WithoutTools:
    """A script for the simulator: its own model, with a habit of writing calls."""

    def __init__(self, habit: Habit) -> None:
        self._habit = habit
        self._numbers = count()

    def __call__(self, received: Received) -> Answer:
        """Understand the words, decide, and write the decision as words."""
        output = answer(understood(received.request))
        calls = "\n".join(self._habit(call, next(self._numbers)) for call in output.calls)
        return Answer(text="\n\n".join(part for part in (output.text, calls) if part))


def understood(ask: ModelRequest) -> ModelRequest:
    """Return the request with the tools, calls and results that its text describes."""
    tools: list[RequestTool] = []
    turns: list[RequestTurn] = []
    open_calls: list[str] = []
    for at, turn in enumerate(ask.turns):
        match turn.role:
            case "system":
                declared = [json.loads(line) for line in turn.text.splitlines() if line.startswith('{"name":"')]
                tools += [
                    RequestTool(
                        name=one["name"], description=one.get("description", ""), schema=one.get("parameters", {})
                    )
                    for one in declared
                ]
                turns.append(RequestTurn(role="system"))
            case "assistant":
                calls = tuple(_calls(turn.text, at))
                open_calls = [call.id for call in calls]
                turns.append(RequestTurn(role="assistant", text="" if calls else turn.text, calls=calls))
            case "user":
                results = tuple(
                    RequestResult(call_id=call_id, name=name, text=text, failed=bool(failed))
                    for call_id, (name, failed, text) in zip(open_calls, _RESULT.findall(turn.text), strict=False)
                )
                turns.append(RequestTurn(role="user", text=_get_text(turn.text), results=results))
    return ModelRequest(model=ask.model, turns=tuple(turns), tools=tuple(tools))


def _get_text(text: str) -> str:
    """Return the user's text next to results; a call that has to be written again is one that was not made."""
    output = _RESULT.sub("", text).strip()
    return "" if "cannot be read" in output else output


def _calls(text: str, at: int) -> list[Call]:
    tagged = [json.loads(found) for found in _TAGGED.findall(text) if not found.endswith(_BROKEN)]
    lines = [{"name": name, "arguments": json.loads(given)} for name, given in _LINED.findall(text)]
    return [
        Call(id=f"{at}.{number}", name=call["name"], arguments=call["arguments"])
        for number, call in enumerate([*tagged, *lines])
    ]
