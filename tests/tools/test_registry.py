"""Tools by name."""

import pytest

from dragoman.core.request import Tool
from dragoman.tools import Handler, ToolDefinitionError, tool
from dragoman.tools.registry import Registry
from tools.tool_calls import call, handler


def do_nothing(arguments: object) -> None: ...


def build_handler(name: str) -> Handler:
    return handler(do_nothing, name)


def test_what_is_registered_can_be_found_listed_and_taken_out():
    registry = Registry(build_handler("read"), build_handler("write"))
    assert registry.has("read")
    assert "write" in registry
    assert not registry.has("erase")
    assert registry.names == ("read", "write")
    assert [definition.name for definition in registry.definitions] == ["read", "write"]
    assert registry.unregister("read").name == "read"
    assert not registry.has("read")
    assert [each.name for each in registry] == ["write"]
    with pytest.raises(KeyError, match="no tool is named 'read'"):
        registry.unregister("read")


def test_register_decorates_a_function():
    registry = Registry()

    @registry.register
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    assert registry.get("add") is add
    assert add.definition.description == "Add two numbers."


def test_a_second_tool_of_one_name_is_refused_and_the_first_stays():
    first = build_handler("read")
    registry = Registry(first)
    with pytest.raises(ToolDefinitionError, match="a tool named 'read' is already registered"):
        registry.register(build_handler("read"))
    assert registry.get("read") is first


def test_a_namespace_distinguishes_tools_of_the_same_name():
    registry = Registry(build_handler("read"))
    assert registry.register(build_handler("read"), namespace="files").name == "files__read"
    registry.register(build_handler("write"), namespace="files")
    assert registry.names == ("read", "files__read", "files__write")
    assert registry.definitions[1].name == "files__read"
    assert [each.name for each in registry.unregister_namespace("files")] == ["files__read", "files__write"]
    assert registry.names == ("read",)


def test_a_namespaced_function_still_converts_its_arguments():
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    assert Registry().register(add, namespace="sums").name == "sums__add"


def test_a_call_that_names_its_namespace_apart_is_found():
    registry = Registry()
    registry.register(build_handler("read"), namespace="files")
    found = registry.find(call("read", namespace="files"))
    assert found is not None
    assert found.name == "files__read"
    assert registry.find(call("read")) is None
    assert registry.find(call("read", namespace="mail")) is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("get_wether", "get_weather"),
        ("GET_WEATHER", "get_weather"),
        ("read_file", "files__read_file"),
        ("files__readfile", "files__read_file"),
        ("other__read_file", "files__read_file"),
    ],
)
def test_the_nearest_name_is_found_by_letters_and_without_its_namespace(asked, expected):
    registry = Registry(build_handler("get_weather"), build_handler("send_mail"))
    registry.register(build_handler("read_file"), namespace="files")
    assert registry.nearest(asked)[0] == expected


def test_nothing_is_near_a_name_that_is_like_no_other():
    assert Registry(build_handler("get_weather")).nearest("xyzzy") == ()
    assert Registry(build_handler("get_weather")).nearest("") == ()
    assert Registry(build_handler("get_weather")).nearest("x" * 1_000_000) == ()


def test_the_repr_of_a_registry_lists_its_tools():
    assert repr(Registry()) == "<Registry of 0 tools>"
    assert repr(Registry(build_handler("read"))) == "<Registry of 1 tool: read>"
    assert repr(Registry(build_handler("read"), build_handler("write"))) == "<Registry of 2 tools: read, write>"


@pytest.mark.parametrize("name", ["", "two words", "ä", "x" * 129, "new\nline"])
def test_a_name_that_no_model_accepts_is_rejected(name):
    with pytest.raises(ToolDefinitionError, match="is not a valid tool name"):
        Registry(build_handler(name))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"type":"string"}', 'must have "type": "object"'),
        (b'{"type":"object","properties":{"a":{"type":"strin"}}}', "cannot be used"),
        (b'{"type":"object","$ref":"http://127.0.0.1:1/schema"}', "are not fetched"),
        (b'{"type":"object","$ref":"file:///etc/passwd"}', "are not fetched"),
        (b'{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}', "points to nothing"),
        (b'{"type":"object","properties":{"a":{"$ref":"#none"}}}', "points to nothing"),
        (
            b'{"type":"object","properties":{"a":{"$ref":"#b"}},"anyOf":[{"$anchor":"b"},{"$anchor":"b"}]}',
            "points to nothing",
        ),
        (b'{"type":"object","description":"' + b"x" * (256 << 10) + b'"}', "larger than"),
        (b'{"type":"object","not":' + b'{"not":' * 100 + b"{}" + b"}" * 101, "nested deeper"),
        (b'{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}', "cannot be used"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused_with_the_reason(schema, words):
    with pytest.raises(ToolDefinitionError) as refused:
        Registry(handler(do_nothing, "odd", schema))
    assert str(refused.value).startswith("tool 'odd': ")
    assert words in str(refused.value)


def test_googles_own_form_of_schemas_is_refused():
    definition = Tool(name="odd", parameters=b'{"type":"OBJECT"}', openapi=True)
    with pytest.raises(ToolDefinitionError, match="OpenAPI"):
        Registry(Handler(definition=definition, run=do_nothing))


@pytest.mark.parametrize("flags", [{"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"max_output": -1}])
def test_limits_that_make_no_sense_are_refused(flags):
    with pytest.raises(ToolDefinitionError):
        handler(do_nothing, **flags)


def test_a_call_with_a_namespace_never_reaches_a_tool_outside_it():
    registry = Registry(build_handler("read"))
    registry.register(build_handler("read"), namespace="files")
    found = registry.find(call("read", namespace="files"))
    assert found is not None
    assert found.name == "files__read"
    assert registry.find(call("read", namespace="mail")) is None


def test_definitions_of_a_dialect_with_namespaces_are_distinguished_and_unchanged():
    tools = [
        Handler(definition=Tool(name="read", namespace=namespace), run=do_nothing)
        for namespace in ("", "files", "mail")
    ]
    registry = Registry(*tools)
    assert registry.names == ("read", "files__read", "mail__read")
    assert registry.definitions == tuple(each.definition for each in tools)
    assert registry.find(call("read", namespace="mail")) is tools[2]


def test_tools_are_exchanged_all_or_none():
    registry = Registry(handler(len, "a"), handler(len, "b"), handler(len, "c"))
    registry.exchange(["b", "nobody"], [handler(len, "d"), handler(len, "b")])
    assert registry.names == ("a", "c", "d", "b")
    with pytest.raises(ToolDefinitionError, match="'c' is already registered"):
        registry.exchange(["a"], [handler(len, "e"), handler(len, "c")])
    with pytest.raises(ToolDefinitionError):
        registry.exchange(["a"], [handler(len, "e"), handler(len, "e")])
    assert registry.names == ("a", "c", "d", "b")


def test_a_selection_follows_the_registry_it_is_chosen_from():
    whole = Registry(tool(name="a")(lambda: ""), tool(name="b")(lambda: ""))
    asked = []

    def chosen():
        asked.append(1)
        return [name for name in ("c", "a", "nowhere") if name != "b"]

    some = whole.select(chosen)
    assert (some.names, some.has("b"), len(some)) == (("a",), False, 1)
    whole.register(tool(name="c")(lambda: ""))
    assert some.names == ("c", "a")
    assert len(asked) == 2
    whole.unregister("a")
    assert [handler.name for handler in some] == ["c"]
    with pytest.raises(TypeError, match="change the source registry"):
        some.register(tool(name="d")(lambda: ""))
