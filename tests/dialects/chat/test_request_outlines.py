"""Requests of every form, each read to its last field; and written again as they were."""

import json
from typing import Any

import pytest

from dialects.outline import find_marks, mark, outline
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.request import parse_request
from dragoman.dialects.record import Call
from laws.maximal import REQUESTS


def parse(document: Any) -> Request:
    return parse_request(Call(json.dumps(document).encode()))


def render(request: Request, **traits: Any) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="chat", **traits)).body)


def messages(*given: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": list(given)}


def function(call_id: str | None = "c1", **fields: Any) -> dict[str, Any]:
    head = {} if call_id is None else {"id": call_id}
    return {**head, "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}, **fields}


HISTORY = messages(
    {"role": "developer", "content": "d", "name": "dev"},
    {"role": "developer", "content": [{"type": "text", "text": "d2"}]},
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {"role": "user", "content": "u2", "name": "ann"},
    {"role": "user", "content": []},
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": "a2", "name": "bot"},
    {"role": "assistant", "content": None, "tool_calls": [function(), function("c2")]},
    {"role": "assistant", "content": "", "tool_calls": [function(None)]},
    {"role": "assistant", "content": "", "function_call": {"name": "g", "arguments": "{}"}},
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "assistant", "content": "", "reasoning_content": "", "reasoning": ""},
    {"role": "assistant", "content": "x", "reasoning_content": "r1"},
    {"role": "assistant", "content": "x", "reasoning": "r2"},
    {"role": "assistant", "content": "x", "reasoning_content": "r3", "reasoning": "r3"},
    {"role": "assistant", "content": "x", "reasoning_content": "r4", "reasoning": "r5"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "y"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "reference"}]}]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
    {"role": "tool", "tool_call_id": "c1", "content": ""},
    {"role": "tool", "tool_call_id": "c1", "content": "1", "name": "f"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "1"}, {"type": "strange"}]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "refusal", "refusal": "no"}]},
    {"role": "function", "name": "g", "content": "2"},
    {"role": "critic", "content": "c"},
)
CALLS = messages(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
            {"id": "c3", "type": "custom", "custom": {"name": "p", "input": "text"}},
            {"id": "c4", "type": "mcp", "mcp": {}},
            function("c5", extra_content={"google": {"thought_signature": "sig"}}),
            {
                "type": "custom",
                "custom": {"name": "p", "input": ""},
                "extra_content": {"google": {"thought_signature": "s2"}},
            },
        ],
    }
)
MEDIA = messages(
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "t", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}},
            {"type": "text", "text": "t", "prompt_cache_breakpoint": {"mode": "auto", "ttl": "1h"}},
            {"type": "text", "text": "t", "prompt_cache_breakpoint": {}},
            {
                "type": "image_url",
                "image_url": {"url": "https://e.org/a"},
                "prompt_cache_breakpoint": {"mode": "explicit"},
            },
            {"type": "image_url", "image_url": "data:image/png;base64,AA=="},
            {"type": "image_url", "image_url": {"url": "data:,hello;base64,AA"}},
            {"type": "video_url", "video_url": {"url": "https://e.org/v"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "AA=="}},
            {"type": "file", "file": {"file_id": "file_1", "filename": "a"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
            {"type": "file", "file": {"file_data": "data:image/png;base64,AA=="}},
            {"type": "file", "file": {"file_data": "data:audio/wav;base64,AA=="}},
            {"type": "file", "file": {"file_data": "data:video/mp4;base64,AA=="}},
            {"type": "file", "file": {"file_data": "https://e.org/a"}},
            {"type": "file", "file": {"file_data": "http://e.org/a"}},
            {"type": "file", "file": {"file_data": "AA=="}, "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "file", "file": {"file_data": "AA==", "file_id": "file_1"}},
            {"type": "file", "file": {}},
            {"type": "strange", "a": 1},
        ],
    }
)
SETTINGS: dict[str, Any] = {
    "messages": [],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "", "parameters": {"type": "object"}, "strict": False},
        },
        {"function": {"name": "g"}},
        {"type": "custom", "custom": {"name": "p", "description": "d", "format": {"type": "text"}}},
        {"type": "custom", "custom": {"name": "q", "description": ""}},
        {
            "type": "custom",
            "custom": {"name": "r", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}},
        },
        {"type": "web_search"},
        {"type": "custom", "function": {"name": "odd"}},
    ],
    "functions": [{"name": "old", "description": "o"}],
    "stop": "END",
    "stream": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "description": "", "schema": {}}},
    "n": 2,
    "user": "u",
    "max_tokens": 5,
    "reasoning_effort": "high",
    "verbosity": "low",
    "metadata": {"a": "b"},
}
ODD: dict[str, Any] = {
    "model": "m",
    "messages": [],
    "tools": [],
    "functions": [],
    "stop": [],
    "response_format": {"type": "grammar", "grammar": "g"},
    "user": "u",
    "safety_identifier": "s",
    "max_tokens": 5,
    "max_completion_tokens": 6,
    "reasoning_effort": "huge",
    "metadata": {"a": 1},
    "tool_choice": "sometimes",
    "function_call": "never",
    "vendor": {"a": 1},
}


