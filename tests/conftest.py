"""What holds for every test."""

import gc
import os
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "dragoman",
    max_examples=int(os.environ.get("DRAGOMAN_EXAMPLES", "60")),
    deadline=None,
    derandomize="DRAGOMAN_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dragoman")

TABLES = {
    "conformance/test_corpus_replies.py": 4,
    "end_to_end/test_faults.py": 6,
    "end_to_end/test_matrix.py": 6,
    "end_to_end/test_server_profiles.py": 4,
    "end_to_end/test_text_calls.py": 3,
    "http/test_connection_limits.py": 2,
    "conformance/test_corpus_schemas.py": 2,
    "laws/test_accepted.py": 2,
    "laws/test_accepted_schemas.py": 3,
    "laws/test_canary.py": 4,
    "laws/test_caches.py": 6,
    "laws/test_pieces.py": 3,
    "laws/test_replies.py": 4,
    "laws/test_requests.py": 2,
    "mcp/client/test_servers_sdk.py": 2,
    "end_to_end/gateway/test_clients.py": 3,
    "end_to_end/gateway/test_token_counts.py": 2,
    "end_to_end/gateway/test_limits.py": 4,
    "end_to_end/gateway/test_strict_turns.py": 3,
    "end_to_end/gateway/test_linked_media.py": 2,
    "end_to_end/gateway/test_responses_sessions.py": 2,
    "simulator/apis/test_chat_rules.py": 4,
    "simulator/apis/chat/test_write_stream.py": 3,
    "simulator/apis/gemini/test_write.py": 5,
    "simulator/apis/test_gemini_rules.py": 4,
    "end_to_end/simulator/test_gemini.py": 2,
    "simulator/apis/messages/test_write.py": 5,
    "simulator/apis/test_messages_rules.py": 4,
    "simulator/apis/responses/test_write.py": 5,
    "simulator/apis/test_responses_rules.py": 3,
    "simulator/test_apis_any_body.py": 3,
    "simulator/test_app_keys.py": 2,
    "tools/web/test_converter_limits.py": 2,
}
"""Long tables of rows that are much alike: the fast tests take one row of so many, always the same; the slow ones all."""


UNTIL = float(os.environ.get("DRAGOMAN_TESTS_UNTIL") or "inf")
"""The time, in seconds since 1970, after which no test starts: CI has a limited time."""
NO_TIME = "not run: no time was left"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip what does not fit into the time."""
    if time.time() > UNTIL:
        pytest.skip(NO_TIME)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector leave what is collected alone: it is a million objects, which all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most rows of long tables to the slow tests."""
    folder = Path(__file__).parent
    shares = {folder / name: share for name, share in TABLES.items()}
    for item in items:
        share = shares.get(item.path, 1)
        if share > 1 and crc32(item.nodeid.encode()) % share:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def state_of_their_own() -> Generator[None]:
    """Use a temporary directory for stored data: a test must not find, or leave, a user's conversations."""
    before = os.environ.get("XDG_STATE_HOME")
    with TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


def pytest_terminal_summary(terminalreporter):
    """Print what tests have measured with `record_property`, and the files with tests that had no time to run."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid}: {name} = {value}")
    late = Counter(one.location[0] for one in terminalreporter.getreports("skipped") if NO_TIME in str(one.longrepr))
    for file, count in sorted(late.items()):
        terminalreporter.write_line(f"not run: {file}: {count}")
