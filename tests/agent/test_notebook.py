"""What a notebook shows of conversations, results, calls and losses."""

from dragoman.agent import RunResult, Statistics
from dragoman.agent.conversation import AgentConversation
from dragoman.agent.notebook import render_history
from dragoman.core.losses import Loss
from dragoman.core.parts import Data, Media, Plain, Reasoning, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.response import Finish

CALL = ToolCall(id="c1", name="look<up>", arguments='{"key": "<b>"}')
RESULT = ToolResult(call_id="c1", failed=True, content=(Text(text="none & nothing"), Data(json=b'{"n":1}')))
PHOTO = Media(kind="image", media_type="image/png", source=Plain("x"))
HISTORY = (
    Message(role="user", parts=(Text(text="<script>"), PHOTO)),
    Message(role="assistant", parts=(Reasoning(texts=("hm",)), CALL)),
    Message(role="user", parts=(RESULT,)),
    Message(role="assistant", parts=(Text(text="x" * 5000),)),
)


def test_a_conversation_is_a_table_of_escaped_parts():
    shown = render_history(HISTORY)
    assert "<script>" not in shown
    for text in (
        "&lt;script&gt;",
        "(image/png)",
        "reasoning",
        "look&lt;up&gt;(",
        "failed result",
        "none &amp; nothing",
    ):
        assert text in shown
    assert "(1,000 more characters)" in shown
    assert AgentConversation(None, history=HISTORY)._repr_html_() == shown


def test_a_result_shows_its_end_and_its_losses():
    loss = Loss("/seed", "not known to <that> API", "dropped")
    result = RunResult(
        run="r",
        stop="failed",
        statistics=Statistics(turns=2, calls=1),
        history=HISTORY,
        finish=Finish("other"),
        problem=Problem("internal", "it broke"),
        losses=(loss,),
    )
    shown = result._repr_html_()
    assert "failed: 2 turns, 1 calls, 0 tokens, 0.0 s; it broke" in shown
    assert "not known to &lt;that&gt; API" in shown
    assert "material" in loss._repr_html_()


def test_a_call_shows_its_name_its_id_and_its_arguments():
    shown = CALL._repr_html_()
    assert all(text in shown for text in ("look&lt;up&gt;", "c1", "{&quot;key&quot;: &quot;&lt;b&gt;&quot;}"))
