"""Requests to accept and answers to render, for the tests of the simulated Gemini API."""

import json
import random
import re
import warnings

import httpx2

import shelf
from dragoman.simulator.apis.api import AcceptedRequest, Chunking, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerSource, AnswerUsage, Call, TokenSigner
from dragoman.simulator.apis.gemini import API, unwrap_request
from dragoman.simulator.apis.rule import CheckContext, Violation

with warnings.catch_warnings():
    # The SDK's own source has an escape sequence that Python warns about, and warnings are errors in these tests.
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import errors, types

__all__ = ["errors", "genai", "types"]

NEW = "gemini-3.8-flash"
OLD = "gemini-2.5-flash"
SIGNER = TokenSigner()
WEATHER = {
    "name": "get_weather",
    "description": "Current weather",
    "parametersJsonSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
USAGE = AnswerUsage(input=61, output=58, cached=20, thought=40)
PARIS = Call(id="0" * 24, name="get_weather", arguments={"city": "Paris", "days": 3})
TOKYO = Call(id="1" * 24, name="get_weather", arguments={"city": "Tōkyō", "at": {"hours": [1, 2.5], "none": []}})
TEXT = "It is 18 °C in Paris, says the simulator: “cloudy”."
ANSWERS = {
    "text": Answer(text=TEXT, usage=USAGE),
    "thought": Answer(text=TEXT, thought="**Planning**\nLook at the sky.", usage=USAGE),
    "call": Answer(calls=(PARIS,), end="calls", thought="Look up Paris.", usage=USAGE),
    "calls": Answer(text="Both.", calls=(PARIS, TOKYO), end="calls", usage=USAGE),
    "search": Answer(
        text=f"I found: {TEXT}",
        query="weather in Paris",
        sources=(
            AnswerSource(url="https://example.com/a", title="Weather", quote="18 °C in Paris"),
            AnswerSource(url="https://example.com/b", title="Sky", quote="“cloudy”"),
            AnswerSource(url="https://example.com/c", title="Other", quote="not in the answer"),
        ),
        usage=USAGE,
    ),
    "length": Answer(text="It is 18", end="length", usage=USAGE),
    "nothing": Answer(end="length", usage=AnswerUsage(input=9, output=5, thought=5)),
    "filtered": Answer(text="It is", end="filtered", usage=USAGE),
    "blocked": Answer(end="filtered", usage=USAGE),
    "malformed": Answer(end="malformed_call", usage=AnswerUsage(input=61, output=0)),
}


def situation(model=NEW, **members):
    """The context of an ordinary request."""
    return CheckContext(model=model, **members)


def judge(body, given=None, signer=SIGNER):
    """Return the accepted request or the violation."""
    return API.accept(json.dumps(body).encode(), given or situation(), signer)


def require_accepted(body, given=None) -> AcceptedRequest:
    """Return the accepted request; fail if it is rejected."""
    found = judge(body, given)
    assert isinstance(found, AcceptedRequest), found
    return found


def require_rejected(body, given=None) -> Violation:
    """Return the violation; fail if the request is accepted."""
    found = judge(body, given)
    assert isinstance(found, Violation), "it was accepted"
    return found


def user(*parts):
    """Return a user content; a string becomes a text part."""
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts):
    """Return a model content."""
    return {**user(*parts), "role": "model"}


def call(name="get_weather", signature=None, **members):
    """Return a part with a function call."""
    part = {"functionCall": {"name": name, "args": {"city": "Paris"}, **members}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def result(name="get_weather", **members):
    """Return a part with a function response."""
    return {"functionResponse": {"name": name, "response": {"output": "18C"}, **members}}


def build_request(*contents, **members):
    """Return a request with one function."""
    return {"contents": list(contents) or [user("Hi.")], "tools": [{"functionDeclarations": [WEATHER]}], **members}


def occasion(**pace) -> ReplyMeta:
    """Return the metadata of a reply."""
    return ReplyMeta(id="a1b2c3d4e5f6a1b2c3d4e5f6", created=1_790_000_000, signer=SIGNER, chunking=Chunking(**pace))


def load_recordings(exchange) -> CheckContext:
    """Return the context of a recorded request."""
    return CheckContext(
        # If a recording lacks the model, its reply lacks it too.
        model=exchange["model"] or OLD,
        recorded=True,
        vertex="aiplatform" in exchange["host"],
        counting=exchange["op"] == "count_tokens",
    )


def recordings(status=200):
    """Return recorded exchanges with this status whose request is known."""
    return [one for one in shelf.exchanges("gemini") if one["status"] == status and one["request"]]


def unpack(exchange):
    """Return the body and context of a recorded Code Assist request."""
    opened = unwrap_request(json.dumps(exchange["request"]).encode())
    assert not isinstance(opened, Violation), opened
    return opened[1], CheckContext(model=opened[0], recorded=True, vertex=True)


def captures():
    """Yield requests of real clients: their name, body, and context."""
    for path in sorted((shelf.ROOT / "clients" / "captures").rglob("*.json")):
        found = re.search(r"(?:models-(?P<model>.+)|v1internal)-(?P<verb>\w+)\.json", path.name)
        if found is None or found["verb"] not in {"generateContent", "streamGenerateContent", "countTokens"}:
            continue
        body = json.dumps(json.loads(path.read_text(encoding="utf-8"))["body"]).encode()
        counting = found["verb"] == "countTokens"
        if found["model"] is None:
            yield path.name, *unpack({"request": json.loads(body)})
        else:
            name = re.sub(r"(\d)-(\d)", r"\1.\2", found["model"])
            yield path.name, body, CheckContext(model=name, recorded=True, counting=counting)


def shuffle(items):
    """Return the items in another, reproducible order."""
    items = list(items)
    random.Random(7).shuffle(items)  # noqa: S311  reproducible on purpose
    return items


def client(handle, **options):
    """Return a google-genai client with a mocked transport."""
    transport = httpx2.Client(transport=httpx2.MockTransport(handle))
    return genai.Client(api_key="key", http_options=types.HttpOptions(httpx_client=transport, **options))