def test_every_form_of_a_message_is_read_whole():
    assert (
        outline(parse(HISTORY))
        == """\
Request model='m'
  Message where='/messages/0' spelling='chat developer' role='system' name='dev'
    Text where='/messages/0/content' text='d'
  Message where='/messages/1' spelling='chat developer list' role='system'
    Text where='/messages/1/content/0' text='d2'
  Message where='/messages/2' role='system'
    Text where='/messages/2/content' text='s'
  Message where='/messages/3' role='user'
    Text where='/messages/3/content' text='u'
  Message where='/messages/4' role='user' name='ann'
    Text where='/messages/4/content' text='u2'
  Message where='/messages/5' spelling='chat list' role='user'
  Message where='/messages/6' role='assistant'
    Text where='/messages/6/content' text='a'
  Message where='/messages/7' role='assistant' name='bot'
    Text where='/messages/7/content' text='a2'
  Message where='/messages/8' spelling='chat null' role='assistant'
    ToolCall where='/messages/8/tool_calls/0' id='c1' name='f' arguments='{"a": 1}'
    ToolCall where='/messages/8/tool_calls/1' id='c2' name='f' arguments='{"a": 1}'
  Message where='/messages/9' spelling='chat blank' role='assistant'
    ToolCall where='/messages/9/tool_calls/0' id='' name='f' arguments='{"a": 1}'
  Message where='/messages/10' spelling='chat blank' role='assistant'
    ToolCall where='/messages/10/function_call' spelling='chat function_call' id='' name='g' arguments='{}'
  Message where='/messages/11' spelling='chat null' role='assistant'
    Refusal where='/messages/11/refusal' text='no'
  Message where='/messages/12' spelling='chat reasoning_content reasoning' role='assistant'
    Text where='/messages/12/content' text=''
  Message where='/messages/13' role='assistant'
    Reasoning where='/messages/13/reasoning_content' spelling='chat reasoning_content' texts=('r1')
    Text where='/messages/13/content' text='x'
  Message where='/messages/14' role='assistant'
    Reasoning where='/messages/14/reasoning' spelling='chat reasoning' texts=('r2')
    Text where='/messages/14/content' text='x'
  Message where='/messages/15' role='assistant'
    Reasoning where='/messages/15/reasoning_content' spelling='chat both' texts=('r3')
    Text where='/messages/15/content' text='x'
  Message where='/messages/16' role='assistant'
    Reasoning where='/messages/16/reasoning_content' spelling='chat reasoning_content' texts=('r4')
    Reasoning where='/messages/16/reasoning' spelling='chat reasoning' texts=('r5')
    Text where='/messages/16/content' text='x'
  Message where='/messages/17' spelling='chat list' role='assistant'
    Refusal where='/messages/17/content/0' spelling='chat part' text='no'
    Text where='/messages/17/content/1' text='y'
  Message where='/messages/18' spelling='chat list' role='assistant'
    Reasoning where='/messages/18/content/0' spelling='chat thinking' texts=('t')
  Message where='/messages/19' spelling='chat list' role='assistant'
    Opaque where='/messages/19/content/0' dialect='chat' raw=b'{"type":"thinking","thinking":[{"type": "reference"}]}'
  Message where='/messages/20' role='user'
    ToolResult where='/messages/20' call_id='c1'
      Text where='/messages/20/content' text='1'
  Message where='/messages/21' role='user'
    ToolResult where='/messages/21' call_id='c1'
  Message where='/messages/22' role='user'
    ToolResult where='/messages/22' spelling='chat named' call_id='c1' name='f'
      Text where='/messages/22/content' text='1'
  Message where='/messages/23' role='user'
    ToolResult where='/messages/23' spelling='chat list' call_id='c1'
      Text where='/messages/23/content/0' text='1'
      Opaque where='/messages/23/content/1' dialect='chat' raw=b'{"type": "strange"}'
  Message where='/messages/24' role='user'
    ToolResult where='/messages/24' spelling='chat list' call_id='c1'
      Opaque where='/messages/24/content/0' dialect='chat' raw=b'{"type":"refusal","refusal":"no"}'
  Message where='/messages/25' role='user'
    ToolResult where='/messages/25' spelling='chat function' call_id='' name='g'
      Text where='/messages/25/content' text='2'
  Message where='/messages/26' role='user'
    Opaque where='/messages/26' spelling='chat message' dialect='chat' raw=b'{"role": "critic", "content": "c"}'
"""
    )


