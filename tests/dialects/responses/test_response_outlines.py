"""Whole replies of every form, each read to its last field and written again; the tables of finishes and of usage."""

import json
from typing import Any

import pytest

from dialects.outline import outline, short
from dragoman.core.parts import (
    Citation,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Signature,
    Text,
    ToolCall,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Sampling, Tool, ToolChoice
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras
from dragoman.dialects.responses.response import build_response, parse_response


def reply(*output: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 5,
        "model": "m",
        "status": "completed",
        "output": list(output),
        **fields,
    }


def parse(document: Any) -> Response:
    return parse_response(json.dumps(document).encode())


def build(response: Response, request: Request | None = None) -> Any:
    return json.loads(build_response(response, request))


FULL = reply(
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a"}],
        "encrypted_content": "e",
        "status": "completed",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "incomplete",
        "phase": "final",
        "x": 1,
        "content": [
            {
                "type": "output_text",
                "text": "t",
                "annotations": [{"type": "url_citation", "url": "u"}],
                "logprobs": [],
                "y": 2,
            },
            {"type": "refusal", "refusal": "no", "z": 3},
            {"type": "odd"},
        ],
    },
    {
        "type": "message",
        "id": "msg_2",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "u", "annotations": [], "logprobs": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
        "namespace": "n",
    },
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "f", "arguments": '{"a', "status": "incomplete"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c3", "name": "p", "input": "x", "status": "incomplete"},
    {"type": "function_call", "id": "fc_3", "call_id": "c4", "name": "f", "arguments": "{}", "status": "odd"},
    {"type": "web_search_call", "id": "ws_1"},
    {"type": "message", "id": "msg_3", "role": "critic", "content": [{"type": "output_text", "text": "u"}]},
    incomplete_details={"odd": 1},
    usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    service_tier="default",
    user=None,
)


def test_every_form_of_an_item_is_read_whole():
    assert (
        outline(parse(FULL))
        == """\
Response extras=responses{'/incomplete_details': '{"odd": 1}', '/service_tier': '"default"'} id='resp_1' model='m' finish=Finish(reason='tool_calls', raw='completed') usage=Usage(input=1, output=2) created=5
  Reasoning where='/output/0' extras=responses{'/id': '"rs_1"', '/status': '"completed"'} signature=Signature(issuer='openai', value='e', item='rs_1') texts=('a')
  Text where='/output/1/content/0' spelling='first' extras=responses{'/y': '2', '/item/id': '"msg_1"', '/item/phase': '"final"', '/item/x': '1'} text='t' citations=(Citation(dialect='responses', raw=b'{"type": "url_citation", "url": "u"}', url='u'))
  Refusal where='/output/1/content/1' spelling='same' extras=responses{'/z': '3'} text='no'
  Opaque where='/output/1/content/2' spelling='same' extras=responses{'/item/status': '"incomplete"'} dialect='responses' raw=b'{"type": "odd"}'
  Text where='/output/2/content/0' spelling='first' extras=responses{'/item/id': '"msg_2"'} text='u'
  ToolCall where='/output/3' extras=responses{'/id': '"fc_1"'} id='c1' name='f' arguments='{}' namespace='n'
  ToolCall where='/output/4' extras=responses{'/id': '"fc_2"'} id='c2' name='f' arguments='{"a' complete=False
  ToolCall where='/output/5' extras=responses{'/id': '"ctc_1"'} id='c3' name='p' arguments='x' form='text' complete=False
  ToolCall where='/output/6' extras=responses{'/id': '"fc_3"', '/status': '"odd"'} id='c4' name='f' arguments='{}'
  Opaque where='/output/7' dialect='responses' raw=b'{"type": "web_search_call", "id": "ws_1"}'
  Opaque where='/output/8' dialect='responses' raw=b'{"type": "message", "id": "msg_3", "role": "critic", "content": [{"type": "output_text", "text": "u"}]}'
"""
    )


