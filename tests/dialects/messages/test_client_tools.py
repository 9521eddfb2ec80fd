"""Anthropic's tools that the client runs, against the types of the official SDK."""

import importlib
import json
import pkgutil
import typing

import pytest
import typing_extensions

from dragoman.core.request import NativeTool
from dragoman.dialects.messages.client_tools import declare_client_tool
from dragoman.dialects.messages.request import read_tools

SIZE = {"display_width_px": 1280, "display_height_px": 800}
RUN_BY_CLIENT = ("bash_2", "text_editor_2", "memory_2", "computer_2", "computer_toolset_2", "browser_toolset_2")


def declare(**declaration):
    found = declare_client_tool(NativeTool(dialect="messages", where="/tools/0", raw=json.dumps(declaration).encode()))
    return {(tool.namespace, tool.name): tool for tool in found}


def schema_of(tool):
    return json.loads(tool.parameters)


def sdk_declarations():
    """The type and the name of each declaration in Anthropic's SDK that the client runs; a toolset has no name."""
    from anthropic import types
    from anthropic.types import beta

    found = {}
    for package in (types, beta):
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.endswith("_param"):
                continue
            for declared in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
                hints = getattr(declared, "__annotations__", {})
                kind = (
                    literal_of(declared, "type") if typing_extensions.is_typeddict(declared) and "type" in hints else ""
                )
                if kind.startswith(RUN_BY_CLIENT):
                    found[kind] = literal_of(declared, "name") if "name" in hints else ""
    return found


def literal_of(declared, member):
    hint = typing_extensions.get_type_hints(declared)[member]
    values = typing.get_args(hint)
    return values[0] if typing.get_origin(hint) is typing.Literal else ""


def test_each_declaration_of_the_sdk_becomes_functions_of_the_documented_name():
    declarations = sdk_declarations()
    assert len(declarations) == 12
    for kind, name in declarations.items():
        named = {"name": name} if name else {}
        tools = declare(type=kind, **named, **(SIZE if name == "computer" else {}))
        assert tools, kind
        if name:
            assert [*tools] == [("", name)]
        assert all(schema_of(tool)["type"] == "object" and tool.description for tool in tools.values())


def inputs_of(prefix, suffix):
    """The SDK's types of inputs, by the name between a prefix and a suffix of the module."""
    from anthropic.types import beta

    for module in pkgutil.iter_modules(beta.__path__):
        if module.name.startswith(prefix) and module.name.endswith(suffix):
            name = module.name.removeprefix(prefix).removesuffix(suffix)
            stem = "".join(word.capitalize() for word in module.name.split("_"))
            declared = vars(importlib.import_module(f"{beta.__name__}.{module.name}")).get(stem)
            if name not in ("member", "command") and declared is not None:
                yield name, declared


def test_the_members_of_the_computer_toolset_have_the_parameters_of_the_sdk():
    tools = declare(type="computer_toolset_20260801")
    known = dict(inputs_of("beta_computer_", "_input"))
    assert len(known) == 17
    assert {name for _, name in tools} == known.keys()
    for name, declared in known.items():
        schema = schema_of(tools["computer", name])
        fields = declared.model_fields
        assert schema["properties"].keys() == fields.keys(), name
        assert set(schema.get("required", ())) == {field for field, one in fields.items() if one.is_required()}, name


def test_the_members_of_the_browser_toolset_have_the_parameters_of_the_sdk():
    known = dict(inputs_of("beta_browser_", "_input"))
    assert len(known) == 31
    tools = declare(type="browser_toolset_20260801", configs={name: {"enabled": True} for name in known})
    assert {name for _, name in tools} == known.keys()
    for name, declared in known.items():
        expected = typed_schema(declared.model_json_schema(by_alias=True))
        schema = schema_of(tools["browser", name])
        assert typed_schema(schema) == expected, name


