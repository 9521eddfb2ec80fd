"""`dragoman chat` in scripts and pipes, without a terminal: standard output has only the answers."""

import asyncio
import contextlib
import io
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from cli.terminal import environment
from dragoman.cli import main
from dragoman.config import ANONYMOUS_NAME
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.mcp.server.service import LOCAL_CALLER
from dragoman.simulator import Answer, Call, Received, read_fault
from dragoman.simulator.runner import Running, in_thread
from mcp_peers import PEERS

COMMAND = [sys.executable, "-c", "import sys; from dragoman.cli import main; sys.exit(main())", "chat"]
PLAIN = PEERS / "plain.py"
SERVER = (
    f'[tools.plain]\ncommand = {sys.executable!r}\nargs = [{str(PLAIN)!r}]\nlocal = true\nallow = ["colour", "hang"]\n'
)
MODELS = '[models]\n"usual" = "gemini/gemini-3-flash"\n'
Chat = Callable[..., tuple[int, str, str]]


def script(received: Received) -> Any:
    last = received.request.turns[-1]
    if last.results and not last.text and len(received.request.turns) > 3:
        return read_fault("400")
    if last.results and not last.text:
        return Answer(text="`````\nIt came to this.")
    verb, _, rest = last.text.partition(" ")
    match verb:
        case "fail":
            return read_fault(rest)
        case "call":
            call = Call(id="1", name=rest, arguments={"url": "https://example.invalid/\x1b"})
            return Answer(text="Let me see.", calls=(call,), end="calls")
        case "fetch":
            return Answer(calls=(Call(id="1", name="web_fetch", arguments={"url": rest}),), end="calls")
        case "broken":
            return Answer(text="I see.\nTOOL_CALL: web_fetch\nARGUMENTS: {,}")
        case "cut":
            return Answer(text="This is", end="length")
        case "count":
            return Answer(text=" ".join(map(str, range(int(rest)))))
        case _:
            return Answer(text=f"You said {last.text}.")


@pytest.fixture
def simulator() -> Generator[Running]:
    with in_thread(script=script) as running:
        yield running


