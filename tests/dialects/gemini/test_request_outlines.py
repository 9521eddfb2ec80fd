"""Requests of every form, each read to its last field; and written again as they were."""

import json
import re
from typing import Any

import pytest

from dialects.outline import find_marks, mark, outline
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.traits import Traits
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.request import parse_request
from dragoman.dialects.record import Call
from laws.maximal import REQUESTS


def parse(document: Any) -> Request:
    return parse_request(Call(json.dumps(document).encode(), "m", stream=True))


def render(request: Request) -> Any:
    return json.loads(DIALECT.render_request(request, Traits(dialect="gemini")).body)


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


PARTS: dict[str, Any] = {
    "contents": [
        user(
            {"text": "t"},
            {"text": "t", "thought": False},
            {"text": "t", "thought": True},
            {"text": "t", "thought": True, "thoughtSignature": "s"},
            {"text": "t", "thoughtSignature": "s"},
            {"thoughtSignature": "s"},
            {"thoughtSignature": "s", "thought": True},
            {"executableCode": {"code": "1"}, "thoughtSignature": "s"},
            {},
        ),
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}},
                {"functionCall": {"name": "f"}, "thoughtSignature": "s"},
                {"functionCall": {"name": "f", "args": {}}, "thought": False},
                {"functionCall": {"name": "f", "args": {}}, "thought": True},
                {"functionCall": {"args": {}}},
                {"functionCall": {"name": "f", "partialArgs": [], "willContinue": True}},
                {"functionCall": {"name": "f"}, "text": "t"},
            ],
        },
        user(
            {"functionResponse": {"id": "c", "name": "f", "response": {"a": 1}}},
            {"functionResponse": {"name": "f", "response": {"error": "x"}}, "thoughtSignature": "s"},
            {"functionResponse": {"name": "f", "response": {"error": "x", "b": 1}}, "thought": False},
            {"functionResponse": {"name": "f"}},
            {
                "functionResponse": {
                    "name": "f",
                    "response": {},
                    "parts": [
                        {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "n"}},
                        {"fileData": {"mimeType": "text/plain", "fileUri": "files/1"}},
                        {"inlineData": {"data": "AA=="}, "fileData": {"fileUri": "files/1"}},
                        {"odd": 1},
                    ],
                }
            },
        ),
        user(
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thoughtSignature": "s"},
            {"inlineData": {"mimeType": "IMAGE/png", "data": "AA==", "displayName": "n"}, "thought": False},
            {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
            {"inlineData": {"mimeType": "video/mp4", "data": ""}},
            {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}, "thought": True},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://e.org/files/a"}},
            {"fileData": {"fileUri": "https://youtube.com/watch"}},
            {"fileData": {"fileUri": "https://youtu.be/x"}},
            {"fileData": {"mimeType": "text/plain", "fileUri": "https://youtu.be/x"}},
            {"fileData": {"fileUri": "files/1"}},
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1/files/1"}},
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1"}},
            {"fileData": {"fileUri": "gs://b"}, "inlineData": {"data": "AA=="}},
        ),
    ]
}
TURNS: dict[str, Any] = {
    "systemInstruction": {"role": "system", "parts": [{"text": "a"}, {"text": "b"}]},
    "contents": [
        {"parts": [{"text": "t"}]},
        {"parts": {"text": "t"}},
        {"role": "user"},
        {"role": "model", "parts": []},
        {"role": "model", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ],
    "tools": [
        {
            "functionDeclarations": [{"name": "f", "description": "", "parameters": {"type": "OBJECT"}}, {"name": "g"}],
            "googleSearch": {},
        },
        {
            "functionDeclarations": [
                {"name": "h", "description": "d", "parametersJsonSchema": {}, "parameters": {"type": "OBJECT"}}
            ]
        },
        {"codeExecution": {}},
        {"functionDeclarations": []},
        {},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": []}},
    "generationConfig": {
        "stopSequences": [],
        "candidateCount": 2,
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT"},
        "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"thinkingLevel": "high", "thinkingBudget": 0},
    },
    "labels": {"a": "b"},
    "vendor": {"a": 1},
}
SINGLE: dict[str, Any] = {
    "systemInstruction": "s",
    "contents": {"role": "user", "parts": {"text": "t"}},
    "tools": {"functionDeclarations": [{"name": "f"}]},
    "toolConfig": {},
    "generationConfig": {
        "responseMimeType": "text/x.enum",
        "responseSchema": {},
        "responseJsonSchema": {},
        "thinkingConfig": {"thinkingLevel": "ODD"},
    },
}
EMPTY: dict[str, Any] = {
    "systemInstruction": {"parts": {"text": "s"}},
    "contents": [],
    "tools": [],
    "toolConfig": {"functionCallingConfig": {}},
    "generationConfig": {
        "thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"},
        "responseMimeType": "text/plain",
    },
}
ENVELOPE: dict[str, Any] = {"model": "models/inner", "project": "p", "request": {**TURNS, "sessionId": "x"}}
DOCUMENTS = {"parts": PARTS, "turns": TURNS, "single": SINGLE, "empty": EMPTY, "all": REQUESTS["gemini"]}


def test_every_form_of_a_part_is_read_whole():
    assert (
        outline(parse(PARTS))
        == """\
Request model='m' stream=True
  Message where='/contents/0' role='user'
    Text where='/contents/0/parts/0' text='t'
    Text where='/contents/0/parts/1' spelling='thought:false' text='t'
    Reasoning where='/contents/0/parts/2' texts=('t')
    Reasoning where='/contents/0/parts/3' signature=Signature(issuer='google', value='s') texts=('t')
    Text where='/contents/0/parts/4' signature=Signature(issuer='google', value='s') text='t'
    Text where='/contents/0/parts/5' spelling='no_text' signature=Signature(issuer='google', value='s') text=''
    Opaque where='/contents/0/parts/6' signature=Signature(issuer='google', value='s') dialect='gemini' raw=b'{"thought":true,"thoughtSignature":"s"}'
    Opaque where='/contents/0/parts/7' signature=Signature(issuer='google', value='s') dialect='gemini' raw=b'{"thoughtSignature":"s","executableCode":{"code": "1"}}'
    Opaque where='/contents/0/parts/8' dialect='gemini' raw=b'{}'
  Message where='/contents/1' role='assistant'
    ToolCall where='/contents/1/parts/0' id='c' name='f' arguments='{"a": 1}'
    ToolCall where='/contents/1/parts/1' signature=Signature(issuer='google', value='s') id='' name='f' arguments=''
    ToolCall where='/contents/1/parts/2' spelling='thought:false' id='' name='f' arguments='{}'
    ToolCall where='/contents/1/parts/3' extras=gemini{'/thought': 'true'} id='' name='f' arguments='{}'
    Opaque where='/contents/1/parts/4' dialect='gemini' raw=b'{"functionCall":{"args":{}}}'
    ToolCall where='/contents/1/parts/5' extras=gemini{'/functionCall/partialArgs': '[]', '/functionCall/willContinue': 'true'} id='' name='f' arguments=''
    Opaque where='/contents/1/parts/6' dialect='gemini' raw=b'{"text":"t","functionCall":{"name":"f"}}'
  Message where='/contents/2' role='user'
    ToolResult where='/contents/2/parts/0' spelling='response' call_id='c' name='f'
      Data where='/contents/2/parts/0/functionResponse/response' json=b'{"a": 1}'
    ToolResult where='/contents/2/parts/1' spelling='response' signature=Signature(issuer='google', value='s') call_id='' name='f' failed=True
      Data where='/contents/2/parts/1/functionResponse/response' json=b'{"error": "x"}'
    ToolResult where='/contents/2/parts/2' spelling='response thought:false' call_id='' name='f'
      Data where='/contents/2/parts/2/functionResponse/response' json=b'{"error": "x", "b": 1}'
    ToolResult where='/contents/2/parts/3' spelling='no_response' call_id='' name='f'
    ToolResult where='/contents/2/parts/4' spelling='response' call_id='' name='f'
      Data where='/contents/2/parts/4/functionResponse/response' json=b'{}'
      Media where='/contents/2/parts/4/functionResponse/parts/0' spelling='display_name' kind='image' media_type='image/png' source=Inline(data='AA==') name='n'
      Media where='/contents/2/parts/4/functionResponse/parts/1' kind='document' media_type='text/plain' source=Stored(issuer='google', id='files/1')
      Opaque where='/contents/2/parts/4/functionResponse/parts/2' dialect='gemini' raw=b'{"inlineData":{"data":"AA=="},"fileData":{"fileUri":"files/1"}}'
      Opaque where='/contents/2/parts/4/functionResponse/parts/3' dialect='gemini' raw=b'{"odd":1}'
  Message where='/contents/3' role='user'
    Media where='/contents/3/parts/0' signature=Signature(issuer='google', value='s') kind='image' media_type='image/png' source=Inline(data='AA==')
    Media where='/contents/3/parts/1' spelling='display_name thought:false' kind='image' media_type='IMAGE/png' source=Inline(data='AA==') name='n'
    Media where='/contents/3/parts/2' kind='audio' media_type='audio/wav' source=Inline(data='AA==')
    Media where='/contents/3/parts/3' kind='video' media_type='video/mp4' source=Inline(data='')
    Media where='/contents/3/parts/4' extras=gemini{'/thought': 'true'} kind='document' media_type='application/pdf' source=Inline(data='AA==')
    Media where='/contents/3/parts/5' kind='image' media_type='image/png' source=Link(url='https://e.org/files/a')
    Media where='/contents/3/parts/6' kind='video' media_type='' source=Link(url='https://youtube.com/watch')
    Media where='/contents/3/parts/7' kind='video' media_type='' source=Link(url='https://youtu.be/x')
    Media where='/contents/3/parts/8' kind='document' media_type='text/plain' source=Link(url='https://youtu.be/x')
    Media where='/contents/3/parts/9' kind='document' media_type='' source=Stored(issuer='google', id='files/1')
    Media where='/contents/3/parts/10' kind='document' media_type='' source=Stored(issuer='google', id='https://generativelanguage.googleapis.com/v1/files/1')
    Media where='/contents/3/parts/11' kind='document' media_type='' source=Link(url='https://generativelanguage.googleapis.com/v1')
    Opaque where='/contents/3/parts/12' dialect='gemini' raw=b'{"inlineData":{"data":"AA=="},"fileData":{"fileUri":"gs://b"}}'
"""
    )


def test_every_form_of_a_request_is_read_whole():
    assert (
        outline(parse(TURNS))
        == """\
Request model='m' tool_choice=ToolChoice(where='/toolConfig/functionCallingConfig', spelling='any no_names', mode='required') thinking=Thinking(effort='high', budget=0) output=OutputFormat(kind='json_schema', schema=b'{"type": "object"}') stream=True candidates=2 metadata={'a': 'b'} extras=gemini{'/vendor': '{"a": 1}', '/generationConfig/responseSchema': '{"type": "OBJECT"}'} spelling=['functionCallingConfig', 'generationConfig', 'stopSequences', 'thinkingConfig', 'thinkingLevel:high', 'toolConfig']
  Message where='/systemInstruction' spelling='role:system' role='system'
    Text where='/systemInstruction/parts/0' text='a'
    Text where='/systemInstruction/parts/1' text='b'
  Message where='/contents/0' spelling='no_role' role='user'
    Text where='/contents/0/parts/0' text='t'
  Message where='/contents/1' spelling='no_role one_part' role='user'
    Text where='/contents/1/parts' text='t'
  Message where='/contents/2' spelling='no_parts' role='user'
  Message where='/contents/3' role='assistant'
  Message where='/contents/4' spelling='role:model' role='user'
    ToolResult where='/contents/4/parts/0' spelling='response' call_id='' name='f'
      Data where='/contents/4/parts/0/functionResponse/response' json=b'{}'
  Tool where='/tools/0/functionDeclarations/0' spelling='tool:0 described' name='f' parameters=b'{"type": "OBJECT"}' openapi=True
  Tool where='/tools/0/functionDeclarations/1' spelling='tool:0' name='g'
  NativeTool where='/tools/0' spelling='tool:0' dialect='gemini' raw=b'{"googleSearch":{}}'
  Tool where='/tools/1/functionDeclarations/0' spelling='tool:1' extras=gemini{'/parameters': '{"type": "OBJECT"}'} name='h' description='d' parameters=b'{}'
  NativeTool where='/tools/2' spelling='tool:2' dialect='gemini' raw=b'{"codeExecution":{}}'
  NativeTool where='/tools/3' spelling='tool:3' dialect='gemini' raw=b'{"functionDeclarations":[]}'
  NativeTool where='/tools/4' spelling='tool:4' dialect='gemini' raw=b'{}'
"""
    )
    assert (
        outline(parse(SINGLE))
        == """\
Request model='m' stream=True extras=gemini{'/generationConfig/thinkingConfig/thinkingLevel': '"ODD"', '/generationConfig/responseSchema': '{}', '/generationConfig/responseJsonSchema': '{}', '/generationConfig/responseMimeType': '"text/x.enum"'} spelling=['generationConfig', 'one_content', 'thinkingConfig', 'toolConfig', 'tools_object']
  Message where='/systemInstruction' spelling='string_instruction' role='system'
    Text where='/systemInstruction' text='s'
  Message where='/contents' spelling='one_part' role='user'
    Text where='/contents/parts' text='t'
  Tool where='/tools/functionDeclarations/0' spelling='tool:0' name='f'
"""
    )
    assert (
        outline(parse(EMPTY))
        == """\
Request model='m' tool_choice=ToolChoice(where='/toolConfig/functionCallingConfig') output=OutputFormat(kind='text') stream=True spelling=['functionCallingConfig', 'generationConfig', 'thinkingConfig', 'thinkingLevel:THINKING_LEVEL_UNSPECIFIED', 'toolConfig', 'tools']
  Message where='/systemInstruction' spelling='one_part' role='system'
    Text where='/systemInstruction/parts' text='s'
"""
    )


def test_a_request_in_the_envelope_is_read_by_pointers_into_it():
    _, *bare = outline(parse(TURNS)).splitlines()
    head, *enveloped = outline(parse(ENVELOPE)).splitlines()
    assert enveloped == [line.replace("where='/", "where='/request/") for line in bare]
    assert (
        outline([head])
        == """\
'Request model=\\'inner\\' tool_choice=ToolChoice(where=\\'/request/toolConfig/functionCallingConfig\\', spelling=\\'any no_names\\', mode=\\'required\\') thinking=Thinking(effort=\\'high\\', budget=0) output=OutputFormat(kind=\\'json_schema\\', schema=b\\'{"type": "object"}\\') stream=True candidates=2 metadata={\\'a\\': \\'b\\'} extras=gemini{\\'/project\\': \\'"p"\\', \\'/request/vendor\\': \\'{"a": 1}\\', \\'/request/sessionId\\': \\'"x"\\', \\'/request/generationConfig/responseSchema\\': \\'{"type": "OBJECT"}\\'} spelling=[\\'code_assist\\', \\'functionCallingConfig\\', \\'generationConfig\\', \\'stopSequences\\', \\'thinkingConfig\\', \\'thinkingLevel:high\\', \\'toolConfig\\']'
"""
    )
    bare_model = json.loads(json.dumps(ENVELOPE)) | {"model": "inner"}
    assert render(parse(ENVELOPE)) == bare_model
    assert render(parse(mark(bare_model))) == mark(bare_model)
    found = list(find_marks(parse(mark({"model": "m", "request": PARTS}))))
    assert ("", "") in found
    assert all(where == output for where, output in found if "functionResponse/parts" not in output)


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ({"model": "models/x", "request": {"contents": []}}, "x"),
        ({"request": {"contents": []}}, "m"),
        ({"model": 7, "request": {"contents": []}}, "m"),
        ({"model": "models/x", "contents": []}, "m"),
        ({"contents": [], "request": {"contents": []}}, "m"),
    ],
)
def test_the_model_is_the_envelopes_or_the_urls(body: Any, model: str):
    request = parse(body)
    assert (request.model, request.stream) == (model, True)
    call = DIALECT.render_request(request, Traits(dialect="gemini"))
    assert (call.model, call.stream) == (model, True)
    assert parse_request(Call(b'{"model":"models/x","contents":[]}')).model == "x"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "/contents"),
        ({"request": {}}, "/request/contents"),
        ({"contents": [{"role": "critic"}]}, "/contents/0/role"),
        ({"request": {"contents": [{"role": "critic"}]}}, "/request/contents/0/role"),
        ({"contents": [{"parts": 7}]}, "/contents/0/parts"),
        ({"request": {"contents": [{"parts": 7}]}}, "/request/contents/0/parts"),
        ({"contents": [], "tools": [{"functionDeclarations": [{}]}]}, "/tools/0/functionDeclarations/0"),
    ],
)
def test_a_broken_request_is_refused_by_its_pointer(body: Any, where: str):
    with pytest.raises(Problem) as caught:
        parse(body)
    assert (caught.value.kind, caught.value.where) == ("invalid_request", where)


