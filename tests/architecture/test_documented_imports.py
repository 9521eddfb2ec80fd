"""Names that README and docs of an earlier version import: programs that use them go on working."""

import importlib
import importlib.util

import pytest

DOCUMENTED = {
    "dragoman": "Call Context Data Message Problem Request StreamTranslator Text Tool ToolCall ToolChoice ToolResult"
    " check_arguments check_definition choice_from choice_to messages_from messages_to read_chunks tools_from tools_to"
    " translate_error translate_request translate_response",
    "dragoman.agent": "Agent ApprovalAsked Approvals Artifacts CallEnded Carrier Compaction Limits Recorder RunEnded"
    " TurnEnded values",
    "dragoman.config": "load",
    "dragoman.core.response": "Finish Response Usage",
    "dragoman.core.stream": "collect replay",
    "dragoman.dialects.record": "Call",
    "dragoman.interpreter.translate": "translate_request",
    "dragoman.mcp.client": "open_servers",
    "dragoman.mcp.settings": "ToolServer",
    "dragoman.simulator": "Answer Call Received Unmet in_thread read_fault read_script running",
    "dragoman.simulator.pytest_plugin": "dragoman_simulator",
    "dragoman.tools": "Executor Handler Registry ToolFailure invocation progress_to reporter tool",
    "dragoman.tools.web": "Settings web_fetch",
}


def is_importable(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("module", DOCUMENTED)
def test_documented_names_are_importable(module):
    assert not [name for name in DOCUMENTED[module].split() if not is_importable(module, name)]
