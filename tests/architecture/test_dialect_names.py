"""A dialect is named in its folder, by upstreams that speak it, and where a feature is about one vendor's API."""

import ast

from architecture.tree import PACKAGE, modules, parse
from dragoman.dialects import NAMES

HOMES = ("dialects", "upstreams", "simulator")
"""A folder for each dialect, a file for each upstream, and the strict simulators of the vendors' APIs."""
ELSEWHERE = {
    "server/endpoints/conversations.py": {"responses": "the Conversations API is a part of the Responses API"},
    "intercept/settings.py": {"gemini": "the clients that are intercepted are Gemini CLI and Google's SDKs"},
    "doctor.py": {"messages": "the test request is written in the dialect that most upstreams do not speak"},
    "cli/chat/commands.py": {"chat": "a saved conversation is in the dialect that most programs read"},
    "cli/chat/__init__.py": {"chat": "the verb `dragoman chat`, not the dialect"},
    "cli/chat/session.py": {"chat": "the verb, in the log"},
    "cli/chat/terminal.py": {"chat": "the verb, as the name of a thread"},
    "cli/job.py": {"messages": "the core field, not the dialect"},
    "interpreter/core_request.py": {"messages": "the core field, not the dialect"},
}
"""The files outside that may have a dialect's name as a string, and why."""
FILES = {
    "__init__",
    "compat",
    "decoder",
    "encoder",
    "errors",
    "fields",
    "parts",
    "renderer",
    "request",
    "response",
    "traits",
    "wire",
}
"""The files that every dialect has."""
_STATE = "what a stream sends in pieces; with it the decoder would have more than 400 lines"
_REMOTE = "the API runs tools of MCP servers"
MORE_FILES = {
    "chat": {
        "decoder_state": _STATE,
        "reasoning_details": "OpenRouter's list of reasoning, which no other API has",
        "wire_reply": "the structs of replies; with them `wire` would have more than 400 lines",
    },
    "gemini": {
        "code_assist": "the envelope of Code Assist",
        "decoder_state": _STATE,
        "finish": "reasons and usage, which the decoder reads without the rest of `response`",
        "grounding": "citations are metadata that count bytes",
    },
    "messages": {
        "remote": _REMOTE,
        "text_blocks": "search results and documents made of blocks; `parts` would have more than 400 lines",
    },
    "responses": {
        "decoder_state": _STATE,
        "items": "a conversation is a list of items, not of messages with parts",
        "output": "so is a reply",
        "remote": _REMOTE,
    },
}
"""The files that only some dialects have, and why."""


def test_dialects_are_named_only_where_there_is_a_reason():
    found = {}
    for path in modules("src/dragoman"):
        inside = path.relative_to(PACKAGE)
        if inside.parts[0] in HOMES:
            continue
        strings = {node.value for node in ast.walk(parse(path)) if isinstance(node, ast.Constant)}
        if names := strings.intersection(NAMES):
            found[inside.as_posix()] = names
    assert found == {file: set(reasons) for file, reasons in ELSEWHERE.items()}


def test_only_one_folder_and_its_registry_know_a_dialect():
    folders = {path.parent.name for path in (PACKAGE / "dialects").glob("*/__init__.py")}
    assert folders == set(NAMES)


def test_every_dialect_has_the_same_files():
    found = {name: {path.stem for path in (PACKAGE / "dialects" / name).glob("*.py")} for name in NAMES}
    assert found == {name: FILES | MORE_FILES[name].keys() for name in NAMES}
