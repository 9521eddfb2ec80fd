"""One JSON object a line in, one a line out; a bad line never stops the rest."""

import io
import json

import pytest

from dragoman.cli.batch import run_batch, run_line
from dragoman.interpreter import job_object
from dragoman.interpreter.errors import translate_error

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 50, "seed": 7}
CLAUDE = {"model": "claude-opus-5", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
SEED = {"where": "/seed", "what": "the model does not accept it", "kind": "dropped", "grade": "material", "leaves": 1}
ASK = {"id": "a", "op": "request", "from": "chat", "to": "messages", "model": "claude-opus-5", "body": HELLO}
REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "responseId": "r",
    "modelVersion": "g",
}
SSE = "data: " + json.dumps(REPLY) + "\n\n"


def work(line, **options):
    """The result of a line, as the reader of the output sees it."""
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    results = io.BytesIO()
    assert run_batch(io.BytesIO(raw), results, strict=options.get("strict", False)) == 0
    (lines,) = results.getvalue().splitlines()
    return json.loads(lines)


def problem(result):
    assert result.keys() == {"id", "ok", "problem"}
    assert result["ok"] is False
    assert result["problem"].keys() == {"kind", "message", "where"}
    return result["id"], result["problem"]["kind"], result["problem"]["where"]


def test_a_request_line_returns_body_model_stream_and_losses():
    assert work(ASK) == {
        "id": "a",
        "ok": True,
        "result": CLAUDE,
        "model": "claude-opus-5",
        "stream": False,
        "losses": [SEED],
    }


def test_a_request_without_a_model_keeps_its_own():
    result = work({name: value for name, value in ASK.items() if name != "model"})
    assert (result["model"], result["result"]["model"]) == ("m", "m")


def test_streaming_is_set_in_the_line_if_the_body_has_no_field_for_it():
    line = {
        "op": "request",
        "from": "gemini",
        "to": "chat",
        "model": "gpt-4.1",
        "stream": True,
        "body": {"contents": []},
    }
    result = work(line)
    assert (result["stream"], result["result"]["stream"]) == (True, True)


@pytest.mark.parametrize(("line", "options"), [(ASK | {"strict": True}, {}), (ASK, {"strict": True})])
def test_strict_refuses_losses_by_line_or_for_all(line, options):
    assert problem(work(line, **options)) == ("a", "unsupported", "/seed")


def test_a_line_can_reject_informational_losses():
    line = {"id": "a", "op": "request", "from": "chat", "to": "gemini", "model": "gemini-3-flash"}
    body = {"messages": [{"role": "user", "content": "hi"}], "user": "u"}
    assert work(line | {"body": body, "strict": True})["ok"]
    assert problem(work(line | {"body": body, "strict": "all"})) == ("a", "unsupported", "/user")


def test_a_response_line_returns_body_and_losses():
    result = work({"id": 1, "op": "response", "from": "gemini", "to": "chat", "body": REPLY | {"x": 1}})
    assert result["result"]["choices"][0]["message"]["content"] == "hi"
    loss = {
        "where": "/x",
        "what": "not known to the client's dialect",
        "kind": "dropped",
        "grade": "material",
        "leaves": 1,
    }
    assert result == {"id": 1, "ok": True, "result": result["result"], "losses": [loss]}


TOOLS = [{"type": "function", "function": {"name": "f 1", "parameters": {"type": "object", "properties": {}}}}]
PARTS = [{"functionCall": {"name": "f_1_3b6abec1", "args": {}}}]
CALLING = {**REPLY, "candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP"}]}
ANSWER = {"from": "gemini", "to": "chat", "model": "gemini-2.5-pro"}


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({"request": HELLO | {"tools": TOOLS}}, "f 1"),
        ({"request": {"contents": []}}, "f_1_3b6abec1"),
        ({}, "f_1_3b6abec1"),
    ],
    ids=["clients", "upstreams", "none"],
)
def test_a_reply_answers_the_clients_request_and_not_the_upstreams(request_, name):
    result = work({**ANSWER, "op": "response", "body": CALLING, **request_})
    assert result["result"]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == name
    result = work({**ANSWER, "op": "stream", "sse": "data: " + json.dumps(CALLING) + "\n\n", **request_})
    assert f'"name":"{name}"' in result["sse"]


def test_a_stream_line_returns_text_and_losses():
    result = work({"id": None, "op": "stream", "from": "gemini", "to": "chat", "sse": SSE})
    assert result["sse"].endswith("data: [DONE]\n\n")
    assert '"content":"hi"' in result["sse"]
    assert result == {"id": None, "ok": True, "result": None, "sse": result["sse"], "losses": []}


