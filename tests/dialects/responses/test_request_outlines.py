"""Requests of every form, each read to its last field; and written again as they were."""

import json
from typing import Any

import pytest

from dialects.outline import find_marks, mark, outline
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.request import parse_request
from laws.maximal import REQUESTS


def parse(document: Any) -> Request:
    return parse_request(Call(json.dumps(document).encode()))


def render(request: Request) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="responses")).body)


ITEMS: dict[str, Any] = {
    "model": "m",
    "instructions": "i",
    "input": [
        {"role": "user", "content": "u"},
        {"type": "message", "role": "user", "content": "u"},
        {"type": "message", "role": "developer", "content": "d"},
        {"role": "system", "content": "s"},
        {"role": "user", "content": []},
        {"type": "message", "role": "assistant"},
        {"type": "message", "role": "critic", "content": "c"},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": [{"token": "a"}]},
                {"type": "output_text", "text": "a", "logprobs": []},
                {"type": "output_text", "text": "a"},
                {
                    "type": "output_text",
                    "text": "a",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url": "https://e.org",
                            "title": "E",
                            "start_index": 1,
                            "end_index": 2,
                        },
                        {"type": "file_citation", "filename": "f", "start_index": "x", "url": 7},
                        "note",
                    ],
                },
                {"type": "refusal", "refusal": "no"},
                {"type": "reasoning_text", "text": "r"},
                {"type": "strange"},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {
            "type": "function_call",
            "id": "fc",
            "status": "completed",
            "call_id": "c2",
            "name": "f",
            "namespace": "n",
            "arguments": "",
        },
        {"type": "custom_tool_call", "id": "ctc", "call_id": "c3", "name": "p", "namespace": "n", "input": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "o"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "function_call_output", "call_id": "c1", "output": []},
        {"type": "function_call_output", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "name": "f", "output": "o", "status": "completed"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c3",
            "output": [{"type": "input_text", "text": "o"}, {"type": "refusal", "refusal": "no"}],
        },
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        },
        {"type": "reasoning", "summary": [], "encrypted_content": "e"},
        {"type": "reasoning", "summary": [], "content": []},
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "c"}, {"type": "odd"}, {"type": "refusal", "refusal": "r"}],
        },
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "odd"}],
            "content": [{"type": "reasoning_text", "text": "c"}, {"type": "odd"}],
        },
        {"type": "web_search_call", "id": "ws"},
        {"type": "mcp_list_tools", "id": "x"},
        {"type": "mcp_approval_response", "id": "x"},
        {"type": "compaction", "id": "x"},
        {"type": "program", "id": "x"},
        {"type": "item_reference", "id": "x"},
        {"id": "x"},
        {"type": "never heard of"},
    ],
}
MEDIA: dict[str, Any] = {
    "model": "m",
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "t", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}},
                {"type": "input_text", "text": "t", "prompt_cache_breakpoint": {"mode": "auto"}},
                {
                    "type": "input_image",
                    "image_url": "https://e.org/a",
                    "detail": "low",
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                {"type": "input_image", "image_url": "data:image/png,AA"},
                {"type": "input_image", "image_url": "data:image/png;base64"},
                {"type": "input_image", "image_url": "https://e.org/a", "file_id": "file_1"},
                {"type": "input_image", "file_id": "file_1"},
                {"type": "input_file", "file_url": "https://e.org/a", "filename": "a"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "a"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="},
                {"type": "input_file", "file_data": "AA==", "file_id": "file_1", "file_url": "https://e.org/a"},
                {"type": "input_file", "file_id": "file_1", "file_url": "https://e.org/a"},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
                {
                    "type": "input_audio",
                    "input_audio": {"data": "AA==", "format": "wav"},
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "prompt_cache_breakpoint": {"mode": "explicit"}}
            ],
        },
    ],
}
SETTINGS: dict[str, Any] = {
    "model": "m",
    "input": "hi",
    "tools": [
        {"type": "function", "name": "f", "description": "", "parameters": {"type": "object"}, "strict": False},
        {"type": "function", "name": "g"},
        {"type": "custom", "name": "p", "description": "d", "format": {"type": "text"}},
        {"type": "custom", "name": "q", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "custom", "name": "r", "format": {"type": "odd"}},
        {"type": "custom", "name": "s", "format": {"type": "text", "more": 1}},
        {"type": "web_search"},
        {
            "type": "namespace",
            "name": "n",
            "description": "N",
            "tools": [{"type": "function", "name": "a"}, {"type": "odd"}, {"type": "custom", "name": "b"}],
        },
        {
            "type": "namespace",
            "name": "n",
            "description": "",
            "tools": [{"type": "function", "name": "c", "strict": True, "parameters": {}}],
        },
        {"type": "namespace", "name": "o", "tools": [{"type": "function", "name": "d"}]},
        {"type": "namespace", "name": "p", "description": "none", "tools": []},
    ],
    "stream": False,
    "text": {"format": {"type": "json_schema", "name": "a", "description": "d", "schema": {}, "strict": True}},
    "reasoning": {"effort": "high", "summary": "detailed"},
    "user": "u",
    "metadata": {"a": "b"},
    "max_output_tokens": 5,
    "temperature": 0.5,
    "top_p": 0,
    "previous_response_id": "resp",
    "parallel_tool_calls": False,
}
ODD: dict[str, Any] = {
    "model": "m",
    "tools": [],
    "text": {"format": {"type": "odd"}, "verbosity": "low"},
    "reasoning": {"effort": "huge", "summary": "concise"},
    "user": "u",
    "safety_identifier": "s",
    "metadata": {"a": 1},
    "instructions": ["x"],
    "tool_choice": {"type": "web_search"},
    "vendor": 1,
    "a/b": 2,
}
EMPTY: dict[str, Any] = {
    "input": [],
    "text": {"format": {"type": "odd"}},
    "reasoning": {"effort": "huge"},
    "stream": True,
}
DOCUMENTS = {
    "items": ITEMS,
    "media": MEDIA,
    "settings": SETTINGS,
    "odd": ODD,
    "empty": EMPTY,
    "all": REQUESTS["responses"],
}


