"""Read Responses replies with the openai package: its stream class, its event types, its helper."""

import json
import re
from typing import Any

import httpx2
import openai
from openai._streaming import Stream
from openai.types.responses import Response, ResponseStreamEvent

from oracles.clients import openai_client, silent
from oracles.reading import Call, Reading, Usage, describe_error, finish_after

_POST = httpx2.Request("POST", "http://oracle/v1/responses")
_INCOMPLETE = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "filtered"}
_DELTA = re.compile(rb'"type":\s*"response\.[a-z_.]+\.delta"')
_DELTA_KINDS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "call",
}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def read_whole(body: bytes, *, strict: bool) -> Reading:
    """Read a whole reply; strict validates every field against the SDK's types."""
    response = httpx2.Response(200, content=body, request=_POST)
    with silent():
        try:
            reply = openai_client(strict=strict)._process_response_data(
                data=json.loads(body), cast_to=Response, response=response
            )
            return _read(reply, reply.output)
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            return Reading(problem=describe_error(error))


def read_stream(sse: bytes, *, strict: bool) -> Reading:
    """Read a stream. Strict also demands that deltas, finished items and the final reply say the same."""
    response = httpx2.Response(200, content=sse if strict else _without_deltas(sse), request=_POST)
    growth = _Growth()
    done: dict[int, Any] = {}
    final: Any = None
    problem = ""
    with silent():
        try:
            for event in Stream(cast_to=ResponseStreamEvent, response=response, client=openai_client(strict=strict)):
                if strict:
                    growth.take(event)
                if event.type == "response.output_item.done":
                    done[event.output_index] = event.item
                elif event.type in _TERMINAL:
                    final = event.response
                    final.status = final.status or event.type.removeprefix("response.")
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            problem = describe_error(error)
        items = [done[index] for index in sorted(done)]
        output = final.output if final is not None and final.output else items
        reading = _read(final, output, problem or ("" if final is not None else "no terminal event"))
        if strict and not reading.problem:
            return growth.judged(reading, _read(final, items))
        return reading


def _without_deltas(sse: bytes) -> bytes:
    """Recordings are read by their finished items: to construct each delta takes the SDK most of a second."""
    return b"\n\n".join(frame for frame in sse.split(b"\n\n") if not _DELTA.search(frame))


class _Growth:
    """Return the content of the deltas alone, and whether events are numbered without gaps."""

    def __init__(self) -> None:
        self._expected = 0
        self._reply: dict[str, dict[int, str]] = {"text": {}, "refusal": {}, "call": {}}
        self._gap = ""

    def take(self, event: Any) -> None:
        if event.sequence_number != self._expected and not self._gap:
            self._gap = f"event {self._expected} is numbered {event.sequence_number}"
        self._expected += 1
        kind = _DELTA_KINDS.get(event.type)
        if kind is not None:
            result = self._reply[kind]
            result[event.output_index] = result.get(event.output_index, "") + event.delta

    def judged(self, final: Reading, items: Reading) -> Reading:
        output = {kind: tuple(result[index] for index in sorted(result)) for kind, result in self._reply.items()}
        whole = ("".join(output["text"]), "".join(output["refusal"]), output["call"])
        for reading in (final, items):
            calls = tuple(call.arguments for call in reading.calls if call.arguments)
            if whole != (reading.text, reading.refusal, calls):
                return Reading(problem=f"deltas say {whole}, the rest {reading}")
        return Reading(problem=self._gap) if self._gap else final


def read_helper(client: openai.OpenAI) -> Reading:
    """Read what `client` receives with `responses.stream`."""
    with client.responses.stream(model="m", input="x") as stream:
        reply = stream.get_final_response()
    return _read(reply, reply.output)


def _texts(output: list[Any]) -> tuple[str, str]:
    text: list[str] = []
    refusal: list[str] = []
    for item in output:
        if item.type != "message":
            continue
        for part in item.content:
            if part.type == "output_text":
                text.append(part.text)
            elif part.type == "refusal":
                refusal.append(part.refusal)
    return "".join(text), "".join(refusal)


def _calls(output: list[Any]) -> tuple[Call, ...]:
    calls: list[Call] = []
    for item in output:
        if item.type == "function_call":
            calls.append(Call(item.name, item.arguments, item.call_id))
        elif item.type == "custom_tool_call":
            calls.append(Call(item.name, item.input, item.call_id, "text"))
    return tuple(calls)


def _read_reasoning(output: list[Any]) -> str:
    texts: list[str] = []
    for item in output:
        if item.type == "reasoning":
            texts.extend(piece.text for piece in item.summary or getattr(item, "content", None) or ())
    return "".join(texts)


def _read(reply: Any, output: list[Any], problem: str = "") -> Reading:
    text, refusal = _texts(output)
    calls = _calls(output)
    word = ""
    if reply is not None:
        details = reply.incomplete_details
        match reply.status:
            case "completed":
                word = "stop"
            case "incomplete":
                word = _INCOMPLETE.get(details.reason if details else "", "other")
            case "failed":
                problem = problem or f"failed: {reply.error}"
            case "cancelled" | "in_progress" | "queued":
                word = "other"
            case _:
                # A word that no version of the API has, with the whole output: some servers write "complete".
                word = "stop" if output else "other"
    return Reading(
        text=text,
        calls=calls,
        finish=finish_after(word, calls=bool(calls), refusal=bool(refusal)),
        usage=_usage(reply.usage if reply is not None else None),
        refusal=refusal,
        reasoning=_read_reasoning(output),
        problem=problem,
    )


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    before, after = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        before.cached_tokens if before else None,
        after.reasoning_tokens if after else None,
    )
