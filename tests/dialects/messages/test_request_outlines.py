"""Requests of every form, each read to its last field; and written again as they were."""

import json
from typing import Any

import pytest

from dialects.outline import find_marks, mark, outline
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.request import parse_request
from dragoman.dialects.record import Call
from laws.maximal import REQUESTS


def parse(document: Any, **call: Any) -> Request:
    return parse_request(Call(json.dumps(document).encode(), **call))


def render(request: Request) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="messages")).body)


HOUR = {"type": "ephemeral", "ttl": "1h"}
MARK = {"type": "ephemeral"}
PNG = {"type": "base64", "media_type": "image/png", "data": "AA=="}
BLOCKS: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "system": "s",
    "messages": [
        {"role": "user", "content": "u"},
        {"role": "system", "content": "later"},
        {"role": "system", "content": [{"type": "text", "text": "later"}]},
        {"role": "assistant", "content": []},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "t", "cache_control": HOUR},
                {"type": "text", "text": "t", "citations": []},
                {
                    "type": "text",
                    "text": "t",
                    "citations": [
                        {"type": "web_search_result_location", "url": "https://e.org", "title": "E", "cited_text": "q"},
                        {"type": "char_location", "document_title": "D", "source": "no url"},
                        {"type": "search_result_location", "source": "http://e.org", "title": 7},
                        "odd",
                    ],
                },
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "thinking", "thinking": "t"},
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}, "cache_control": MARK},
                {"type": "tool_use", "id": "c2", "name": "f", "caller": {"type": "direct"}},
                {"type": "server_tool_use", "id": "x"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "o", "cache_control": MARK},
                {"type": "tool_result", "tool_use_id": "c1", "content": "", "is_error": False},
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True},
                {"type": "tool_result", "tool_use_id": "c1", "content": [], "is_error": False},
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "o"},
                        {"type": "image", "source": PNG},
                        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
                        {"type": "search_result"},
                    ],
                },
                {"type": "image", "source": PNG, "cache_control": MARK},
                {"type": "image", "source": {"type": "url", "url": "https://e.org"}},
                {"type": "image", "source": {"type": "file", "file_id": "f"}},
                {"type": "image", "source": {"type": "odd", "a": 1}},
                {"type": "document", "source": {"type": "content", "content": []}, "title": "n", "cache_control": MARK},
                {"type": "document", "source": {**PNG, "media_type": "application/pdf"}, "title": "n"},
                {"type": "document", "source": {**PNG, "media_type": "text/plain"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
            ],
        },
    ],
}
SETTINGS: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": MARK}],
    "messages": [],
    "tools": [
        {"name": "f", "description": "", "input_schema": {"type": "object"}, "strict": False, "cache_control": HOUR},
        {"name": "g", "type": "custom", "description": "d"},
        {
            "name": "h",
            "input_schema": {},
            "input_examples": [1],
            "defer_loading": True,
            "allowed_callers": ["x"],
            "eager_input_streaming": True,
        },
        {"type": "bash_20250124", "name": "bash"},
    ],
    "tool_choice": {"type": "tool", "name": "f"},
    "temperature": 0,
    "top_p": 0.5,
    "top_k": 3,
    "stop_sequences": ["a"],
    "stream": False,
    "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "output_format": {"type": "json_schema", "schema": {"a": 1}},
    "metadata": {"user_id": "u"},
    **{
        name: {"a": 1}
        for name in (
            "cache_control",
            "context_management",
            "container",
            "mcp_servers",
            "service_tier",
            "speed",
            "thread",
            "diagnostics",
            "inference_geo",
            "anthropic_version",
            "anthropic_beta",
        )
    },
}
ODD: dict[str, Any] = {
    "messages": [],
    "system": [],
    "tools": [],
    "stop_sequences": [],
    "metadata": {},
    "tool_choice": {"type": "odd"},
    "thinking": {"type": "odd"},
    "output_config": {"effort": "huge", "format": {"type": "odd"}},
    "output_format": {"type": "json_schema"},
    "vendor": 1,
}
DISABLED: dict[str, Any] = {
    "model": "m",
    "messages": [],
    "stream": True,
    "thinking": {"type": "between_tools", "budget_tokens": 5, "display": "summarized"},
    "output_config": {"effort": "max"},
    "tool_choice": {"type": "auto", "name": "f", "disable_parallel_tool_use": False},
}
DOCUMENTS = {"blocks": BLOCKS, "settings": SETTINGS, "odd": ODD, "disabled": DISABLED, "all": REQUESTS["messages"]}


