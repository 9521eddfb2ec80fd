"""Importing the package must cost nothing that a translation does not need."""

import subprocess
import sys

HEAVY = {"asyncio", "http", "ssl", "socket", "urllib.request", "jsonschema_rs", "argparse", "unittest"}


def list_loaded(statement: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {statement}; print('\\n'.join(set(sys.modules) - before))"
    captured = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)  # noqa: S603
    return set(captured.stdout.split())


def test_importing_dragoman_loads_only_the_standard_library_and_what_msgspec_loads():
    loaded = list_loaded("import dragoman")
    assert "dragoman" in loaded
    tops = {name.partition(".")[0] for name in loaded - list_loaded("import msgspec")}
    assert tops - set(sys.stdlib_module_names) <= {"dragoman", "msgspec"}


def test_importing_dragoman_loads_nothing_that_talks_to_a_network():
    assert not list_loaded("import dragoman") & HEAVY


def test_the_mcp_server_on_standard_input_loads_neither_the_http_server_nor_the_simulator():
    loaded = list_loaded("import dragoman.server.mcp_stdio, dragoman.mcp.server.server")
    unused = ("dragoman.server.app", "dragoman.server.runner", "dragoman.server.workers", "dragoman.simulator")
    assert not {name for name in loaded if name.startswith(unused)}