@pytest.mark.parametrize("role", ["function", "tool", ""])
def test_legacy_roles_are_the_users(role: str):
    assert parse({"contents": [{"role": role, "parts": []}]}).messages[0].role == "user"


CHOICES = [
    ({"mode": "AUTO"}, "mode='auto'"),
    ({"mode": "ANY", "allowedFunctionNames": ["f"]}, "mode='required' names=('f')"),
    ({"mode": "NONE"}, "mode='none'"),
    ({"mode": "VALIDATED"}, "mode='auto' validated=True"),
    ({"mode": "validated"}, "spelling='validated' mode='auto' validated=True"),
    ({"mode": "any", "allowedFunctionNames": []}, "spelling='any no_names' mode='required'"),
]


@pytest.mark.parametrize(("given", "read"), CHOICES)
def test_every_form_of_a_choice_is_read_whole_and_written_again(given: Any, read: str):
    body = {"contents": [], "toolConfig": {"functionCallingConfig": given}}
    assert outline(parse(body).tool_choice) == f"ToolChoice where='/toolConfig/functionCallingConfig' {read}\n"
    assert render(parse(body)) == body
    assert render(parse(mark(body))) == mark(body)


def test_an_unknown_mode_is_ignored():
    body = {"contents": [], "toolConfig": {"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}}}
    assert (
        outline(parse(body).tool_choice)
        == "ToolChoice where='/toolConfig/functionCallingConfig' spelling='MODE_UNSPECIFIED'\n"
    )
    assert render(parse(body)) == {"contents": [], "toolConfig": {"functionCallingConfig": {}}}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_is_written_as_it_was(name: str):
    assert render(parse(DOCUMENTS[name])) == DOCUMENTS[name]
    document = mark(DOCUMENTS[name])
    assert render(parse(document)) == document


@pytest.mark.parametrize("name", ["parts", "turns"])
def test_an_unknown_field_belongs_to_the_nearest_value(name: str):
    found = [one for one in find_marks(parse(mark(DOCUMENTS[name]))) if "functionResponse/parts" not in one[1]]
    assert [where for where, _ in found] == [output for _, output in found]
    assert found


CARRIED = {"executableCode", "googleSearch", "codeExecution"}


def to_snake_case(document: Any) -> Any:
    """The document with its names in snake_case, but for those that are only carried."""
    if isinstance(document, dict):
        names = {
            name: name if name in CARRIED else re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)
            for name in document
        }
        return {names[name]: to_snake_case(value) for name, value in document.items()}
    return [to_snake_case(value) for value in document] if isinstance(document, list) else document


@pytest.mark.parametrize("name", ["parts", "turns", "single", "empty"])
def test_names_in_snake_case_are_read_alike(name: str):
    assert outline(parse(to_snake_case(DOCUMENTS[name]))) == outline(parse(DOCUMENTS[name]))