def test_every_form_of_a_block_is_read_whole():
    assert (
        outline(parse(BLOCKS))
        == """\
Request model='m' sampling=Sampling(max_tokens=5)
  Message where='/system' spelling='string' role='system'
    Text where='/system' text='s'
  Message where='/messages/0' spelling='string' role='user'
    Text where='/messages/0/content' text='u'
  Message where='/messages/1' spelling='string inline' role='system'
    Text where='/messages/1/content' text='later'
  Message where='/messages/2' spelling='blocks inline' role='system'
    Text where='/messages/2/content/0' text='later'
  Message where='/messages/3' spelling='blocks' role='assistant'
  Message where='/messages/4' spelling='blocks' role='assistant'
    Text where='/messages/4/content/0' cache='1h' text='t'
    Text where='/messages/4/content/1' spelling='citations' text='t'
    Text where='/messages/4/content/2' text='t' citations=(Citation(dialect='messages', raw=b'{"type": "web_search_result_location", "url": "https://e.org", "title": "E", "cited_text": "q"}', url='https://e.org', title='E', quote='q'), Citation(dialect='messages', raw=b'{"type": "char_location", "document_title": "D", "source": "no url"}', title='D'), Citation(dialect='messages', raw=b'{"type": "search_result_location", "source": "http://e.org", "title": 7}', url='http://e.org'), Citation(dialect='messages', raw=b'"odd"'))
    Reasoning where='/messages/4/content/3' signature=Signature(issuer='anthropic', value='s') texts=('t')
    Reasoning where='/messages/4/content/4' spelling='unsigned' texts=('t')
    Reasoning where='/messages/4/content/5'
    Reasoning where='/messages/4/content/6' signature=Signature(issuer='anthropic', value='d') redacted=True
    ToolCall where='/messages/4/content/7' cache='' id='c1' name='f' arguments='{"a": 1}'
    ToolCall where='/messages/4/content/8' extras=messages{'/caller': '{"type": "direct"}'} id='c2' name='f' arguments=''
    Opaque where='/messages/4/content/9' dialect='messages' raw=b'{"type": "server_tool_use", "id": "x"}'
  Message where='/messages/5' spelling='blocks' role='user'
    ToolResult where='/messages/5/content/0' spelling='string' cache='' call_id='c1'
      Text where='/messages/5/content/0/content' text='o'
    ToolResult where='/messages/5/content/1' spelling='string is_error' call_id='c1'
      Text where='/messages/5/content/1/content' text=''
    ToolResult where='/messages/5/content/2' call_id='c1' failed=True
    ToolResult where='/messages/5/content/3' spelling='blocks is_error' call_id='c1'
    ToolResult where='/messages/5/content/4' spelling='blocks' call_id='c1'
      Text where='/messages/5/content/4/content/0' text='o'
      Media where='/messages/5/content/4/content/1' spelling='base64' kind='image' media_type='image/png' source=Inline(data='AA==')
      Media where='/messages/5/content/4/content/2' kind='document' media_type='text/plain' source=Plain(text='d')
      Opaque where='/messages/5/content/4/content/3' dialect='messages' raw=b'{"type": "search_result"}'
    Media where='/messages/5/content/5' spelling='base64' cache='' kind='image' media_type='image/png' source=Inline(data='AA==')
    Media where='/messages/5/content/6' kind='image' media_type='' source=Link(url='https://e.org')
    Media where='/messages/5/content/7' kind='image' media_type='' source=Stored(issuer='anthropic', id='f')
    Opaque where='/messages/5/content/8' dialect='messages' raw=b'{"type":"image","source":{"type": "odd", "a": 1}}'
    Opaque where='/messages/5/content/9' dialect='messages' raw=b'{"type":"document","source":{"type":"content","content":[]},"title":"n","cache_control":{"type":"ephemeral"}}'
    Media where='/messages/5/content/10' spelling='base64' kind='document' media_type='application/pdf' source=Inline(data='AA==') name='n'
    Media where='/messages/5/content/11' spelling='base64' kind='document' media_type='text/plain' source=Inline(data='AA==')
    Media where='/messages/5/content/12' kind='document' media_type='text/plain' source=Plain(text='d')
"""
    )


