"""`dragoman translate`: standard input to standard output, losses to standard error."""

import json
import os
import subprocess
import sys
import threading

import pytest

from cli.console import run
from dragoman import __version__
from dragoman.cli import main

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50, "seed": 7}).encode()
PLAIN = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}).encode()
CLAUDE = {"model": "claude-opus-5", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
TO_CLAUDE = ["--from", "chat", "--to", "messages", "--model", "claude-opus-5"]
REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP", "avgLogprobs": 1}],
    "responseId": "r",
    "modelVersion": "g",
}
SEED = "the model does not accept it"


@pytest.fixture
def dragoman(monkeypatch, tmp_path):
    return lambda *arguments, given=b"": run(monkeypatch, tmp_path, ["translate", *arguments], given)


def test_a_request_is_translated_and_its_losses_are_printed(dragoman):
    code, written, result = dragoman("request", *TO_CLAUDE, given=CHAT)
    assert (code, json.loads(written)) == (0, CLAUDE)
    assert written.endswith(b"}\n")
    assert result == f"material dropped /seed: {SEED}\n"


def test_losses_are_printed_as_json_for_programs(dragoman):
    code, _, result = dragoman("request", *TO_CLAUDE, "--losses", "json", given=CHAT)
    assert (code, json.loads(result)) == (
        0,
        [{"where": "/seed", "what": SEED, "kind": "dropped", "grade": "material", "leaves": 1}],
    )
    assert result.endswith("]\n")
    assert dragoman("request", *TO_CLAUDE, "--losses", "json", given=PLAIN)[2] == "[]\n"


def test_a_loss_of_the_whole_document_is_reported_at_its_root(dragoman):
    asked = {"model": "m", "input": []}
    given = json.dumps(asked).encode()
    _, _, result = dragoman("request", "--from", "responses", "--to", "chat", "--model", "gpt-4.1", given=given)
    assert result.startswith("material approximated /: the request has no messages")


def test_strict_refuses_losses_with_exit_code_1(dragoman):
    code, written, result = dragoman("request", *TO_CLAUDE, "--strict", given=CHAT)
    message = f"strict mode: the request cannot be translated without loss: dropped /seed: {SEED}"
    assert (code, written, result) == (1, b"", f"dragoman: unsupported at /seed: {message}\n")
    assert dragoman("request", *TO_CLAUDE, "--strict", given=PLAIN)[0] == 0


INFORMATIONAL = json.dumps({**json.loads(PLAIN), "user": "u"}).encode()


def test_strict_accepts_informational_losses_and_strict_all_rejects_them(dragoman):
    to_gemini = ("--from", "chat", "--to", "gemini", "--model", "gemini-3-flash")
    code, _, printed = dragoman("request", *to_gemini, "--strict", given=INFORMATIONAL)
    assert (code, printed) == (0, "informational dropped /user: the target has no field for it\n")
    assert dragoman("request", *to_gemini, "--strict-all", given=INFORMATIONAL)[0] == 1


def test_the_leaves_of_a_dropped_value_are_printed_on_request(dragoman):
    given = json.dumps({**json.loads(PLAIN), "logit_bias": {"1": 2, "3": 4}}).encode()
    reason = "not known to the target"
    assert dragoman("request", *TO_CLAUDE, given=given)[2] == f"material dropped /logit_bias (2 values): {reason}\n"
    printed = dragoman("request", *TO_CLAUDE, "--losses", "leaves", given=given)[2]
    assert printed == f"material dropped /logit_bias/1: {reason}\nmaterial dropped /logit_bias/3: {reason}\n"


def test_a_problem_without_a_pointer_is_printed_without_one(dragoman):
    code, written, result = dragoman("request", *TO_CLAUDE, given=b"{")
    assert (code, written) == (1, b"")
    assert result.startswith("dragoman: invalid_request: ")


def test_a_response_is_translated(dragoman):
    code, written, result = dragoman("response", "--from", "gemini", "--to", "chat", given=json.dumps(REPLY).encode())
    assert code == 0
    assert json.loads(written)["choices"][0]["message"]["content"] == "hi"
    assert result == "informational dropped /candidates/0/avgLogprobs: not known to the client's dialect\n"