@pytest.fixture
def chat(simulator: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Chat:
    """Run the command in this process, with a configuration, and lines on standard input."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, typed: str = "", more: str = "") -> tuple[int, str, str]:
        (tmp_path / "dragoman.toml").write_text(
            f'[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\nbase_url = "{simulator.base_url}"\n{more}'
        )
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = main(["chat", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def request_at(simulator: Running, at: int = -1) -> Any:
    return simulator.requests[at].json()


def test_once_writes_only_the_answer_to_stdout_and_calls_to_stderr(chat, simulator):
    code, out, err = chat("--once", "call web_fetch")
    assert (code, out) == (0, "`````\nIt came to this.\n")
    assert "→ [1] web_fetch(url=https://example.invalid/\ufffd)\n← [1] web_fetch: failed" in err
    assert err.index("Let me see.\n") < err.index("→ [1]")
    assert "\x1b" not in err
    assert len(request_at(simulator, 0)["tools"][0]["functionDeclarations"]) == 2


def test_once_takes_its_prompt_from_standard_input_and_shows_calls_whole_if_wanted(chat):
    code, out, err = chat("--once", "-", "--verbose", typed="call web_fetch\n")
    assert (code, out) == (0, "`````\nIt came to this.\n")
    assert '[1] web_fetch\n    {\n      "url": "https://example.invalid/' in err


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("fail 401", "what to do: check the key of that upstream"),
        ("fail 429,retry-after=30", "what to do: wait 30 seconds and try again"),
        ("fail 400", "what to do: use fewer tools"),
    ],
)
def test_an_upstream_error_is_printed_with_advice_and_sets_the_exit_code(chat, prompt, words):
    code, out, err = chat("--once", prompt)
    assert (code, out) == (1, "")
    assert "error: " in err
    assert words in err


def test_json_is_one_object_for_each_turn(chat):
    prices = '[prices."gemini-3-flash"]\ninput = 1.0\noutput = 2.0\n'
    code, out, _ = chat("--json", typed="call web_fetch\nfail 400\nhello\n", more=prices)
    assert code == 1
    called, failed, answered = map(json.loads, out.splitlines())
    assert (called["text"], called["stop"], called["turns"]) == ("`````\nIt came to this.", "finished", 2)
    assert [(each["name"], each["outcome"]) for each in called["calls"]] == [("web_fetch", "failed")]
    assert called["calls"][0]["arguments"]["url"].startswith("https://example.invalid/")
    assert called["cost"] > 0
    assert (failed["stop"], failed["problem"]["kind"], failed["calls"]) == ("failed", "invalid_request", [])
    assert answered["problem"] is None
    assert answered["usage"]["output"] > 0
    code, out, _ = chat("--json", "--once", "cut")
    assert (code, json.loads(out)["finish"]) == (1, "length")


def test_an_answer_that_is_cut_off_is_written_but_is_no_success(chat):
    code, out, err = chat("--once", "cut")
    assert (code, out) == (1, "This is\n")
    assert "the answer is cut off" in err


def test_without_a_terminal_a_tool_with_side_effects_runs_only_if_it_was_approved_by_name(chat):
    _, _, err = chat("--once", "call plain__colour", more=SERVER)
    assert "← [1] plain__colour: denied" in err
    assert "--yes NAME" in err
    code, _, err = chat("--once", "call plain__colour", "--yes", "plain", more=SERVER)
    assert code == 0
    assert re.search(r"← \[1\] plain__colour: \d+\.\d s", err)


def test_an_unparsable_text_call_is_reported_but_not_as_an_answer(chat):
    textual = 'text_calls = "legacy"\n'
    for arguments in ({"typed": "broken\n/save talk.md\n"}, {}):
        _, out, err = chat(*(() if arguments else ("--once", "broken")), more=textual, **arguments)
        assert "TOOL_CALL" not in out + err
        assert "(the model made a call that could not be parsed)" in err
        assert "I see." in (out if arguments else err)
    assert "A call that could not be parsed:" in Path("talk.md").read_text()


def test_lines_of_a_pipe_are_one_conversation_and_a_failed_turn_leaves_no_trace_in_it(chat, simulator):
    code, out, err = chat(typed="hello\n\nfail 401\n/nope\nyou there?\n")
    assert out == "You said hello.\nYou said you there?.\n"
    assert code == 1
    assert "unknown command /nope; /help lists the commands" in err
    result = request_at(simulator)["contents"]
    assert [part["text"] for turn in result for part in turn["parts"]] == ["hello", "You said hello.", "you there?"]


def test_calls_that_were_run_before_a_turn_failed_stay_in_the_conversation(chat, simulator):
    code, out, _ = chat(typed="hello\ncall web_fetch\nyou there?\n")
    assert (code, out) == (1, "You said hello.\nLet me see.\nYou said you there?.\n")
    parts = [part for turn in request_at(simulator)["contents"] for part in turn["parts"]]
    assert [next(iter(part)) for part in parts if "functionCall" in part or "functionResponse" in part] == [
        *("functionCall", "functionResponse")
    ]
    assert parts[-1] == {"text": "you there?"}


def test_a_conversation_is_saved_for_people_and_for_programs(chat, tmp_path):
    (tmp_path / "mine.md").write_text("mine")
    code, out, err = chat(
        typed="call web_fetch\n/save talk.md\n/save talk.json\n/save mine.md\n/save no/x\n/save talk.md\n"
    )
    assert code == 1
    assert out == "Let me see.\n`````\nIt came to this.\n"
    assert err.count("saved 4 messages to talk.md") == 2
    assert "mine.md already exists: use another file name" in err
    assert "cannot write no/x (No such file or directory)" in err
    assert (tmp_path / "mine.md").read_text() == "mine"
    read = (tmp_path / "talk.md").read_text()
    assert read.startswith(
        "# A conversation with gemini/gemini-3-flash\n\n## You\n\ncall web_fetch\n\n## Model\n\nLet me see."
    )
    assert "Failed result of `web_fetch`:" in read
    saved = json.loads((tmp_path / "talk.json").read_text())
    messages = dragoman.messages_from("chat", json.dumps(saved["messages"]).encode())
    assert [type(part).__name__ for message in messages for part in message.parts] == [
        *("Text", "Text", "ToolCall", "ToolResult", "Text")
    ]
    assert [tool["function"]["name"] for tool in saved["tools"]] == ["web_fetch", "read_artifact"]


def test_what_a_command_lists_is_an_answer_too(chat):
    code, out, err = chat(typed="/tools\n/help\n/new\n")
    assert code == 0
    assert out.startswith("web_fetch (returns untrusted text; can send data out)\n")
    assert "/save FILE" in out
    assert "started a new conversation" not in out
    assert "started a new conversation" in err


def test_a_named_conversation_continues_in_the_next_process_and_can_be_reset(chat, simulator):
    chat("--session", "tale", "--once", "call web_fetch")
    chat("--session", "tale", "--once", "hello")
    assert [turn["role"] for turn in request_at(simulator)["contents"]] == ["user", "model", "user", "model", "user"]
    chat("--session", "tale", typed="/new\nonce more\n")
    chat("--session", "tale", "--once", "and on")
    texts = [part["text"] for turn in request_at(simulator)["contents"] for part in turn["parts"]]
    assert texts == ["once more", "You said once more.", "and on"]


async def _never(_: Exchange) -> None:
    await asyncio.Event().wait()


def test_a_named_conversation_continues_after_its_process_was_killed(chat, simulator, tmp_path):
    store = tmp_path / "sessions.db"
    with run_in_thread(lambda: listen(_never, grace=0), "pages") as pages:
        private = f'[web]\nprivate = ["{pages.base_url.removeprefix("http://")}"]\n'
        more = f'{private}[sessions]\nurl = "sqlite:///{store}"\n'
        chat("--session", "tale", "--once", "hello", more=more)
        options = ("--session", "tale", "--once", f"fetch {pages.base_url}")
        with subprocess.Popen(  # noqa: S603
            [*COMMAND, *options], stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
        ) as process:
            assert b"[1] web_fetch(" in process.stderr.readline()
            process.kill()
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE runs SET alive = alive - 60")
        connection.execute("UPDATE claims SET alive = alive - 60")
    code, out, _ = chat("--session", "tale", "--once", "still there?", more=more)
    assert (code, out) == (0, "You said still there?.\n")
    body = simulator.requests[-1].body.decode()
    assert body.count("this call was interrupted") == 1
    assert options[-1] in body
    chat("--session", "tale", "--once", "and now?", more=more)
    assert simulator.requests[-1].body.decode().count("this call was interrupted") == 1


def test_a_named_conversation_has_the_same_local_owner_as_those_of_query():
    assert LOCAL_CALLER.owner == ANONYMOUS_NAME


def test_another_model_answers_from_the_next_turn_on_and_an_agent_brings_its_own_tools(chat, simulator):
    agent = f'{MODELS}[agents.helper]\nmodel = "gemini/gemini-2.5-pro"\ntools = ["web_fetch"]\nsystem = "Be kind."\n'
    code, out, err = chat("--no-tools", typed="hello\n/model nobody/x\n/model helper\nhi\n/model\n", more=agent)
    assert "no upstream is configured for the model 'nobody/x'" in err
    assert code == 1
    assert "switched to helper" in err
    assert out.startswith("You said hello.\nYou said hi.\n")
    assert "* helper" in out
    first, second = [seen for seen in simulator.requests if b"contents" in seen.body]
    assert "gemini-3-flash" in first.target
    assert "gemini-2.5-pro" in second.target
    assert "tools" not in first.json()
    assert "Be kind." in second.body.decode()
    chat("--model", "helper", "--once", "hello", more=agent)
    names = [tool["name"] for tool in request_at(simulator)["tools"][0]["functionDeclarations"]]
    assert names == ["web_fetch", "read_artifact"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tools", "web_fetsh"], "--tools: unknown tool or server 'web_fetsh': did you mean web_fetch?"),
        (["--yes", "files"], "--yes: unknown tool or server 'files'"),
        (["--model", "nobody/x"], "no upstream is configured for the model 'nobody/x'; configured models: usual"),
        (["--config", "nowhere.toml"], "nowhere.toml: cannot read the file"),
    ],
)
def test_a_chat_that_cannot_start_fails_at_once(chat, arguments, words):
    code, out, err = chat("--once", "hello", *arguments, more=MODELS)
    assert (code, out) == (2, "")
    assert words in err


def test_an_unavailable_tool_server_is_reported_and_the_chat_continues(chat):
    down = '[tools.gone]\ncommand = "/nowhere/at/all"\n'
    code, out, err = chat("--once", "hello", more=down)
    assert (code, out) == (0, "You said hello.\n")
    assert "tool server gone is not available" in err
    code, _, err = chat("--once", "hello", "--tools", "gone", more=down)
    assert code == 2
    assert "--tools: tool server 'gone' is not available" in err
    code, _, err = chat("--once", "hello", "--tools", "web_fetch", more=down)
    assert (code, err) == (0, "")
    _, _, err = chat("--once", "hello", "--tools", "zzzzzzzz", more=down)
    assert "known names are gone, web_fetch, read_artifact" in err


@pytest.mark.parametrize("arguments", [["--once", " "], ["--once", "-"]])
def test_an_empty_prompt_is_not_sent(chat, simulator, arguments):
    code, out, err = chat(*arguments, typed="\n")
    assert (code, out) == (2, "")
    assert "--once: the prompt is empty" in err
    assert not simulator.requests


def test_a_real_pipe_is_answered_line_by_line_without_prompts_and_codes(tmp_path):
    with subprocess.Popen(  # noqa: S603
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        process.stdin.write(b"hello \xff\n")
        process.stdin.flush()
        assert "I am a simulator" in process.stdout.readline().decode()
        process.stdin.write(b"and you?\n")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.decode().count("\n") == 1
    assert b"this is the simulator, not a model" in err
    assert not re.search(rb"\x1b|\r", out + err)


def test_an_interrupt_ends_a_once_request(tmp_path):
    with in_thread(script=script, chunk=4, delay=0.02) as simulator:
        config = f'[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\nbase_url = "{simulator.base_url}"\n'
        (tmp_path / "dragoman.toml").write_text(config)
        with subprocess.Popen(  # noqa: S603
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
        ) as process:
            process.stdin.write(b"count 5000\n")
            process.stdin.flush()
            assert process.stdout.read(9) == b"0 1 2 3 4"
            process.send_signal(signal.SIGINT)
            process.stdin.write(b"hello\n")
            out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.endswith(b"\nYou said hello.\n")