def test_every_setting_is_read_whole():
    assert (
        outline(parse(SETTINGS))
        == """\
Request model='m' tool_choice=ToolChoice(where='/tool_choice', mode='required', names=('f')) sampling=Sampling(temperature=0, top_p=0.5, top_k=3, max_tokens=5, stop=('a')) thinking=Thinking(mode='enabled', effort='low', budget=1024, visible=False) output=OutputFormat(kind='json_schema', schema=b'{}') user='u' extras=messages{'/cache_control': '{"a": 1}', '/context_management': '{"a": 1}', '/container': '{"a": 1}', '/mcp_servers': '{"a": 1}', '/service_tier': '{"a": 1}', '/speed': '{"a": 1}', '/thread': '{"a": 1}', '/diagnostics': '{"a": 1}', '/inference_geo': '{"a": 1}', '/anthropic_version': '{"a": 1}', '/anthropic_beta': '{"a": 1}', '/output_format': '{"type": "json_schema", "schema": {"a": 1}}'} spelling=['metadata', 'output_config', 'stream']
  Message where='/system' spelling='blocks' role='system'
    Text where='/system/0' text='a'
    Text where='/system/1' cache='' text='b'
  Tool where='/tools/0' spelling=' description' name='f' parameters=b'{"type": "object"}' strict=False cache='1h'
  Tool where='/tools/1' spelling='custom bare' name='g' description='d'
  Tool where='/tools/2' extras=messages{'/input_examples': '[1]', '/defer_loading': 'true', '/allowed_callers': '["x"]', '/eager_input_streaming': 'true'} name='h' parameters=b'{}'
  NativeTool where='/tools/3' dialect='messages' raw=b'{"type": "bash_20250124", "name": "bash"}' calls=('bash')
"""
    )
    assert (
        outline(parse(ODD))
        == """\
Request model='' output=OutputFormat(kind='json_schema') extras=messages{'/tool_choice': '{"type": "odd"}', '/output_config/effort': '"huge"', '/thinking': '{"type": "odd"}', '/output_config/format': '{"type": "odd"}', '/vendor': '1'} spelling=['metadata', 'no model', 'output_config', 'output_format', 'stop_sequences', 'tools']
  Message where='/system' spelling='blocks' role='system'
"""
    )
    assert (
        outline(parse(DISABLED))
        == """\
Request model='m' tool_choice=ToolChoice(where='/tool_choice', extras=messages{'/name': '"f"'}, mode='auto', parallel=True) thinking=Thinking(mode='disabled', effort='max') stream=True extras=messages{'/thinking/display': '"summarized"', '/thinking/budget_tokens': '5'} spelling=['between_tools', 'output_config']
"""
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_is_written_as_it_was(name: str):
    assert render(parse(DOCUMENTS[name])) == DOCUMENTS[name]
    document = mark(DOCUMENTS[name])
    assert render(parse(document)) == document


@pytest.mark.parametrize("name", ["blocks", "settings"])
def test_an_unknown_field_belongs_to_the_nearest_value(name: str):
    found = list(find_marks(parse(mark(DOCUMENTS[name]))))
    assert [where for where, _ in found] == [output for _, output in found]
    assert found


CHOICES = [
    ({"type": "auto"}, "mode='auto'"),
    ({"type": "any", "disable_parallel_tool_use": True}, "mode='required' parallel=False"),
    ({"type": "none"}, "mode='none'"),
    ({"type": "tool", "name": "f", "disable_parallel_tool_use": False}, "mode='required' names=('f') parallel=True"),
    ({"type": "any", "name": "f"}, "extras=messages{'/name': '\"f\"'} mode='required'"),
]


@pytest.mark.parametrize(("given", "read"), CHOICES)
def test_every_form_of_a_choice_is_read_whole_and_written_again(given: Any, read: str):
    body = {"model": "m", "messages": [], "tool_choice": given}
    assert outline(parse(body).tool_choice) == f"ToolChoice where='/tool_choice' {read}\n"
    assert render(parse(body)) == body
    assert render(parse(mark(body))) == mark(body)
    assert parse({**body, "tool_choice": None}).tool_choice is None


THOUGHTS = [
    ({"thinking": {"type": "adaptive"}}, "Thinking mode='adaptive'"),
    ({"thinking": {"type": "adaptive", "display": "summarized"}}, "Thinking mode='adaptive' visible=True"),
    ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "Thinking mode='enabled' budget=5"),
    ({"thinking": {"type": "disabled"}}, "Thinking mode='disabled'"),
    ({"thinking": {"type": "between_tools"}}, "Thinking mode='disabled'"),
    ({"thinking": {"type": "adaptive", "display": "odd"}}, "Thinking mode='adaptive'"),
    ({"output_config": {"effort": "low"}}, "Thinking effort='low'"),
    ({"output_config": {"effort": "low"}, "thinking": {"type": "odd"}}, "Thinking effort='low'"),
    ({"output_config": {"effort": "low"}, "thinking": {"type": "enabled"}}, "Thinking mode='enabled' effort='low'"),
    ({"output_config": {}, "thinking": {"type": "odd"}}, "None"),
    ({"output_config": {"effort": "huge"}}, "None"),
]


