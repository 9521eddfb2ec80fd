"""A dialect is named in its folder, by upstreams that speak it, and where a feature is about one vendor's API."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from architecture.tree import PACKAGE, ROOT, modules, parse
from dragoman.dialects import FORMS, NAMES
from dragoman.dialects.registry import DIALECTS

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
    "interpreter/job.py": {"messages": "the core field, not the dialect"},
    "interpreter/core_request.py": {"messages": "the core field, not the dialect"},
}
"""The files outside that may have a dialect's name as a string, and why."""
VENDOR_ELSEWHERE = {
    "interpreter/turns.py": {"google": "the issuer of the documented placeholder for the signature of a call"},
    "server/auth.py": {"x-goog-api-key": "a client may send its key in the same ways on every path"},
    "server/endpoints/code_assist.py": {"gemini-3-flash-preview": "Gemini CLI searches with this model or not at all"},
    "cli/intercept/replay.py": {"x-goog-api-key": "the key of an intercepted client of Google's API"},
}
"""The files outside that may have another word of a dialect's tables as a string, and why."""
FILES = {
    "__init__",
    "compat",
    "decoder",
    "decoder_state",
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
_SEARCHES = "a web search has blocks of its own, which few conversations have"
_TOOL_SEARCH = "the blocks of a search for deferred tools, which only two vendors run"
_REMOTE = "the API runs tools of MCP servers"
MORE_FILES = {
    "chat": {
        "reasoning_details": "OpenRouter's list of reasoning, which no other API has",
        "thinking_forms": "those servers take thinking in many forms, which few requests have",
        "searches": "a web search is a member of the request, which few requests have",
        "servers": "many vendors and programs implement this API, each with deviations of its own",
        "wire_reply": "replies of many compatible servers: `response` and `decoder` read them, and no request does",
    },
    "gemini": {
        "code_assist": "the envelope of Code Assist",
        "finish": "reasons and usage, which the decoder reads without the rest of `response`",
        "grounding": "citations are metadata that count bytes",
        "grounding_writer": "those of other dialects are written as such metadata, which few replies need",
    },
    "messages": {
        "automatic_marks": "only Claude caches nothing without marks, which others do by themselves",
        "client_tools": "tools whose parameters the vendor's models know, for the models of other vendors",
        "remote": _REMOTE,
        "browser_toolset": "the tools of one declaration, with their parameters, which few requests need",
        "searches": _SEARCHES,
        "tool_search": _TOOL_SEARCH,
        "text_blocks": "search results, documents made of blocks and a browser's state, which no other API has",
    },
    "responses": {
        "client_items": "calls and results of such tools, which are items of their own",
        "client_tools": "tools whose parameters the vendor's models know, for the models of other vendors",
        "items": "a conversation is a list of items, not of messages with parts",
        "output": "so is a reply",
        "remote": _REMOTE,
        "searches": _SEARCHES,
        "tool_search": _TOOL_SEARCH,
    },
}
"""The files that only some dialects have, and why."""


TOY = ROOT / "tests" / "dialects" / "toy"
"""The dialect of another package; its streams have no state, and its kind of upstream is in the same folder."""


def strings_elsewhere(homes: tuple[str, ...] = HOMES) -> Iterator[tuple[str, set[str]]]:
    """Each file outside the homes of dialects, and its strings without the docstrings."""
    for path in modules("src/dragoman"):
        inside = path.relative_to(PACKAGE)
        if inside.parts[0] not in homes:
            tree = parse(path)
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
            yield inside.as_posix(), {node.value for node in strings if isinstance(node.value, str)}


def test_dialects_are_named_only_where_there_is_a_reason():
    found = {file: names for file, strings in strings_elsewhere() if (names := strings.intersection(NAMES))}
    assert found == {file: set(reasons) for file, reasons in ELSEWHERE.items()}


def test_vendors_envelopes_fields_headers_and_models_are_named_only_in_tables_of_their_dialects():
    words = {word for dialect in DIALECTS.values() for word in (dialect.issuer, *dialect.envelopes)}
    words |= {pointer for dialect in DIALECTS.values() for pointer in dialect.shared_fields}
    rows = [traits for dialect in DIALECTS.values() for _, traits in dialect.traits]
    apis = [dialect.api for dialect in DIALECTS.values()]
    words |= {name for api in apis for name in (*api.own_headers, *api.forwarded_headers, *api.account_headers)}
    words |= {pointer for traits in rows for pointer, _ in (*traits.stream_fields, *traits.unkept, *traits.native_mix)}
    assert words >= {"openai", "anthropic", "google", "code_assist", "/service_tier", "/stream_options"}
    assert words >= {"x-goog-api-key", "openai-beta", "openai-project"}
    model = re.compile("|".join(rf"\W*(?:{dialect.api.model_names})" for dialect in DIALECTS.values()))
    found = {}
    for file, strings in strings_elsewhere():
        if named := {string for string in strings if string in words or model.match(string)}:
            found[file] = named
    assert found == {file: set(reasons) for file, reasons in VENDOR_ELSEWHERE.items()}


def test_servers_of_an_api_are_named_only_in_its_table_of_servers():
    servers = {name for dialect in DIALECTS.values() for name in dialect.servers} - {"openai", "compatible"}
    assert servers >= {"deepseek", "qwen", "kimi", "glm", "vllm", "llama.cpp", "openrouter"}
    found = {file: names for file, strings in strings_elsewhere(("simulator",)) if (names := strings & servers)}
    # The list of reasoning has the name of the vendor that defined it.
    assert found == {"dialects/chat/servers.py": servers, "dialects/chat/reasoning_details.py": {"openrouter"}}


def test_the_command_offers_the_envelopes_that_dialects_have():
    assert {(name, form) for name, form in FORMS.values()} == {
        (name, form) for name, dialect in DIALECTS.items() for form in dialect.envelopes
    }


def test_only_one_folder_and_its_registry_know_a_dialect():
    folders = {path.parent.name for path in (PACKAGE / "dialects").glob("*/__init__.py")}
    assert folders == set(NAMES)


def files_in(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")}


def test_every_dialect_has_the_same_files():
    found = {name: files_in(PACKAGE / "dialects" / name) for name in NAMES}
    assert found == {name: FILES | MORE_FILES.get(name, {}).keys() for name in NAMES}
    assert files_in(TOY) == FILES - {"decoder_state"} | {"upstream"}
