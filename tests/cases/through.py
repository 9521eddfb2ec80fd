"""The public surface with plain JSON on both sides: ask a target, hear its answer, let a stream flow."""

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.dialects.record import Call
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation

DONE = "[DONE]"


class Asked(Struct, frozen=True):
    """A request as the upstream gets it, and what its reply is an answer to."""

    body: dict[str, Any]
    translation: Translation

    @property
    def losses(self) -> tuple[Loss, ...]:
        return self.translation.losses

    @property
    def context(self) -> Context:
        return Context(self.translation.request, self.translation.undo)


class Answered(Struct, frozen=True):
    """A reply as the client gets it: a whole body, or the frames of a stream."""

    body: Any
    losses: tuple[Loss, ...]
    raw: bytes


def translate_to(
    source: str, target: str, body: dict[str, Any], *, model: str, strict: bool = False, form: str = ""
) -> Asked:
    """Translate a request of `source` for `model` behind `target`."""
    call = Call(encode(body), body.get("model", "m"))
    translation = translate_request(call, source, target, model=model, strict=strict, form=form)
    return Asked(json.loads(translation.call.body), translation)


def answer(source: str, target: str, body: dict[str, Any], asked: Asked | None = None) -> Answered:
    """Translate a whole reply of `source` for a client of `target`."""
    rendered = translate_response(encode(body), source, target, asked.context if asked is not None else Context())
    return Answered(json.loads(rendered.body), rendered.losses, rendered.body)


def flow(source: str, target: str, frames: Iterable[Any], asked: Asked | None = None) -> Answered:
    """Translate a stream of `source`, given as its frames, for a client of `target`."""
    return flow_bytes(source, target, stream(source, frames), asked)


def flow_bytes(source: str, target: str, raw: bytes, asked: Asked | None = None, *, size: int = 0) -> Answered:
    """Translate a stream of `source`, given as bytes, in pieces of `size`."""
    translator = StreamTranslator(source, target, asked.context if asked is not None else Context())
    step = size or max(len(raw), 1)
    events = b"".join(translator.feed(raw[start : start + step]) for start in range(0, len(raw), step))
    events += translator.close()
    return Answered(frames_of(events), translator.losses, events)


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def stream(dialect: str, frames: Iterable[Any]) -> bytes:
    """Write frames as the server-sent events of `dialect`."""
    named = dialect in {"messages", "responses"}
    return b"".join(_event(frame, named=named) for frame in frames)


def _event(frame: Any, *, named: bool) -> bytes:
    if frame == DONE:
        return b"data: [DONE]\n\n"
    head = f"event: {frame['type']}\n".encode() if named else b""
    return head + b"data: " + encode(frame) + b"\n\n"


def frames_of(raw: bytes) -> list[Any]:
    """Read server-sent events back into frames."""
    lines = [line.removeprefix("data:").strip() for line in raw.decode().splitlines() if line.startswith("data:")]
    return [line if line == DONE else json.loads(line) for line in lines]


def loss_pointers(result: Asked | Answered, kind: str = "") -> set[str]:
    """Return the pointers of the losses."""
    return {loss.where for loss in result.losses if not kind or loss.kind == kind}