def test_a_response_answers_the_request_in_a_file(dragoman, tmp_path):
    tools = [{"type": "function", "function": {"name": "f 1", "parameters": {"type": "object", "properties": {}}}}]
    request = tmp_path / "request.json"
    request.write_bytes(json.dumps(json.loads(PLAIN) | {"tools": tools}).encode())
    alias = "f_1_3b6abec1"
    parts = [{"functionCall": {"name": alias, "args": {}}}]
    reply = {**REPLY, "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    more = ["--model", "gemini-2.5-pro", "--request", str(request)]
    _, written, _ = dragoman("response", "--from", "gemini", "--to", "chat", *more, given=json.dumps(reply).encode())
    assert json.loads(written)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "f 1"


@pytest.mark.parametrize(("options", "kind"), [(["--status", "429"], "rate_limit_error"), ([], "api_error")])
def test_an_error_is_translated_by_its_status(dragoman, options, kind):
    code, written, result = dragoman(
        "error", "--from", "chat", "--to", "messages", *options, given=b"<html>oops</html>"
    )
    assert (code, json.loads(written)["error"]["type"]) == (0, kind)
    assert result == "material dropped /: not an API error: only the status is sent\n"


SSE = (
    b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
    b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def test_a_stream_is_translated_to_its_end(dragoman):
    code, written, result = dragoman("stream", "--from", "chat", "--to", "messages", given=SSE)
    events = [line[7:] for line in written.decode().splitlines() if line.startswith("event: ")]
    assert events == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert (code, result) == (0, "")


def test_a_stream_with_losses_is_written_and_then_refused_in_strict_mode(dragoman):
    event = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"modelStatus":"s"}'
    words = ("stream", "--from", "gemini", "--to", "chat")
    assert dragoman(*words, given=b"data: %b\n\n" % event)[0] == 0
    code, written, printed = dragoman(*words, "--strict", given=b"data: %b\n\n" % event)
    assert (code, b"[DONE]" in written) == (1, True)
    assert "the stream cannot be translated without loss: dropped /modelStatus" in printed


def test_a_cut_stream_ends_in_an_error_of_the_clients_dialect(dragoman):
    code, written, _ = dragoman("stream", "--from", "chat", "--to", "messages", given=SSE[:100])
    assert code == 0
    assert b"event: error" in written


@pytest.mark.parametrize(
    "missing",
    [[], ["request"], ["request", "--from", "chat"], ["request", "--to", "chat"], ["--from", "chat", "--to", "chat"]],
)
def test_a_wrong_command_line_is_exit_code_2(dragoman, capsys, missing):
    with pytest.raises(SystemExit) as caught:
        dragoman(*missing)
    assert caught.value.code == 2


def test_a_request_file_that_is_not_there_is_exit_code_2(dragoman):
    with pytest.raises(SystemExit) as caught:
        dragoman("response", "--from", "chat", "--to", "messages", "--request", "nowhere.json", given=b"{}")
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "wrong", [["dream"], ["request", "--from", "core"], ["request", "--to", "latin"], ["request", "--losses", "xml"]]
)
def test_unknown_arguments_are_exit_code_2(dragoman, wrong):
    with pytest.raises(SystemExit) as caught:
        dragoman(*wrong)
    assert caught.value.code == 2


def test_a_batch_is_worked_through(dragoman):
    line = {
        "id": 1,
        "op": "request",
        "from": "chat",
        "to": "messages",
        "model": "claude-opus-5",
        "body": json.loads(CHAT),
    }
    code, written, _ = dragoman("--batch", given=json.dumps(line).encode() + b"\n")
    assert (code, json.loads(written)["ok"]) == (0, True)
    _, written, _ = dragoman("--batch", "--strict", given=json.dumps(line).encode() + b"\n")
    assert json.loads(written)["problem"]["kind"] == "unsupported"


def test_the_command_prints_its_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"dragoman {__version__}\n"


def test_a_file_is_translated_into_a_file(monkeypatch, tmp_path):
    (tmp_path / "in.json").write_bytes(b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}')
    files = [str(tmp_path / "in.json"), "-o", str(tmp_path / "out.json")]
    options = ["--from", "chat", "--to", "gemini", "--model", "gemini-3-flash"]
    for words in (["request", files[0], *options, *files[1:]], ["request", *options, *files]):
        assert run(monkeypatch, tmp_path, ["translate", *words])[:2] == (0, b"")
        written = json.loads((tmp_path / "out.json").read_text())
        assert written["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
        (tmp_path / "out.json").unlink()


def test_a_wrong_document_leaves_the_output_file_as_it_was(monkeypatch, tmp_path):
    (tmp_path / "out.json").write_text("before")
    words = ["--from", "chat", "--to", "gemini", "-o", str(tmp_path / "out.json")]
    for operation, given in (("request", b"{"), ("stream", b""), ("response", b"")):
        assert run(monkeypatch, tmp_path, ["translate", operation, *words], given)[0] == 1
    assert (tmp_path / "out.json").read_text() == "before"
    assert run(monkeypatch, tmp_path, ["translate", "--batch", "-o", str(tmp_path / "out.json")], b"")[0] == 0
    assert (tmp_path / "out.json").read_text() == ""


@pytest.mark.parametrize("words", [["request", "FILE", "--from", "chat", "--to", "gemini"], ["--batch"]])
def test_the_input_is_never_the_output_too(monkeypatch, tmp_path, words):
    file = tmp_path / "stdin"
    words = ["translate", *(str(file) if word == "FILE" else word for word in words)]
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, tmp_path, [*words, "-o", str(file)], b"given")
    assert (ended.value.code, file.read_bytes()) == (2, b"given")


def test_a_live_pipe_prints_what_it_received_before_it_is_closed():
    program = "from dragoman.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", program, "translate", "stream", "--from", "chat", "--to", "messages"]
    first, rest = SSE.split(b"\n\n", 1)
    # A flush that is missing is not missed where Python itself does not buffer.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=buffered, **pipes) as process:  # noqa: S603
        watch = threading.Timer(30, process.kill)
        watch.start()
        process.stdin.write(first + b"\n\n")
        process.stdin.flush()
        received = b""
        while b'"text":"hi"' not in received:
            line = process.stdout.readline()
            assert line, "the pipe was closed before it told what it had heard"
            received += line
        process.stdin.write(rest)
        process.stdin.close()
        received += process.stdout.read()
        watch.cancel()
        assert process.wait() == 0
    assert received.count(b"event: message_stop") == 1
