"""The vendors' Node SDKs over loopback: each script in `node/` runs an SDK's tool flows and prints what they came to.

The SDKs are installed by their own lock into pytest's cache folder, once for each lock.
"""

import functools
import json
import shutil
from pathlib import Path

import pytest

from npm import assert_no_registry_is_named, install, nodejs

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parent / "node"


def forms(*names):
    return [f"{name} {form}" for name in names for form in ("whole", "streamed")]


def on_both(platforms, names):
    return [f"{platform} {name}" for platform in platforms for name in names]


# By script: the flows that ask for the weather in two cities at once, and those that go on to ask for a third.
ANSWERED = {
    "openai": [
        *forms("chat", "chat runner", "responses", "responses runner"),
        "responses not stored",
        "responses runner eager",
    ],
    "anthropic": on_both(
        ("direct", "vertex"),
        ["whole", "streamed", *forms("thinking", "runner"), "runner thinking"],
    ),
    "genai": on_both(("studio", "vertex"), forms("new", "new automatic", "old", "old automatic")),
    "agents": forms("chat", "chat handoff", "responses", "responses handoff"),
}
WENT_ON = {
    "genai": forms("studio chat", "vertex chat"),
    "agents": forms("chat conversation", "responses conversation"),
}
PARSED = {
    "openai": ["chat parsed", "responses parsed"],
    "anthropic": ["direct parsed", "vertex parsed"],
    "genai": ["studio parsed", "vertex parsed"],
    "agents": ["chat parsed", "responses parsed"],
}
REFUSED = {
    ("openai", "chat refused"): ("BadRequestError", "chat.messages-empty"),
    ("openai", "responses refused"): ("BadRequestError", "responses.unknown-field"),
    ("openai", "responses refused with what was parsed"): ("BadRequestError", "responses.unknown-field"),
    ("anthropic", "direct refused"): ("BadRequestError", "messages.messages-present"),
    ("anthropic", "vertex refused"): ("BadRequestError", "messages.messages-present"),
    ("genai", "studio refused"): ("ApiError", "gemini.ranges"),
    ("genai", "vertex refused"): ("ApiError", "gemini.ranges"),
    ("agents", "chat refused"): ("BadRequestError", "chat.bounds"),
    ("agents", "responses refused"): ("BadRequestError", "responses.bounds"),
}


def by_script(flows):
    return [(script, flow) for script, names in flows.items() for flow in names]


@pytest.fixture(scope="session")
def sdks(request, tmp_path_factory):
    """A folder from which scripts see the SDKs."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(install(SOURCES, request.config.cache.mkdir("node-sdks")) / "node_modules")
    for script in SOURCES.glob("*.mjs"):
        shutil.copy(script, folder)
    return folder


@pytest.fixture(scope="session")
def run_flow(sdks, simulator):
    """What the flows of a script came to; a script is run once."""

    @functools.cache
    def run(script):
        command = [f"{script}.mjs", simulator.base_url]
        options = {"cwd": sdks, "capture_output": True, "text": True, "timeout": 60}
        done = nodejs.node(command, return_completed_process=True, **options)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    def outcome(script, flow):
        found = run(script)[flow]
        assert "error" not in found, found["error"]
        return found

    outcome.flows = run
    return outcome


def assert_weather_in(found, cities):
    assert found["cities"] == cities
    assert all(f"18 degrees and cloudy in {city}" in found["text"] for city in cities)


@pytest.mark.parametrize(("script", "flow"), by_script(ANSWERED))
def test_parallel_calls_are_answered(run_flow, script, flow):
    assert_weather_in(run_flow(script, flow), ["Paris", "Tokyo"])


@pytest.mark.parametrize(("script", "flow"), by_script(WENT_ON))
def test_a_conversation_continues_after_calls(run_flow, script, flow):
    assert_weather_in(run_flow(script, flow), ["Paris", "Tokyo", "Rome"])


@pytest.mark.parametrize(("script", "flow"), by_script(PARSED))
def test_an_answer_is_parsed_by_its_schema(run_flow, script, flow):
    assert run_flow(script, flow) == {"name": "Ann", "age": 31}


@pytest.mark.parametrize(("script", "flow"), REFUSED)
def test_what_the_vendor_refuses_is_the_sdks_own_error(run_flow, script, flow):
    name, rule = REFUSED[script, flow]
    found = run_flow(script, flow)
    assert (found["class"], found["status"]) == (name, 400)
    assert f"[rule: {rule}]" in found["message"]


@pytest.mark.parametrize("script", ANSWERED)
def test_every_flow_of_a_script_is_looked_at(run_flow, script):
    known = [*ANSWERED[script], *WENT_ON.get(script, []), *PARSED[script]]
    assert set(run_flow.flows(script)) == {*known, *(flow for name, flow in REFUSED if name == script)}


def test_the_lock_names_no_registry():
    assert_no_registry_is_named(SOURCES)
