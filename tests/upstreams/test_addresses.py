"""The URLs and headers of each upstream."""

import asyncio

import pytest

from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.upstreams.anthropic import Anthropic
from dragoman.upstreams.gemini import Gemini
from dragoman.upstreams.google_tokens import FixedToken, GoogleAccount
from dragoman.upstreams.openai import OpenAI
from dragoman.upstreams.vertex import VertexAnthropic, VertexGemini, base_url_of

CLAUDE = b'{"model":"claude-opus-5","messages":[]}'


def vertex(kind, location="global", base_url=""):
    return kind("v", base_url, GoogleAccount("p q", FixedToken("t"), location), "test")


def generate(upstream, call: Call, passed=()) -> Outgoing:
    return asyncio.run(upstream.generate(call, passed))


def where(outgoing: Outgoing) -> str:
    return outgoing.origin.url + outgoing.target


@pytest.mark.parametrize(
    ("upstream", "stream", "url"),
    [
        (OpenAI("o", "", "k", "a"), False, "https://api.openai.com/v1/chat/completions"),
        (OpenAI("o", "", "k", "a", responses=True), True, "https://api.openai.com/v1/responses"),
        (OpenAI("o", "http://[::1]:11434/v1/", "", "a"), False, "http://[::1]:11434/v1/chat/completions"),
        (Anthropic("a", "", "k", "a"), True, "https://api.anthropic.com/v1/messages"),
        (Anthropic("a", "http://h/v1", "k", "a"), True, "http://h/v1/messages"),
        (Gemini("g", "", "k", "a"), False, "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"),
        (Gemini("g", "http://h/x/v1/", "k", "a"), True, "http://h/x/v1/models/m:streamGenerateContent?alt=sse"),
        (
            vertex(VertexGemini),
            False,
            "https://aiplatform.googleapis.com/v1beta1/projects/p%20q/locations/global/publishers/google/models/m:generateContent",
        ),
        (
            vertex(VertexAnthropic, "us-east5"),
            True,
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p%20q/locations/us-east5/publishers/anthropic/models/m:streamRawPredict",
        ),
    ],
)
def test_a_model_is_requested_at_its_vendors_url(upstream, stream, url):
    assert where(generate(upstream, Call(b'{"model":"m"}', "m", stream))) == url


def test_a_models_name_is_one_segment_of_a_path():
    outgoing = generate(Gemini("g", "", "k", "a"), Call(b"{}", "models/../../x?y#z"))
    assert outgoing.target == "/v1beta/models/..%2F..%2Fx%3Fy%23z:generateContent"


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "https://aiplatform.googleapis.com"),
        ("us", "https://aiplatform.us.rep.googleapis.com"),
        ("europe-west4", "https://europe-west4-aiplatform.googleapis.com"),
    ],
)
def test_a_location_has_its_server(location, host):
    assert base_url_of(location) == host


def test_claude_on_vertex_has_its_model_in_the_path_and_its_version_in_the_body():
    passed = (("anthropic-version", "2026-10-21"), ("anthropic-beta", "b"))
    outgoing = generate(vertex(VertexAnthropic), Call(CLAUDE, "claude-opus-5"), passed)
    assert outgoing.body == b'{"messages":[],"anthropic_version":"vertex-2023-10-16"}'
    assert ("anthropic-beta", "b") in outgoing.headers
    assert "anthropic-version" not in dict(outgoing.headers)
    assert dict(outgoing.headers)["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("upstream", "header"),
    [
        (OpenAI("o", "", "k", "a"), ("authorization", "Bearer k")),
        (Anthropic("a", "", "k", "a"), ("x-api-key", "k")),
        (Gemini("g", "", "k", "a"), ("x-goog-api-key", "k")),
    ],
)
def test_a_key_is_sent_in_the_vendors_header_with_a_user_agent(upstream, header):
    headers = generate(upstream, Call(b"{}", "m")).headers
    assert header in headers
    assert ("user-agent", "a") in headers
    assert ("content-type", "application/json") in headers


def test_a_local_server_needs_no_key():
    assert "authorization" not in dict(generate(OpenAI("o", "http://127.0.0.1:1", "", "a"), Call(b"{}", "m")).headers)


def test_the_clients_anthropic_version_has_precedence_over_the_default():
    upstream = Anthropic("a", "", "k", "a")
    assert dict(generate(upstream, Call(CLAUDE, "m")).headers)["anthropic-version"] == "2023-06-01"
    asked = generate(upstream, Call(CLAUDE, "m"), (("anthropic-version", "2026-10-21"),))
    assert [value for name, value in asked.headers if name == "anthropic-version"] == ["2026-10-21"]
