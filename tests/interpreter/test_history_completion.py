"""A history for another vendor's model of the client's dialect: missing call ids and the order of tool results."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.passthrough import remove_rejected_signatures
from dragoman.interpreter.translate import parse_request, translate_request
from dragoman.interpreter.translation import TranslationTask

OWN = {"chat": "gpt-5.6", "responses": "gpt-5", "messages": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}
A, B = "call_489338739af14cdb06a86196", "call_f39c8c4abe9b7c487ea4865c"
"""The generated ids of the calls f and g, the first and second of a history."""


def translate(dialect, model, body, **options):
    return translate_request(Call(body, "asked"), dialect, dialect, model=model, **options)


def write_history(dialect, items):
    name = {"chat": "messages", "responses": "input", "messages": "messages", "gemini": "contents"}[dialect]
    return f'{{ "{name}" : [ {items} ], "caf\\u00e9":"\u00e9" }}'.encode()


# Dialect, a model of another vendor, the client's history, the same with ids, and the reported pointers.
GAPS = [
    (
        "chat",
        "llama-4",
        (
            '{"role":"assistant","tool_calls":[ {"type":"function","function":{"name":"f","arguments":"{}"} },'
            '{"id" : null,"type":"custom","custom":{"name":"g","input":""}}]} , {"role":"tool","content":"1"},'
            '{"role":"tool","tool_call_id":"" , "content":"2"}'
        ),
        (
            f'{{"role":"assistant","tool_calls":[ {{"type":"function","function":{{"name":"f","arguments":"{{}}"}},"id":"{A}" }},'
            f'{{"id" : "{B}","type":"custom","custom":{{"name":"g","input":""}}}}]}} , '
            f'{{"role":"tool","content":"1","tool_call_id":"{A}"}},{{"role":"tool","tool_call_id":"{B}" , "content":"2"}}'
        ),
        ("/messages/0/tool_calls/0/id /messages/0/tool_calls/1/id /messages/1/tool_call_id /messages/2/tool_call_id"),
    ),
    (
        "responses",
        "llama-4",
        (
            '{"type":"function_call","name":"f","arguments":"{}"},{"type":"reasoning","summary":[]},'
            '{"type":"custom_tool_call","name":"g","input":""},{"type":"function_call_output","output":"1"},'
            '{"type":"custom_tool_call_output","output":"2"},{"role":"user","content":"go"}'
        ),
        (
            f'{{"type":"function_call","name":"f","arguments":"{{}}","call_id":"{A}"}},{{"type":"reasoning","summary":[]}},'
            f'{{"type":"custom_tool_call","name":"g","input":"","call_id":"{B}"}},'
            f'{{"type":"function_call_output","output":"1","call_id":"{A}"}},'
            f'{{"type":"custom_tool_call_output","output":"2","call_id":"{B}"}},{{"role":"user","content":"go"}}'
        ),
        ("/input/0/call_id /input/2/call_id /input/3/call_id /input/4/call_id"),
    ),
    (
        "messages",
        "glm-5",
        (
            '{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","name":"g"}]},'
            '{"role":"user","content":[{"type":"tool_result"}, {"type":"tool_result","content":"2"}]}'
        ),
        (
            f'{{"role":"assistant","content":[{{"type":"tool_use","name":"f","input":{{}},"id":"{A}"}},'
            f'{{"type":"tool_use","name":"g","id":"{B}"}}]}},{{"role":"user","content":[{{"type":"tool_result",'
            f'"tool_use_id":"{A}"}}, {{"type":"tool_result","content":"2","tool_use_id":"{B}"}}]}}'
        ),
        (
            "/messages/0/content/0/id /messages/0/content/1/id "
            "/messages/1/content/0/tool_use_id /messages/1/content/1/tool_use_id"
        ),
    ),
    (
        "gemini",
        "other",
        (
            '{"role":"model","parts":[{"function_call":{"name":"f"},"thoughtSignature":"eA=="},{"functionCall":{"name":"g"}}]},'
            '{"role":"user","parts":[{"functionResponse":{"name":"g"}},{"function_response":{"name":"f"}}]}'
        ),
        (
            f'{{"role":"model","parts":[{{"function_call":{{"name":"f","id":"{A}"}},"thoughtSignature":"eA=="}},'
            f'{{"functionCall":{{"name":"g","id":"{B}"}}}}]}},'
            f'{{"role":"user","parts":[{{"functionResponse":{{"name":"g","id":"{B}"}}}},'
            f'{{"function_response":{{"name":"f","id":"{A}"}}}}]}}'
        ),
        (
            "/contents/0/parts/0/function_call/id /contents/0/parts/1/functionCall/id "
            "/contents/1/parts/0/functionResponse/id /contents/1/parts/1/function_response/id"
        ),
    ),
]


@pytest.mark.parametrize(
    ("dialect", "model", "history", "expected", "pointers"), GAPS, ids=lambda value: str(value)[:9]
)
def test_another_vendors_model_gets_the_missing_ids_of_calls_and_results(dialect, model, history, expected, pointers):
    result = translate(dialect, model, write_history(dialect, history), strict=True)
    assert result.call.body == write_history(dialect, expected)
    assert " ".join(loss.where for loss in result.losses) == pointers
    assert {loss.grade for loss in result.losses} == {"informational"}
    with pytest.raises(Problem, match="strict mode"):
        translate(dialect, model, write_history(dialect, history), strict="all")
    # The next turn starts with the same bytes, and a history that is complete stays as it is.
    longer = translate(dialect, model, write_history(dialect, f'{history},{{"role":"user"}}')).call.body
    assert write_history(dialect, f'{expected},{{"role":"user"}}') == longer
    again = translate(dialect, model, result.call.body)
    assert again.call.body == result.call.body
    assert not again.losses


@pytest.mark.parametrize(
    ("dialect", "model", "history", "expected", "pointers"), GAPS, ids=lambda value: str(value)[:9]
)
def test_its_own_vendor_and_an_exact_upstream_judge_a_history_without_ids(dialect, model, history, expected, pointers):
    body = write_history(dialect, history)
    assert translate(dialect, OWN[dialect], body).call.body == body
    assert translate(dialect, "", body).call.body == body
    task = TranslationTask(Call(body, "asked"), dialect_named(dialect), dialect_named(dialect), model, exact=True)
    assert parse_request(task).translate(None).call.body == body


def test_a_call_without_an_id_gets_that_of_its_result_and_a_result_that_of_its_call():
    call = '{"type":"function_call","name":"f","arguments":"{}"%s}'
    output = '{"type":"function_call_output","output":"1"%s}'
    given = ',"call_id":"mine !"'
    for history in (f"{call % given},{output % ''}", f"{call % ''},{output % given}"):
        result = translate("responses", "llama-4", write_history("responses", history))
        assert result.call.body == write_history("responses", f"{call % given},{output % given}")


def test_a_generated_id_has_the_form_that_the_model_takes():
    history = '{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}}]},{"role":"tool"}'
    call, result = json.loads(translate("chat", "mistral-large", write_history("chat", history)).call.body)["messages"]
    assert len(result["tool_call_id"]) == 9
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    call, result = json.loads(translate("chat", "kimi-k2", write_history("chat", history)).call.body)["messages"]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "functions.f:0"


def test_a_gemini_model_that_takes_no_ids_gets_none():
    body = write_history("gemini", GAPS[3][2])
    assert translate("gemini", "gemini-2.5-pro", body).call.body == body


def test_a_result_without_a_call_and_a_history_that_cannot_be_read_are_left_to_the_server():
    for history in ('{"role":"tool","content":"1"}', '7,{"role":"tool"}', '{"role":"assistant","tool_calls":[7,{}]}'):
        body = write_history("chat", history)
        assert translate("chat", "llama-4", body).call.body == body


BEFORE, LATER = '{"type":"text","text":"caf\\u00e9"}', '{"type":"text","text":"b"}'
RESULTS = '{"type":"tool_result","tool_use_id":"t1"}', '{"type":"tool_result"}'
CALLS = (
    '{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},'
    '{"type":"tool_use","id":"t2","name":"g","input":{}}]}'
)


def write_turn(*blocks):
    return write_history("messages", f'{CALLS},{{"role":"user","content":[ {" , ".join(blocks)} ]}}')


def test_tool_results_come_first_in_a_turn_for_another_vendors_model():
    one, two = RESULTS
    result = translate("messages", "glm-5", write_turn(BEFORE, one, LATER, two, BEFORE))
    named = two.replace("}", ',"tool_use_id":"t2"}')
    assert result.call.body == write_turn(one, named, BEFORE, LATER, BEFORE)
    pointers = ["/messages/1/content/0", "/messages/1/content/2", "/messages/1/content/3/tool_use_id"]
    assert [loss.where for loss in result.losses] == pointers
    assert {loss.grade for loss in result.losses} == {"informational"}
    body = write_turn(BEFORE, *RESULTS)
    assert translate("messages", "claude-opus-5-5", body).call.body == body
    assert translate("messages", "", body).call.body == body


def test_a_history_in_the_clients_envelope_is_completed_where_it_is():
    body = b'{"model":"a","project":"p","request":' + write_history("gemini", GAPS[3][2]) + b"}"
    result = translate("gemini", "other", body, form="code_assist")
    sent = json.loads(result.call.body)["request"]["contents"]
    assert [part["functionCall"]["id"] for part in sent[0]["parts"]] == [A, B]
    assert result.losses[0].where == "/request/contents/0/parts/0/function_call/id"


def test_tool_results_come_first_in_a_turn_of_several_messages():
    one, two = RESULTS
    two = two.replace("}", ',"tool_use_id":"t2"}')
    text, late, user = (
        '{"role":"user","content":"a"}',
        '{"role":"user","content":"z"}',
        '{"role" : "user","content":[%s]}',
    )
    history = f"{CALLS},{text} , {user % f'{BEFORE},{one}'},{user % two},{late}"
    expected = f"{CALLS},{user % f'{one},{two}'} , {user % BEFORE},{text},{late}"
    result = translate("messages", "glm-5", write_history("messages", history))
    assert result.call.body == write_history("messages", expected)
    assert [loss.where for loss in result.losses] == ["/messages/1", "/messages/2/content/0"]


def test_an_id_that_is_a_number_is_not_missing():
    history = '{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"f"}}]},{"role":"tool","tool_call_id":7}'
    body = write_history("chat", history)
    assert translate("chat", "llama-4", body).call.body == body


def test_a_request_without_rejected_signatures_has_the_ids_too():
    signed = '{"type":"thinking","thinking":"a","signature":"s"},'
    unsigned = GAPS[2][2].replace('"name":"g"', '"name":"g","input":{}')
    history = unsigned.replace('"content":[', f'"content":[{signed}', 1)
    body = b'{"model":"a","max_tokens":9,' + write_history("messages", history)[1:]
    call, losses = remove_rejected_signatures(Call(body, "a"), dialect_named("messages"), "glm-5")
    sent = json.loads(call.body)["messages"]
    assert [block["type"] for block in sent[0]["content"]] == ["tool_use", "tool_use"]
    assert [block["id"] for block in sent[0]["content"]] == [A, B]
    assert [block["tool_use_id"] for block in sent[1]["content"]] == [A, B]
    assert len(losses) == 5
    body = b'{"model":"a","max_tokens":9,' + write_history("messages", unsigned)[1:]
    assert remove_rejected_signatures(Call(body, "a"), dialect_named("messages"), "glm-5") is None
