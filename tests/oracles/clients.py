"""The official clients, offline: built once, answered by a transport that holds the bytes to be judged."""

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping

import anthropic
import httpx2
import openai

with warnings.catch_warnings():
    # Python warns of an escape in its source when it compiles it. This module is imported before any that needs it.
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import types as genai_types

_EVENT_STREAM = {"content-type": "text/event-stream"}


@functools.cache
def openai_client(*, strict: bool) -> openai.OpenAI:
    """A client whose types judge; `strict` is the SDK's own switch to validate every field."""
    return openai.OpenAI(api_key="none", max_retries=0, _strict_response_validation=strict)


@functools.cache
def anthropic_client(*, strict: bool) -> anthropic.Anthropic:
    """The same for Anthropic."""
    return anthropic.Anthropic(api_key="none", max_retries=0, _strict_response_validation=strict)


class _CannedServer:
    """Answers every request with its `status`, `headers` and `body`."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = _EVENT_STREAM
        self.body = b""

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(self.status, headers=dict(self.headers), content=self.body, request=request)


_SERVER = _CannedServer()


@functools.cache
def _http() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(_SERVER.answer))


@functools.cache
def _live_openai() -> openai.OpenAI:
    return openai.OpenAI(api_key="none", max_retries=0, http_client=_http())


@functools.cache
def _live_anthropic() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="none", max_retries=0, http_client=_http())


@functools.cache
def _live_genai() -> genai.Client:
    options = genai_types.HttpOptions(httpx_client=_http())
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def _lay(status: int, headers: Mapping[str, str], body: bytes) -> None:
    _SERVER.status, _SERVER.headers, _SERVER.body = status, headers, body


def live_openai(body: bytes, status: int = 200, headers: Mapping[str, str] = _EVENT_STREAM) -> openai.OpenAI:
    """The whole client with its HTTP stack, about to receive `body`."""
    _lay(status, headers, body)
    return _live_openai()


def live_anthropic(body: bytes, status: int = 200, headers: Mapping[str, str] = _EVENT_STREAM) -> anthropic.Anthropic:
    """The same for Anthropic."""
    _lay(status, headers, body)
    return _live_anthropic()


def live_genai(body: bytes, status: int = 200, headers: Mapping[str, str] = _EVENT_STREAM) -> genai.Client:
    """The same for Google."""
    _lay(status, headers, body)
    return _live_genai()


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """SDKs warn of enum values and shapes newer or older than they are; recordings are full of both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