def typed_schema(schema, definitions=None):
    """The names, types and required members of a schema, without descriptions and null."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        found = [typed_schema(one, definitions) for one in schema["anyOf"] if one.get("type") != "null"]
        return found[0] if len(found) == 1 else found
    if schema["type"] == "array":
        return [typed_schema(schema["items"], definitions)]
    if schema["type"] == "object":
        members = {name: typed_schema(one, definitions) for name, one in schema["properties"].items()}
        return members, sorted(schema.get("required", ()))
    return schema["type"], schema.get("enum", [schema["const"]] if "const" in schema else None)


def test_members_of_the_browser_toolset_that_are_off_in_the_sdk_are_declared_only_if_enabled():
    from anthropic.lib.tools._toolsets._registry import BROWSER_DEFAULT_DISABLED_MEMBERS as OFF

    members = {name for _, name in declare(type="browser_toolset_20260801")}
    assert len(members) == 31 - len(OFF) == 27
    assert not members & OFF
    configs = {"javascript_exec": {"enabled": True}, "read_console": {"defer_loading": False}, "find": None}
    members = {name for _, name in declare(type="browser_toolset_20260801", configs=configs)}
    assert ("javascript_exec" in members, "read_console" in members, "find" in members) == (True, False, True)


def test_the_memory_tool_has_the_commands_and_parameters_of_the_sdk():
    (memory,) = declare(type="memory_20250818", name="memory").values()
    properties = schema_of(memory)["properties"]
    known = dict(inputs_of("beta_memory_tool_20250818_", "_command"))
    assert len(known) == 6
    assert set(properties["command"]["enum"]) == known.keys()
    assert properties.keys() == {field for one in known.values() for field in one.model_fields}


@pytest.mark.parametrize(
    ("kind", "settings", "actions"),
    [
        ("computer_20241022", {}, 10),
        ("computer_20250124", {}, 16),
        ("computer_20251124", {}, 16),
        ("computer_20251124", {"enable_zoom": True}, 17),
    ],
)
def test_each_version_of_the_computer_has_its_own_actions(kind, settings, actions):
    (computer,) = declare(type=kind, name="computer", **SIZE, **settings).values()
    assert len(schema_of(computer)["properties"]["action"]["enum"]) == actions
    assert ("region" in schema_of(computer)["properties"]) == bool(settings)
    assert "1280 x 800" in computer.description
    assert computer.extras is None


@pytest.mark.parametrize(
    ("kind", "name", "undoes"),
    [
        ("text_editor_20241022", "str_replace_editor", True),
        ("text_editor_20250124", "str_replace_editor", True),
        ("text_editor_20250429", "str_replace_based_edit_tool", False),
        ("text_editor_20250728", "str_replace_based_edit_tool", False),
    ],
)
def test_only_older_editors_undo(kind, name, undoes):
    (editor,) = declare(type=kind, name=name).values()
    assert ("undo_edit" in schema_of(editor)["properties"]["command"]["enum"]) is undoes


def test_a_limit_of_the_editor_and_a_display_are_described():
    (editor,) = declare(type="text_editor_20250728", name="str_replace_based_edit_tool", max_characters=5000).values()
    assert "at most 5000 characters" in editor.description
    (computer,) = declare(type="computer_20250124", name="computer", **SIZE, display_number=2).values()
    assert "display 2" in computer.description


def test_disabled_members_are_not_declared_and_other_settings_stay_fields_of_the_first():
    configs = {"key": {"enabled": False}, "zoom": {"enabled": True, "defer_loading": True}}
    tools = declare(type="computer_toolset_20260801", configs=configs, cache_control={"type": "ephemeral"})
    assert ("computer", "key") not in tools
    first, *others = tools.values()
    assert first.extras.fields == {"/configs/zoom/defer_loading": b"true"}
    assert first.cache == ""
    assert {(tool.extras, tool.cache, tool.namespace_description) for tool in others} == {(None, None, "")}
    assert first.namespace_description


def test_a_version_without_documented_parameters_is_no_function():
    assert declare(type="bash_20990101", name="bash") == {}
    assert declare(type="web_search_20250305", name="web_search") == {}


def test_a_declaration_lists_the_names_of_its_calls():
    raw = json.dumps(
        [
            {"type": "bash_20250124", "name": "bash"},
            {"type": "computer_toolset_20260801", "configs": {"key": {"enabled": False}}},
            {"type": "web_search_20250305", "name": "web_search"},
        ]
    ).encode()
    bash, computer, search = read_tools(raw, "/tools")
    assert bash.calls == ("bash",)
    assert "computer__left_click" in computer.calls
    assert "computer__key" not in computer.calls
    assert search.calls == ()