def test_the_losses_of_a_stream_are_returned():
    image = [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]
    reply = {**REPLY, "candidates": [{"content": {"role": "model", "parts": image}, "finishReason": "STOP"}]}
    result = work({"op": "stream", "from": "gemini", "to": "chat", "sse": "data: " + json.dumps(reply) + "\n\n"})
    assert [(loss["kind"], loss["leaves"]) for loss in result["losses"]] == [("dropped", 2)]


def test_a_stream_for_the_neutral_view_is_its_reply():
    result = work({"op": "stream", "from": "gemini", "to": "core", "sse": SSE})
    assert result == {"id": None, "ok": True, "result": result["result"], "losses": []}
    assert result["result"]["parts"] == [{"type": "text", "text": "hi"}]


def test_a_request_for_the_neutral_view_has_no_separate_model():
    result = work({"op": "request", "from": "chat", "to": "core", "body": HELLO})
    assert result.keys() == {"id", "ok", "result", "losses"}
    assert result["result"]["sampling"] == {"max_tokens": 50, "seed": 7}


@pytest.mark.parametrize(
    ("status", "written_status", "kind"), [({"status": 429}, 429, "rate_limit_error"), ({}, 502, "api_error")]
)
def test_an_error_page_that_is_not_json_is_described_by_its_status(status, written_status, kind):
    result = work({"op": "error", "from": "chat", "to": "messages", "body": "<html>oops</html>", **status})
    assert (result["status"], result["result"]["error"]["type"]) == (written_status, kind)
    assert result.keys() == {"id", "ok", "result", "status", "headers", "losses"}
    page = translate_error(status.get("status", 500), {}, b"<html>oops</html>", "chat", "messages")
    assert result["result"] == json.loads(page.body)


def test_a_result_that_is_not_json_is_returned_as_text():
    result = work({"op": "response", "from": "chat", "to": "chat", "body": "<html>"})
    assert result["result"] == "<html>"


@pytest.mark.parametrize(
    ("line", "identifier", "kind", "where"),
    [
        (b"not json", None, "invalid_request", ""),
        (b"[1]", None, "invalid_request", ""),
        (b'{"id":7,"op":"request"}', 7, "invalid_request", ""),
        (b'{"op":"request"}', None, "invalid_request", ""),
        ({"id": {"n": 1}, "op": 3}, {"n": 1}, "invalid_request", "/op"),
        (ASK | {"op": "dream"}, "a", "invalid_request", "/op"),
        (ASK | {"from": "core"}, "a", "invalid_request", "/from"),
        (ASK | {"to": "latin"}, "a", "invalid_request", "/to"),
        ({"id": "a", "op": "request", "from": "chat", "to": "messages"}, "a", "invalid_request", "/body"),
        ({"id": "a", "op": "stream", "from": "chat", "to": "messages", "body": {}}, "a", "invalid_request", "/sse"),
        (ASK | {"body": {"messages": 3, "model": "m"}}, "a", "invalid_request", "/messages"),
    ],
)
def test_an_invalid_line_returns_a_problem(line, identifier, kind, where):
    assert problem(work(line)) == (identifier, kind, where)


def test_an_unknown_value_is_reported_with_the_known_ones():
    result = work(ASK | {"op": "dream"})
    assert result["problem"]["message"] == "unknown op 'dream'; use one of request, response, stream, error"


def test_an_unexpected_exception_is_an_internal_problem(monkeypatch):
    def broken(job):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(job_object, "perform", broken)
    result = run_line(json.dumps(ASK).encode())
    assert result == {
        "id": "a",
        "ok": False,
        "problem": {"kind": "internal", "message": "ZeroDivisionError: oops", "where": ""},
    }


def test_a_bad_line_does_not_stop_the_rest_and_empty_lines_are_skipped():
    lines = b"\n".join([b"bad", b"", b"  ", json.dumps(ASK).encode()])
    results = io.BytesIO()
    assert run_batch(io.BytesIO(lines), results, strict=False) == 0
    assert [json.loads(line)["ok"] for line in results.getvalue().splitlines()] == [False, True]


def test_each_result_is_flushed_before_the_next_line_is_read():
    seen = []

    class Results(io.BytesIO):
        def flush(self):
            seen.append(self.getvalue().count(b"\n"))

    def lines():
        for count in range(2):
            assert seen == list(range(1, count + 1))
            yield b"bad\n"

    run_batch(lines(), Results(), strict=False)
    assert seen == [1, 2]