def test_every_form_of_an_item_is_written_again():
    again = build(parse(FULL))
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    usage |= {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    frame = {"error": None, "instructions": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    frame |= {"temperature": None, "top_p": None, "metadata": None}
    expected = {**frame, **{name: value for name, value in FULL.items() if name != "user"}, "usage": usage}
    assert again == expected


def test_items_without_all_they_need_are_still_read():
    bare = [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": '{"a'},
        {"type": "custom_tool_call", "call_id": "c3", "name": "p"},
        {"type": "message", "content": "text", "status": "in_progress"},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r"}]},
    ]
    assert (
        outline(parse({"output": bare}))
        == """\
Response id='' model='' finish=Finish(reason='tool_calls', raw='completed')
  ToolCall where='/output/0' id='c1' name='f' arguments='{}'
  ToolCall where='/output/1' id='c2' name='f' arguments='{"a' complete=False
  ToolCall where='/output/2' id='c3' name='p' arguments='' form='text'
  Text where='/output/3/content' spelling='first' extras=responses{'/item/status': '"in_progress"'} text='text'
  Opaque where='/output/4' dialect='responses' raw=b'{"type": "message", "role": "assistant", "content": []}'
  Reasoning where='/output/5' spelling='content' texts=('r')
"""
    )


FOREIGN = Response(
    id="r",
    model="m",
    parts=(
        Reasoning(texts=("a",), signature=Signature("openai", "s")),
        Text(text="x", citations=(Citation("chat", b"{}", url="u"),)),
        Refusal(text="no"),
        Data(json=b"1"),
        Opaque(dialect="gemini", raw=b"{}"),
        Media(kind="image", media_type="image/png", source=Inline("AA==")),
        Media(kind="image", media_type="", source=Link("https://e.org")),
        ToolCall(id="c1", name="f", arguments="{}", namespace="n"),
        ToolCall(id="c2", name="p", arguments="x", form="text"),
        ToolCall(id="c3", name="f", arguments="{", complete=False),
    ),
    finish=Finish("tool_calls"),
    usage=Usage(input=5, output=4, cached=1, cache_written=2, reasoning=3),
)
STEM = "454349e422f05297191ead13e21d3db5"


def test_a_foreign_reply_is_written_whole():
    def text(words: str, number: int, *annotations: Any) -> dict[str, Any]:
        content = {"type": "output_text", "text": words, "annotations": list(annotations), "logprobs": []}
        return {
            "type": "message",
            "id": f"msg_{STEM}{number:04x}",
            "status": "completed",
            "role": "assistant",
            "content": [content],
        }

    refusal = {**text("", 2), "content": [{"type": "refusal", "refusal": "no"}]}
    call = {"type": "function_call", "status": "completed", "name": "f", "arguments": "{}"}
    assert build(FOREIGN) == {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "m",
        "output": [
            {
                "type": "reasoning",
                "id": f"rs_{STEM}0000",
                "summary": [{"type": "summary_text", "text": "a"}],
                "encrypted_content": "s",
            },
            text("x", 1, {"type": "url_citation", "url": "u", "title": "", "start_index": 0, "end_index": 1}),
            refusal,
            text("1", 3),
            {"type": "image_generation_call", "id": f"ig_{STEM}0004", "status": "completed", "result": "AA=="},
            {**call, "id": f"fc_{STEM}0005", "call_id": "c1", "namespace": "n"},
            {
                "type": "custom_tool_call",
                "id": f"ctc_{STEM}0006",
                "status": "completed",
                "call_id": "c2",
                "name": "p",
                "input": "x",
            },
            {**call, "id": f"fc_{STEM}0007", "call_id": "c3", "arguments": "{", "status": "incomplete"},
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
        "metadata": None,
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 9,
        },
    }


ECHOED = (
    "reasoning",
    "text",
    "store",
    "truncation",
    "service_tier",
    "prompt_cache_key",
    "background",
    "max_tool_calls",
    "top_logprobs",
    "prompt",
    "metadata",
    "user",
)


def test_a_reply_echoes_the_clients_request():
    fields = {f"/{name}": b'{"a":1}' for name in ECHOED} | {"/include": b"[]", "/reasoning/b": b"2"}
    request = Request(
        model="other",
        messages=(Message(role="system", parts=(Text(text="i"),)),),
        tools=(Tool(name="f", spelling="no strict,no parameters"), Tool(name="g", namespace="n", spelling="group")),
        tool_choice=ToolChoice(mode="required", parallel=False),
        sampling=Sampling(temperature=1, top_p=0.5, max_tokens=7),
        continues="before",
        extras=Extras("responses", fields),
    )
    empty = {"type": "function", "parameters": {"type": "object", "properties": {}}, "strict": False}
    reply = build(Response(id="r", model="m", created=5, parts=(), finish=Finish("stop")), request)
    assert reply == {
        "id": "r",
        "object": "response",
        "created_at": 5,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": "i",
        "model": "m",
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "required",
        "tools": [
            {**empty, "name": "f"},
            {"type": "namespace", "name": "n", "description": "", "tools": [{**empty, "name": "g"}]},
        ],
        "temperature": 1,
        "top_p": 0.5,
        "max_output_tokens": 7,
        "previous_response_id": "before",
        "usage": None,
        **{name: {"a": 1} for name in ECHOED},
    }


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "Problem(kind='malformed_reply', message='the reply has no output', status=502, where='/output')"),
        (
            {"status": "failed"},
            "Problem(kind='internal', message='the reply failed without an error message', status=500, code='server_error')",
        ),
        (
            {"error": {"code": "slow_down", "message": "m"}},
            "Problem(kind='overloaded', message='m', status=503, code='slow_down', detail=",
        ),
        ({"status": "failed", "error": "m"}, "Problem(kind='internal', message='m', status=500, detail="),
        (
            {"output": [{"type": "function_call", "call_id": "c"}]},
            "Problem(kind='malformed_reply', message='a tool call has no name', status=502, where='/output/0/name')",
        ),
        (
            {"output": [{"type": "message", "content": [{"type": "input_image"}]}]},
            "Problem(kind='malformed_reply', message='an image or file needs a URL, data or a file_id', status=502, where='/output/0/content/0')",
        ),
        ({"output": [], "usage": {"input_tokens": "x"}}, "Problem(kind='malformed_reply', message="),
        ({"output": 7}, "Problem(kind='malformed_reply', message="),
    ],
)
def test_a_broken_reply_is_a_problem(document: Any, problem: str):
    with pytest.raises(Problem) as caught:
        parse(document)
    assert short(caught.value).startswith(problem)


def test_an_error_next_to_an_answer_is_kept():
    assert parse({"status": "completed", "output": [], "error": {"code": "x"}}).extras == Extras(
        "responses", {"/error": b'{"code": "x"}'}
    )