def test_every_form_of_an_item_is_read_whole():
    assert (
        outline(parse(ITEMS))
        == """\
Request model='m'
  Message where='/instructions' spelling='instructions' role='system'
    Text where='/instructions' text='i'
  Message where='/input/0' spelling='item user string easy' role='user'
    Text where='/input/0/content' text='u'
  Message where='/input/1' spelling='item user string typed' role='user'
    Text where='/input/1/content' text='u'
  Message where='/input/2' spelling='item developer string typed' role='system'
    Text where='/input/2/content' text='d'
  Message where='/input/3' spelling='item system string easy' role='system'
    Text where='/input/3/content' text='s'
  Message where='/input/4' spelling='item user list easy' role='user'
  Message where='/input/5' spelling='item assistant nothing typed' role='assistant'
  Message where='/input/6' spelling='item' role='user'
    Opaque where='/input/6' dialect='responses' raw=b'{"type": "message", "role": "critic", "content": "c"}'
  Message where='/input/7' spelling='item assistant list typed' extras=responses{'/id': '"msg_1"', '/status': '"completed"', '/phase': '"commentary"'} role='assistant'
    Text where='/input/7/content/0' spelling='full' text='a'
    Text where='/input/7/content/1' spelling='output_text' extras=responses{'/logprobs': '[{"token": "a"}]'} text='a'
    Text where='/input/7/content/2' spelling='bare' extras=responses{'/logprobs': '[]'} text='a'
    Text where='/input/7/content/3' spelling='bare' text='a'
    Text where='/input/7/content/4' spelling='output_text' text='a' citations=(Citation(dialect='responses', raw=b'{"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 1, "end_index": 2}', url='https://e.org', title='E', start=1, end=2), Citation(dialect='responses', raw=b'{"type": "file_citation", "filename": "f", "start_index": "x", "url": 7}', title='f'), Citation(dialect='responses', raw=b'"note"'))
    Refusal where='/input/7/content/5' text='no'
    Opaque where='/input/7/content/6' spelling='part' dialect='responses' raw=b'{"type":"reasoning_text","text":"r"}'
    Opaque where='/input/7/content/7' spelling='part' dialect='responses' raw=b'{"type": "strange"}'
  Message where='/input/8' spelling='item' role='assistant'
    ToolCall where='/input/8' id='c1' name='f' arguments='{"a": 1}'
  Message where='/input/9' spelling='item' role='assistant'
    ToolCall where='/input/9' extras=responses{'/id': '"fc"', '/status': '"completed"'} id='c2' name='f' arguments='' namespace='n'
  Message where='/input/10' spelling='item' role='assistant'
    ToolCall where='/input/10' extras=responses{'/id': '"ctc"'} id='c3' name='p' arguments='x' form='text' namespace='n'
  Message where='/input/11' spelling='item' role='user'
    ToolResult where='/input/11' spelling='string' call_id='c1'
      Text where='/input/11/output' text='o'
  Message where='/input/12' spelling='item' role='user'
    ToolResult where='/input/12' spelling='string' call_id='c1'
  Message where='/input/13' spelling='item' role='user'
    ToolResult where='/input/13' spelling='list' call_id='c1'
  Message where='/input/14' spelling='item' role='user'
    ToolResult where='/input/14' spelling='nothing' call_id='c1'
  Message where='/input/15' spelling='item' role='user'
    ToolResult where='/input/15' spelling='string named' extras=responses{'/status': '"completed"'} call_id='c1' name='f'
      Text where='/input/15/output' text='o'
  Message where='/input/16' spelling='item' role='user'
    ToolResult where='/input/16' spelling='list' call_id='c3' form='text'
      Text where='/input/16/output/0' spelling='input_text' text='o'
      Opaque where='/input/16/output/1' spelling='part' dialect='responses' raw=b'{"type":"refusal","refusal":"no"}'
  Message where='/input/17' spelling='item' role='assistant'
    Reasoning where='/input/17' extras=responses{'/id': '"rs"'} texts=('a', 'b')
  Message where='/input/18' spelling='item' role='assistant'
    Reasoning where='/input/18' signature=Signature(issuer='openai', value='e')
  Message where='/input/19' spelling='item' role='assistant'
    Reasoning where='/input/19' spelling='empty content'
  Message where='/input/20' spelling='item' role='assistant'
    Reasoning where='/input/20' spelling='content' extras=responses{'/content/1': '{"type": "odd"}', '/content/2': '{"type":"refusal","refusal":"r"}'} texts=('c')
  Message where='/input/21' spelling='item' role='assistant'
    Reasoning where='/input/21' extras=responses{'/content': '[{"type":"reasoning_text","text":"c"},{"type": "odd"}]', '/summary/1': '{"type": "odd"}'} texts=('a')
  Message where='/input/22' spelling='item' role='assistant'
    Opaque where='/input/22' dialect='responses' raw=b'{"type": "web_search_call", "id": "ws"}'
  Message where='/input/23' spelling='item' role='assistant'
    Opaque where='/input/23' dialect='responses' raw=b'{"type": "mcp_list_tools", "id": "x"}'
  Message where='/input/24' spelling='item' role='user'
    Opaque where='/input/24' dialect='responses' raw=b'{"type": "mcp_approval_response", "id": "x"}'
  Message where='/input/25' spelling='item' role='assistant'
    Opaque where='/input/25' dialect='responses' raw=b'{"type": "compaction", "id": "x"}'
  Message where='/input/26' spelling='item' role='assistant'
    Opaque where='/input/26' dialect='responses' raw=b'{"type": "program", "id": "x"}'
  Message where='/input/27' spelling='item' role='assistant'
    Opaque where='/input/27' dialect='responses' raw=b'{"type": "item_reference", "id": "x"}' refers='/id'
  Message where='/input/28' spelling='item' role='assistant'
    Opaque where='/input/28' dialect='responses' raw=b'{"id": "x"}' refers='/id'
  Message where='/input/29' spelling='item' role='user'
    Opaque where='/input/29' dialect='responses' raw=b'{"type": "never heard of"}'
"""
    )