def test_a_streams_model_decides_how_its_request_was_adapted():
    long = "n" * 65
    tools = [{"type": "function", "function": {"name": long, "parameters": {"type": "object", "properties": {}}}}]
    parts = [{"functionCall": {"name": "n" * 55 + "_1e3fb6d5", "args": {}}}]
    reply = {**REPLY, "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    line = {**ANSWER, "op": "stream", "sse": "data: " + json.dumps(reply) + "\n\n", "request": HELLO | {"tools": tools}}
    assert f'"name":"{long}"' in work(line)["sse"]
    assert f'"name":"{long}"' not in work(line | {"model": "gemini-3-pro"})["sse"]


DEEP = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"id": "a\\"b", "op": "request", "body": %b}' % DEEP, 'a"b'),
        (b'{"op": "request", "from": "chat", "stream": true, "id": 7, "body": %b}' % DEEP, 7),
        (b'{"id": -1.5e2, "body": {"messa', -150),
        (b'{"body": {"id": 3, "messages": %b}}' % DEEP, None),
        (b'{"op": "\\"id\\":1", "body": %b}' % DEEP, None),
        (b'{"id": 01, "body": %b}' % DEEP, None),
        (b'{"id": {"a": 1}, "body": %b}' % DEEP, None),
        (b'{"a": "%b", "id": 1, "body": ' % (b"x" * 5000), None),
    ],
)
def test_an_unparsable_line_is_answered_with_its_id_if_that_is_near_the_beginning(line, found):
    assert problem(work(line)) == (found, "invalid_request", "")


def test_strict_mode_errors_name_the_reply():
    line = {"op": "response", "from": "gemini", "to": "chat", "body": REPLY | {"modelStatus": "s"}, "strict": True}
    assert work(line)["problem"]["message"].startswith(
        "strict mode: the reply cannot be translated without loss: dropped "
    )


def test_strict_mode_rejects_the_losses_of_a_stream():
    event = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}], "modelStatus": "s"}
    sse = f"data: {json.dumps(event)}\n\n"
    line = {"op": "stream", "from": "gemini", "to": "chat", "sse": sse}
    assert [loss["where"] for loss in work(line)["losses"]] == ["/modelStatus"]
    assert "the stream cannot be translated without loss" in work(line | {"strict": True})["problem"]["message"]


PRETTY = json.dumps(HELLO | {"messages": [{"role": "user", "content": "a\nb\r\u2028\u2029\x85\x0b\x0c\x1c"}]}, indent=2)
BROKEN = "<html>\r\n\u2028\x85<p>\n</html>"
LONG = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x\u2028" * 1_000_000}]}, ensure_ascii=False)


@pytest.mark.parametrize("target", ["chat", "messages", "gemini", "responses", "core"])
@pytest.mark.parametrize(
    "line",
    [
        {"op": "request", "from": "chat", "body": PRETTY},
        {"op": "request", "from": "chat", "body": PRETTY.replace("\n", "\r")},
        {"op": "request", "from": "chat", "body": PRETTY.encode().decode("unicode_escape")},
        {"op": "request", "from": "chat", "body": LONG},
        {"op": "request", "from": "chat", "body": json.loads(LONG)},
        {"op": "request", "from": "chat", "body": "\ud800"},
        {"op": "request", "from": "chat", "body": BROKEN},
        {"op": "response", "from": "gemini", "body": json.dumps(REPLY, indent=1).replace("\n", "\r\n")},
        {"op": "response", "from": "chat", "body": BROKEN},
        {"op": "error", "from": "chat", "body": BROKEN},
        {"op": "error", "from": "chat", "body": '{\n\r"error": {\n"message": "a\\u2028b"}}'},
        {"op": "stream", "from": "gemini", "sse": SSE.replace("hi", "a\u2028b\x85")},
        {"op": "stream", "from": "gemini", "sse": "data: {\r\n\r\n"},
        {"op": "request", "from": "chat", "id": "a\u2028\nb", "body": []},
    ],
    ids=lambda line: f"{line['op']}-{len(str(line))}",
)
@pytest.mark.parametrize("escaped", [True, False])
def test_each_job_is_answered_in_exactly_one_line_whatever_its_body_holds(line, target, escaped):
    raw = json.dumps({"id": 1, "to": target} | line, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    results = io.BytesIO()
    assert run_batch(io.BytesIO(raw + b"\n"), results, strict=False) == 0
    written = results.getvalue()
    assert written.endswith(b"\n")
    assert len(written.splitlines()) == 1
    (only,) = written.decode().splitlines()
    assert json.loads(only).keys() >= {"id", "ok"}


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"\xed\xa0\x80", b'{"id":1,"body":"\xff"}', b"\x00", b'{"id":"\xc3"}\r'])
def test_a_line_that_is_not_utf8_is_answered_in_one_line(bad):
    results = io.BytesIO()
    assert run_batch(io.BytesIO(bad + b"\n" + json.dumps(ASK).encode()), results, strict=False) == 0
    assert [json.loads(line)["ok"] for line in results.getvalue().decode().splitlines()] == [False, True]