def test_every_form_of_a_call_is_read_whole():
    assert (
        outline(parse(CALLS))
        == """\
Request model='m'
  Message where='/messages/0' spelling='chat null' role='assistant'
    ToolCall where='/messages/0/tool_calls/0' spelling='chat untyped' id='c1' name='f' arguments='{}'
    ToolCall where='/messages/0/tool_calls/1' spelling='chat object' id='c2' name='f' arguments='{"a":1}'
    ToolCall where='/messages/0/tool_calls/2' id='c3' name='p' arguments='text' form='text'
    Opaque where='/messages/0/tool_calls/3' spelling='chat call' dialect='chat' raw=b'{"id":"c4","type":"mcp","mcp":{}}'
    ToolCall where='/messages/0/tool_calls/4' signature=Signature(issuer='google', value='sig') id='c5' name='f' arguments='{"a": 1}'
    ToolCall where='/messages/0/tool_calls/5' signature=Signature(issuer='google', value='s2') id='' name='p' arguments='' form='text'
"""
    )


def test_every_form_of_content_is_read_whole():
    assert (
        outline(parse(MEDIA))
        == """\
Request model='m'
  Message where='/messages/0' spelling='chat list' role='user'
    Text where='/messages/0/content/0' cache='1h' text='t'
    Text where='/messages/0/content/1' extras=chat{'/prompt_cache_breakpoint/mode': '"auto"', '/prompt_cache_breakpoint/ttl': '"1h"'} text='t'
    Text where='/messages/0/content/2' extras=chat{'/prompt_cache_breakpoint': '{}'} text='t'
    Media where='/messages/0/content/3' cache='' kind='image' media_type='' source=Link(url='https://e.org/a')
    Media where='/messages/0/content/4' spelling='chat bare' kind='image' media_type='image/png' source=Inline(data='AA==')
    Media where='/messages/0/content/5' kind='image' media_type='' source=Link(url='data:,hello;base64,AA')
    Media where='/messages/0/content/6' kind='video' media_type='' source=Link(url='https://e.org/v')
    Media where='/messages/0/content/7' spelling='chat mp3' kind='audio' media_type='audio/mpeg' source=Inline(data='AA==')
    Media where='/messages/0/content/8' spelling='chat wav' kind='audio' media_type='audio/wav' source=Inline(data='AA==')
    Media where='/messages/0/content/9' kind='audio' media_type='' source=Inline(data='AA==')
    Media where='/messages/0/content/10' spelling='chat file' kind='document' media_type='' source=Stored(issuer='openai', id='file_1') name='a'
    Media where='/messages/0/content/11' spelling='chat file' kind='document' media_type='application/pdf' source=Inline(data='AA==') name='a.pdf'
    Media where='/messages/0/content/12' spelling='chat file' kind='image' media_type='image/png' source=Inline(data='AA==')
    Media where='/messages/0/content/13' spelling='chat file' kind='audio' media_type='audio/wav' source=Inline(data='AA==')
    Media where='/messages/0/content/14' spelling='chat file' kind='video' media_type='video/mp4' source=Inline(data='AA==')
    Media where='/messages/0/content/15' spelling='chat file' kind='document' media_type='' source=Link(url='https://e.org/a')
    Media where='/messages/0/content/16' spelling='chat file' kind='document' media_type='' source=Link(url='http://e.org/a')
    Media where='/messages/0/content/17' spelling='chat file bare' cache='' kind='document' media_type='' source=Inline(data='AA==')
    Opaque where='/messages/0/content/18' dialect='chat' raw=b'{"type":"file","file":{"file_id":"file_1","file_data":"AA=="}}'
    Opaque where='/messages/0/content/19' dialect='chat' raw=b'{"type":"file","file":{}}'
    Opaque where='/messages/0/content/20' dialect='chat' raw=b'{"type": "strange", "a": 1}'
"""
    )