def test_every_form_of_content_is_read_whole():
    assert (
        outline(parse(MEDIA))
        == """\
Request model='m'
  Message where='/input/0' spelling='item user list easy' role='user'
    Text where='/input/0/content/0' spelling='input_text' cache='1h' text='t'
    Text where='/input/0/content/1' spelling='input_text' extras=responses{'/prompt_cache_breakpoint/mode': '"auto"'} cache='' text='t'
    Media where='/input/0/content/2' spelling='input' extras=responses{'/detail': '"low"'} cache='' kind='image' media_type='' source=Link(url='https://e.org/a')
    Media where='/input/0/content/3' spelling='input' kind='image' media_type='image/png' source=Inline(data='AA==')
    Media where='/input/0/content/4' spelling='input' kind='image' media_type='' source=Link(url='data:image/png,AA')
    Media where='/input/0/content/5' spelling='input' kind='image' media_type='' source=Link(url='data:image/png;base64')
    Media where='/input/0/content/6' spelling='input' extras=responses{'/file_id': '"file_1"'} kind='image' media_type='' source=Link(url='https://e.org/a')
    Media where='/input/0/content/7' spelling='input' kind='image' media_type='' source=Stored(issuer='openai', id='file_1')
    Media where='/input/0/content/8' spelling='input' kind='document' media_type='' source=Link(url='https://e.org/a') name='a'
    Media where='/input/0/content/9' spelling='input' kind='document' media_type='application/pdf' source=Inline(data='AA==') name='a'
    Media where='/input/0/content/10' spelling='input' kind='document' media_type='application/pdf' source=Inline(data='AA==')
    Media where='/input/0/content/11' spelling='bare data' extras=responses{'/file_url': '"https://e.org/a"', '/file_id': '"file_1"'} kind='document' media_type='' source=Inline(data='AA==')
    Media where='/input/0/content/12' spelling='input' extras=responses{'/file_id': '"file_1"'} kind='document' media_type='' source=Link(url='https://e.org/a')
    Media where='/input/0/content/13' kind='audio' media_type='audio/mpeg' source=Inline(data='AA==')
    Media where='/input/0/content/14' cache='' kind='audio' media_type='audio/wav' source=Inline(data='AA==')
  Message where='/input/1' spelling='item assistant list typed' role='assistant'
    Text where='/input/1/content/0' spelling='output_text' cache='' text='a'
"""
    )


