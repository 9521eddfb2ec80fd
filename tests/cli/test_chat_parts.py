"""Parts of `dragoman chat` in isolation: the output, and what an approval covers."""

import io
import json
from queue import Empty

from dragoman.agent import ApprovalRequest, CallProgressed, CallStarted
from dragoman.cli.chat.commands import save
from dragoman.cli.chat.format import CallList, format_call, format_content, format_details, format_result
from dragoman.cli.chat.session import ConsentPolicy
from dragoman.cli.chat.terminal import Interrupts, PipeReader, Screen, Terminal, replace_controls
from dragoman.cli.chat.turns import ChatTurns
from dragoman.core.parts import Data, Inline, Media, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.tools import Execution, Handler, Progress, tool


def call(name="send", **arguments):
    return ToolCall(id=f"call_{name}_{len(arguments)}", name=name, arguments=json.dumps(arguments))


def handler(**flags) -> Handler:
    @tool(name="send", **flags)
    def send(url: str = "") -> str:
        """Send."""
        return url

    return send


def test_a_tool_with_side_effects_needs_approval_until_always_or_if_not_preapproved():
    requested = ApprovalRequest(run="r", call=call(), handler=handler(side_effects=True))
    consent = ConsentPolicy(lambda _: False)
    assert consent(requested) == "ask"
    assert consent.describe_scope(requested.call) == "every call of send in this conversation"
    consent.grant_always(requested.call)
    assert consent(requested) == "allow"
    assert ConsentPolicy(lambda name: name == "send")(requested) == "allow"
    assert ConsentPolicy(lambda _: False)(ApprovalRequest(run="r", call=call(), handler=handler())) == "allow"


def test_always_for_what_leaves_covers_one_host_and_neither_another_nor_an_unclear_one():
    consent = ConsentPolicy(lambda _: True)
    sending = handler(sends_out=True, destination="url")

    def build_option(url):
        requested = ApprovalRequest(
            run="r", call=call(url=url), handler=sending, egress_reason="something untrusted was read"
        )
        assert consent(requested) == "ask"
        return requested.call

    first = build_option("https://a.example/1")
    assert not consent.is_granted(first)
    consent.grant_always(first)
    assert consent.is_granted(build_option("https://a.example/2"))
    assert not consent.is_granted(build_option("https://b.example/"))
    unclear = build_option("https://a.example\\@b.example/")
    assert consent.describe_scope(unclear) == ""
    consent.grant_always(unclear)
    assert not consent.is_granted(unclear)


def test_a_call_and_its_result_are_a_line_each_and_whole_if_wanted():
    made = call(text="a\n" * 200)
    calls = CallList()
    shown, new = calls.number_call(made)
    assert new
    assert format_call(shown, 60) == "[1] send(text=" + "a " * 22 + "…)"
    content = (Text(text="\n  first line\nsecond"), Data(json=b'{"a":[1]}'))
    execution = Execution(result=ToolResult(call_id=made.id, content=content), outcome="succeeded", milliseconds=1234)
    assert format_result(calls.end_call(made, execution), 200) == "[1] send: 1.2 s, 43 characters: first line"
    assert "second" in format_details(shown)
    assert calls.number_call(made)[0].number == 2


def test_media_in_a_result_is_described():
    picture = Media(kind="image", media_type="image/png", source=Inline("QUJDRA=="))
    assert format_content((picture,)) == "(image/png, 6 bytes)"


def test_what_others_wrote_does_nothing_to_a_terminal():
    assert replace_controls("a\x1b]0;t\x07\tb\r\nc\rd\u202ee\x9bf") == "a\ufffd]0;t\ufffd\tb\nc\ufffdd\ufffde\ufffdf"


def test_progress_of_a_call_is_shown_now_and_then():
    out, err = io.StringIO(), io.StringIO()
    turns = ChatTurns(None, None, Terminal(Screen(out, err, pretty=False), PipeReader(), Interrupts()))
    made = call()
    turns._show_step(CallStarted(made))
    turns._show_step(CallProgressed(Progress(made, 1, 4, "reading")))
    turns._show_step(CallProgressed(Progress(made, 2, 4, "still reading")))
    assert err.getvalue() == "→ [1] send()\n… [1] 1 of 4 reading\n"
    assert out.getvalue() == ""


def test_what_a_tool_returned_cannot_end_its_block_in_a_saved_conversation(tmp_path):
    result = ToolResult(call_id="1", name="send", content=(Text(text="```\n# Not a title"),))
    save(tmp_path / "talk.md", [Message(role="user", parts=(result,))], [], "m", overwrite=False)
    assert "````\n```\n# Not a title\n````\n" in (tmp_path / "talk.md").read_text()


def test_calls_that_run_without_progress_are_shown_now_and_then(monkeypatch):
    class Steps:
        def __init__(self):
            self.left = [Empty(), None]

        def get(self, timeout):
            step = self.left.pop(0)
            if step is not None:
                raise step

    err = io.StringIO()
    turns = ChatTurns(None, None, Terminal(Screen(io.StringIO(), err, pretty=False), PipeReader(), Interrupts()))
    turns._show_step(CallStarted(call()))
    assert turns._wait_for_step(Steps()) is None
    assert "… [1] send: running for 0 s" in err.getvalue()
