"""Every parameter that a target cannot express is in the losses, by its own pointer."""

import pytest

from cases.documents import chat_request, chat_tool, messages_request
from cases.through import loss_pointers, translate_to
from dragoman.core.problems import Problem

EVERYTHING = chat_request(
    parallel_tool_calls=False,
    seed=1,
    logit_bias={"50256": -100},
    logprobs=True,
    top_logprobs=2,
    presence_penalty=0.5,
    tools=[
        chat_tool("f", {"type": "object", "properties": {}}, strict=True),
        chat_tool("g", {"type": "object", "properties": {}}),
    ],
)


@pytest.mark.parametrize(
    ("target", "model", "lost"),
    [
        (
            "messages",
            "claude-opus-4-8",
            {"/seed", "/logit_bias", "/logprobs", "/top_logprobs", "/presence_penalty"},
        ),
        (
            "gemini",
            "gemini-3-flash",
            {"/parallel_tool_calls", "/logit_bias", "/logprobs", "/top_logprobs", "/tools/0/function/strict"},
        ),
        ("responses", "gpt-5.6", {"/seed", "/logit_bias", "/logprobs", "/top_logprobs", "/presence_penalty"}),
    ],
)
def test_t156_every_dropped_or_altered_field_is_in_the_losses(target, model, lost):
    asked = translate_to("chat", target, EVERYTHING, model=model)
    assert loss_pointers(asked) >= lost
    with pytest.raises(Problem):
        translate_to("chat", target, EVERYTHING, model=model, strict=True)


def test_t156_parallel_off_is_sent_to_gemini_as_text():
    asked = translate_to("chat", "gemini", EVERYTHING, model="gemini-3-flash")
    assert "one tool at a time" in asked.body["systemInstruction"]["parts"][-1]["text"]
    assert "/parallel_tool_calls" in loss_pointers(asked, "approximated")


def test_t156_top_k_thinking_and_cache_marks_of_messages_are_in_the_losses():
    content = [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]
    body = messages_request(
        {"role": "user", "content": content}, top_k=5, thinking={"type": "enabled", "budget_tokens": 2000}
    )
    asked = translate_to("messages", "chat", body, model="gpt-4.1")
    assert loss_pointers(asked) >= {
        "/top_k",
        "/thinking",
        "/messages/0/content/0/cache_control",
    }


def test_t156_a_request_that_every_target_can_express_has_no_losses():
    for target, model in (("messages", "claude-opus-4-8"), ("gemini", "gemini-3-flash"), ("responses", "gpt-5.6")):
        assert (
            translate_to("chat", target, chat_request(max_completion_tokens=100), model=model, strict=True).losses == ()
        )