def test_every_setting_is_read_whole():
    assert (
        outline(parse(SETTINGS))
        == """\
Request model='m' tool_choice=ToolChoice(where='/tool_choice', parallel=False) sampling=Sampling(temperature=0.5, top_p=0, max_tokens=5) thinking=Thinking(effort='high', visible=True) output=OutputFormat(kind='json_schema', schema=b'{}', name='a', description='d', strict=True) continues='resp' user='u' metadata={'a': 'b'} spelling=['stream:false', 'summary:detailed', 'user']
  Message where='/input' spelling='string' role='user'
    Text where='/input' text='hi'
  Tool where='/tools/0' spelling='empty description' name='f' parameters=b'{"type": "object"}' strict=False
  Tool where='/tools/1' spelling='no strict,no parameters' name='g'
  Tool where='/tools/2' spelling='text format' name='p' description='d' form='text'
  Tool where='/tools/3' name='q' form='text' grammar=b'{"type": "grammar", "syntax": "lark", "definition": "x"}'
  Tool where='/tools/4' extras=responses{'/format': '{"type": "odd"}'} name='r' form='text'
  Tool where='/tools/5' extras=responses{'/format': '{"type": "text", "more": 1}'} name='s' form='text'
  NativeTool where='/tools/6' dialect='responses' raw=b'{"type": "web_search"}'
  Tool where='/tools/7/tools/0' spelling='group,no strict,no parameters' extras=responses{'/namespace/tools/1': '{"type": "odd"}'} name='a' namespace='n' namespace_description='N'
  Tool where='/tools/7/tools/2' name='b' form='text' namespace='n'
  Tool where='/tools/8/tools/0' spelling='group' extras=responses{'/namespace/description': '""'} name='c' parameters=b'{}' strict=True namespace='n'
  Tool where='/tools/9/tools/0' spelling='group,no strict,no parameters' name='d' namespace='o'
  NativeTool where='/tools/10' dialect='responses' raw=b'{"type": "namespace", "name": "p", "description": "none", "tools": []}'
"""
    )
    assert (
        outline(parse(ODD))
        == """\
Request model='m' tool_choice=ToolChoice(where='/tool_choice', extras=responses{'': '{"type": "web_search"}'}) thinking=Thinking(visible=True) verbosity='low' user='s' extras=responses{'/reasoning/effort': '"huge"', '/text/format': '{"type": "odd"}', '/user': '"u"', '/metadata': '{"a": 1}', '/instructions': '["x"]', '/vendor': '1', '/a~1b': '2'} spelling=['no input', 'summary:concise', 'tools:[]']
"""
    )
    assert (
        outline(parse(EMPTY))
        == """\
Request model='' stream=True extras=responses{'/reasoning': '{"effort": "huge"}', '/text': '{"format": {"type": "odd"}}'}
"""
    )
    assert (
        outline(parse({**REQUESTS["responses"], "input": []}))
        == """\
Request model='gpt-5.6' tool_choice=ToolChoice(where='/tool_choice', mode='required', parallel=False) sampling=Sampling(temperature=0.3, top_p=0.9, max_tokens=500) thinking=Thinking(effort='xhigh', visible=True) output=OutputFormat(kind='json_schema', schema=b'{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}', name='answer', strict=True) verbosity='low' stream=True user='user-1' metadata={'run': '1'} extras=responses{'/reasoning/context': '"auto"', '/max_tool_calls': '3', '/top_logprobs': '2', '/include': '["reasoning.encrypted_content", "message.output_text.logprobs"]', '/store': 'true', '/truncation': '"auto"', '/service_tier': '"flex"', '/prompt_cache_key': '"key"', '/context_management': '[{"type": "compaction", "compact_threshold": 1000}]'}
  Message where='/instructions' spelling='instructions' role='system'
    Text where='/instructions' text='Be brief.'
  Tool where='/tools/0/tools/0' spelling='group' name='weather' parameters=b'{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}' strict=True namespace='skies' namespace_description='The sky.'
  Tool where='/tools/1' spelling='text format' name='calc' form='text'
  NativeTool where='/tools/2' dialect='responses' raw=b'{"type": "web_search", "search_context_size": "low"}'
  NativeTool where='/tools/3' dialect='responses' raw=b'{"type": "mcp", "server_label": "m", "server_url": "https://example.com/mcp"}'
"""
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_is_written_as_it_was(name: str):
    assert render(parse(DOCUMENTS[name])) == DOCUMENTS[name]
    document = mark(DOCUMENTS[name])
    assert render(parse(document)) == document


@pytest.mark.parametrize("item", ITEMS["input"])
def test_an_item_is_parsed_alike_next_to_unknown_ones(item: dict[str, Any]):
    assert outline(parse({"input": [item]}).messages) == outline(parse({"input": [item, {"type": "odd"}]}).messages[:1])


@pytest.mark.parametrize("tool", SETTINGS["tools"])
def test_a_tool_is_parsed_alike_next_to_unknown_ones(tool: dict[str, Any]):
    alone = parse({"tools": [tool]})
    several = parse({"tools": [tool, {"type": "function", "name": "z", "zz": 1}]}).tools
    assert outline(alone.tools) == outline(several[:-1])
    assert render(alone)["tools"] == [tool]


@pytest.mark.parametrize("name", ["items", "media"])
def test_an_unknown_field_belongs_to_the_nearest_value(name: str):
    found = list(find_marks(parse(mark(DOCUMENTS[name]))))
    assert [where for where, _ in found] == [output for _, output in found]
    assert found