def test_every_setting_is_read_whole():
    assert (
        outline(parse(SETTINGS))
        == """\
Request model='' sampling=Sampling(max_tokens=5, stop=('END')) thinking=Thinking(effort='high') output=OutputFormat(kind='json_schema', schema=b'{}', name='a') verbosity='low' candidates=2 user='u' metadata={'a': 'b'} spelling=['max_tokens', 'model in url', 'output description', 'stop text', 'stream false', 'user']
  Tool where='/tools/0' spelling='chat blank' name='f' parameters=b'{"type": "object"}' strict=False
  Tool where='/tools/1' spelling='chat untyped' name='g'
  Tool where='/tools/2' spelling='chat format' name='p' description='d' form='text'
  Tool where='/tools/3' spelling='chat blank' name='q' form='text'
  Tool where='/tools/4' name='r' form='text' grammar=b'{"type":"grammar","syntax":"lark","definition":"x"}'
  NativeTool where='/tools/5' dialect='chat' raw=b'{"type":"web_search"}'
  NativeTool where='/tools/6' dialect='chat' raw=b'{"type":"custom","function":{"name":"odd"}}'
  Tool where='/functions/0' spelling='chat functions' name='old' description='o'
"""
    )
    assert (
        outline(parse(ODD))
        == """\
Request model='m' sampling=Sampling(max_tokens=6) user='s' extras=chat{'/vendor': '{"a": 1}', '/tool_choice': '"sometimes"', '/function_call': '"never"', '/max_tokens': '5', '/reasoning_effort': '"huge"', '/response_format': '{"type":"grammar","grammar":"g"}', '/user': '"u"', '/metadata': '{"a": 1}'} spelling=['functions []', 'max_completion_tokens', 'stop []', 'tools []']
"""
    )
    assert (
        outline(parse(REQUESTS["chat"]))
        == """\
Request model='gpt-4.1' tool_choice=ToolChoice(where='/tool_choice', spelling='chat allowed_tools', mode='auto', names=('weather'), listed=True, parallel=False) sampling=Sampling(temperature=1.5, top_p=0.9, max_tokens=500, stop=('END'), seed=7, presence_penalty=0.1, frequency_penalty=0.2) thinking=Thinking(effort='minimal') output=OutputFormat(kind='json_schema', schema=b'{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}', name='answer', description='An answer.', strict=True) verbosity='low' stream=True candidates=1 user='user-1' metadata={'run': '1'} extras=chat{'/stream_options': '{"include_usage": true, "include_obfuscation": true}', '/service_tier': '"flex"', '/logprobs': 'true', '/logit_bias': '{"50256": -100}', '/top_logprobs': '2', '/store': 'true', '/prompt_cache_key': '"key"', '/prediction': '{"type": "content", "content": "x"}', '/modalities': '["text", "audio"]'} spelling=['max_completion_tokens']
  Message where='/messages/0' spelling='chat developer' role='system'
    Text where='/messages/0/content' text='Be brief.'
  Message where='/messages/1' spelling='chat list' role='user' name='ann'
    Text where='/messages/1/content/0' cache='' text='Look.'
    Media where='/messages/1/content/1' extras=chat{'/image_url/detail': '"high"'} kind='image' media_type='' source=Link(url='https://example.com/a.png')
    Media where='/messages/1/content/2' kind='image' media_type='image/png' source=Inline(data='iVBORw0KGgo=')
    Media where='/messages/1/content/3' spelling='chat wav' kind='audio' media_type='audio/wav' source=Inline(data='UklGRg==')
    Media where='/messages/1/content/4' spelling='chat file' kind='document' media_type='' source=Stored(issuer='openai', id='file_1')
    Media where='/messages/1/content/5' spelling='chat file' kind='document' media_type='application/pdf' source=Inline(data='JVBERg==') name='a.pdf'
  Message where='/messages/2' role='assistant'
    Reasoning where='/messages/2/reasoning_content' spelling='chat reasoning_content' texts=('I should look.')
    Text where='/messages/2/content' text='Two calls.'
    ToolCall where='/messages/2/tool_calls/0' signature=Signature(issuer='google', value='c2ln') id='call_1' name='weather' arguments='{"city": "Ljubljana"}'
    ToolCall where='/messages/2/tool_calls/1' id='call_2' name='calc' arguments='2+3' form='text'
  Message where='/messages/3' role='user'
    ToolResult where='/messages/3' call_id='call_1'
      Text where='/messages/3/content' text='rain'
  Message where='/messages/4' role='user'
    ToolResult where='/messages/4' spelling='chat list' call_id='call_2'
      Text where='/messages/4/content/0' text='5'
  Message where='/messages/5' role='system'
    Text where='/messages/5/content' text='Now in German.'
  Message where='/messages/6' spelling='chat list' role='assistant'
    Refusal where='/messages/6/content/0' spelling='chat part' text='No.'
  Message where='/messages/7' role='user'
    Text where='/messages/7/content' text='Please.'
  Tool where='/tools/0' name='weather' description='Weather.' parameters=b'{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}' strict=True
  Tool where='/tools/1' name='calc' form='text' grammar=b'{"type":"grammar","syntax":"lark","definition":"start: /.+/"}'
"""
    )


DOCUMENTS = {
    "history": HISTORY,
    "calls": CALLS,
    "media": MEDIA,
    "settings": SETTINGS,
    "odd": ODD,
    "all": REQUESTS["chat"],
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_is_written_as_it_was(name: str):
    assert render(parse(DOCUMENTS[name])) == DOCUMENTS[name]
    document = mark(DOCUMENTS[name])
    assert render(parse(document)) == document


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_unknown_field_belongs_to_the_nearest_value(name: str):
    found = list(find_marks(parse(mark(DOCUMENTS[name]))))
    assert [where for where, _ in found] == [output for _, output in found]


@pytest.mark.parametrize("message", [*HISTORY["messages"], *CALLS["messages"]])
def test_a_message_is_parsed_alike_with_unknown_fields(message: dict[str, Any]):
    """A request without such fields is read in one pass of its own."""
    alone = parse(messages(message))
    beside = parse({**messages(message), "vendor": 1})
    assert outline(alone.messages) == outline(beside.messages)