@pytest.mark.parametrize(("given", "read"), THOUGHTS)
def test_every_form_of_thinking_is_read_whole_and_written_again(given: Any, read: str):
    body = {"model": "m", "messages": [], **given}
    assert outline(parse(body).thinking) == f"{read}\n"
    assert render(parse(body)) == body
    assert render(parse(mark(body))) == mark(body)


FORMATS = [
    (
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        "OutputFormat kind='json_schema' schema=b'{}'",
    ),
    ({"output_format": {"type": "json_schema", "schema": {}}}, "OutputFormat kind='json_schema' schema=b'{}'"),
    ({"output_config": {"format": {"type": "odd"}}}, "None"),
    ({"output_config": {}, "output_format": {"type": "odd"}}, "None"),
]


@pytest.mark.parametrize(("given", "read"), FORMATS)
def test_every_form_of_the_answer_is_read_whole_and_written_again(given: Any, read: str):
    body = {"model": "m", "messages": [], **given}
    assert outline(parse(body).output) == f"{read}\n"
    assert render(parse(body)) == body
    assert render(parse(mark(body))) == mark(body)


def test_the_url_counts_where_the_body_has_no_value():
    request = parse({"messages": []}, model="m", stream=True)
    assert (request.model, request.stream, sorted(request.spelling)) == ("m", True, ["no model", "no stream"])
    call = DIALECT.render_request(request, Traits(dialect="messages"))
    assert (json.loads(call.body), call.model, call.stream) == ({"messages": []}, "m", True)
    assert parse({"model": "x", "stream": False, "messages": []}, model="m", stream=True).model == "x"
    assert parse({"model": "x", "stream": False, "messages": []}, model="m", stream=True).stream is False


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, ""),
        ({"messages": [{"role": "critic", "content": ""}]}, "/messages/0/role"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "/messages/0/content/0"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "", "cache_control": {"type": "x"}}]}]},
            "/messages/0/content/0/cache_control/type",
        ),
        ({"messages": [], "tools": [{"type": "custom"}]}, "/tools/0/name"),
        ({"messages": [], "tools": [{"name": 7}]}, "/tools/0/name"),
        ({"messages": [], "tool_choice": {"type": "tool"}}, "/tool_choice/name"),
        ({"messages": [], "tool_choice": {"type": 7}}, "/tool_choice/type"),
        ({"messages": [], "thinking": {}}, "/thinking"),
        ({"messages": [], "output_config": {"format": {}}}, "/output_config/format"),
        ({"messages": [], "output_format": {"type": 7}}, "/output_format/type"),
    ],
)
def test_a_broken_request_is_refused_by_its_pointer(body: Any, where: str):
    with pytest.raises(Problem) as caught:
        parse(body)
    assert (caught.value.kind, caught.value.where) == ("invalid_request", where)


def test_a_body_that_is_not_utf_8_is_refused():
    with pytest.raises(Problem) as caught:
        parse_request(
            Call(
                b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":"\xff"}}]}]}'
            )
        )
    assert caught.value.kind == "invalid_request"
