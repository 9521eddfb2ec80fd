"""The reasons of losses are true: each is given only where it holds, and another one where it does not."""

import json
from typing import Any

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Signature
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_envelopes import UNSIGNED, seal_signature
from dragoman.interpreter.translate import translate_request
from laws.documents import DIALECTS, MODELS, distinct_requests
from shelf import needs_shelf

HOSTED = "a tool that only its own vendor runs"
NO_KIND = "the target has no such kind of tool"
FOREIGN = "reasoning of another vendor's model cannot be replayed"
WITHOUT_SIGNATURE = "reasoning without the target's signature cannot be replayed"
NO_REASONING = "the target takes no reasoning in the history"
Request = tuple[str, dict[str, Any]]


def find_losses(source: str, body: dict[str, Any], target: str, model: str = "") -> tuple[Loss, ...]:
    call = Call(json.dumps(body).encode(), "m")
    return translate_request(call, source, target, model=model or MODELS[target]).losses


def find_reason(losses: tuple[Loss, ...], where: str) -> str:
    """Return the reason of the loss at a pointer or above it; a dropped value first."""
    found = [loss for loss in losses if f"{where}/".startswith(f"{loss.where}/")]
    return min(found, key=lambda loss: loss.kind != "dropped").what if found else ""


def ask(source: str, **members: Any) -> dict[str, Any]:
    match source:
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": "q"}]}], **members}
        case "responses":
            return {"model": "m", "input": "q", **members}
        case _:
            return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], **members}


RUN_BY_VENDOR = [
    ("messages", {"type": "mcp_toolset", "mcp_server_name": "s"}),
    ("responses", {"type": "file_search", "vector_store_ids": ["v"]}),
    ("responses", {"type": "image_generation"}),
    ("responses", {"type": "mcp", "server_label": "s", "server_url": "https://a.example"}),
    ("responses", {"type": "shell", "environment": {"type": "container_auto"}}),
    ("gemini", {"googleMaps": {}}),
    ("gemini", {"file_search": {"file_search_store_names": ["s"]}}),
]
RUN_BY_CLIENT = [
    ("messages", {"type": "bash_20990101", "name": "bash"}),
    ("messages", {"type": "novel_20300101", "name": "novel"}),
    ("responses", {"type": "novel"}),
    ("gemini", {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}),
]


@pytest.mark.parametrize(("source", "tool"), RUN_BY_VENDOR)
def test_a_tool_that_its_vendor_runs_is_reported_as_one(source, tool):
    for target in {"chat", "messages", "gemini"} - {source}:
        assert find_reason(find_losses(source, ask(source, tools=[tool]), target), "/tools/0") == HOSTED


@pytest.mark.parametrize(("source", "tool"), RUN_BY_CLIENT)
def test_a_tool_that_the_client_runs_is_not_reported_as_the_vendors(source, tool):
    for target in {"chat", "messages", "gemini"} - {source}:
        kind = tool.get("type") or next(iter(tool))
        assert find_reason(find_losses(source, ask(source, tools=[tool]), target), "/tools/0") == f"{NO_KIND}: {kind}"


def test_a_setting_of_a_vendors_tool_is_reported_as_untranslated():
    tool = {"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["a.org"]}
    losses = find_losses("messages", ask("messages", tools=[tool]), "responses")
    assert find_reason(losses, "/tools/0/blocked_domains") == "the target's web search has no such setting"


def thought(source: str, signature: str | None) -> tuple[str, dict[str, Any]]:
    """A pointer of reasoning in a history, and the request."""
    match source:
        case "messages":
            block = {"type": "thinking", "thinking": "hm", "signature": signature}
            turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [block]}]
            turns[1]["content"].append({"type": "text", "text": "a"})
            return "/messages/1/content/0", ask(source, messages=[*turns, {"role": "user", "content": "r"}])
        case "gemini":
            part = {"text": "hm", "thought": True} | ({"thoughtSignature": signature} if signature else {})
            turns = [{"role": "model", "parts": [part, {"text": "a"}]}, {"role": "user", "parts": [{"text": "r"}]}]
            return "/contents/1/parts/0", {"contents": [{"role": "user", "parts": [{"text": "q"}]}, *turns]}
        case "responses":
            item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
            message = {"role": "assistant", "content": "a"}
            signed = item | ({"encrypted_content": signature} if signature else {})
            return "/input/1", ask(
                source, input=[{"role": "user", "content": "q"}, signed, message, {"role": "user", "content": "r"}]
            )
        case _:
            message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
            turns = [{"role": "user", "content": "q"}, message, {"role": "user", "content": "r"}]
            return "/messages/1/reasoning_content", ask(source, messages=turns)


@pytest.mark.parametrize(
    ("source", "signature", "target", "model", "reason"),
    [
        ("messages", "c2ln", "gemini", "gemini-3-flash", FOREIGN),
        ("messages", "c2ln", "responses", "gpt-5.5", FOREIGN),
        ("gemini", "c2ln", "messages", "claude-opus-4-8", FOREIGN),
        ("responses", "c2ln", "messages", "claude-opus-4-8", FOREIGN),
        ("gemini", None, "messages", "claude-opus-4-8", WITHOUT_SIGNATURE),
        ("chat", None, "messages", "claude-opus-4-8", WITHOUT_SIGNATURE),
        ("chat", None, "gemini", "gemini-3-flash", WITHOUT_SIGNATURE),
        ("responses", None, "gemini", "gemini-3-flash", WITHOUT_SIGNATURE),
        ("messages", "c2ln", "chat", "gpt-5.5", NO_REASONING),
        ("responses", "c2ln", "chat", "gpt-5.5", NO_REASONING),
    ],
)
def test_reasoning_that_is_dropped_has_the_reason_that_holds(source, signature, target, model, reason):
    where, body = thought(source, signature)
    assert find_reason(find_losses(source, body, target, model), where) == reason


def test_geminis_own_unsigned_thoughts_return_to_gemini_only():
    sealed = seal_signature(Signature("google", UNSIGNED), "self", "anthropic").value
    where, body = thought("messages", sealed)
    call = Call(json.dumps(body).encode(), "m")
    own = translate_request(call, "messages", "gemini", model="gemini-3-flash")
    assert json.loads(own.call.body)["contents"][1]["parts"][0] == {"text": "hm", "thought": True}
    assert own.losses == ()
    assert find_reason(find_losses("messages", body, "responses", "gpt-5.5"), where) == WITHOUT_SIGNATURE


@pytest.mark.parametrize("model", ["gpt-5.1", "llama"])
def test_encrypted_reasoning_without_text_is_not_reported_as_of_another_vendor(model):
    body = ask(
        "responses",
        input=[
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"role": "user", "content": "q"},
        ],
    )
    reason = find_reason(find_losses("responses", body, "chat", model), "/input/0")
    assert reason == (NO_REASONING if model.startswith("gpt") else "the target takes reasoning only as text")


def test_a_limit_of_strict_tools_is_not_reported_as_a_missing_feature():
    schema = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    tools = [
        {"type": "function", "function": {"name": f"f{number}", "strict": True, "parameters": schema}}
        for number in range(21)
    ]
    losses = find_losses("chat", ask("chat", tools=tools), "messages", "claude-opus-4-8")
    assert find_reason(losses, "/tools/20/function/strict") == "the target takes no more strict tools"


@pytest.mark.parametrize(
    ("budget", "target", "reason", "grade"),
    [
        (4096, "responses", "a token budget is sent as an effort level", "material"),
        (-1, "responses", "how much to think is left to the model", "informational"),
        (-1, "messages", "", ""),
        (0, "responses", "", ""),
    ],
)
def test_a_thinking_budget_that_is_no_number_of_tokens_has_no_reason_about_tokens(budget, target, reason, grade):
    config = {"generationConfig": {"thinkingConfig": {"thinkingBudget": budget}}}
    model = {"responses": "gpt-5.5", "messages": "claude-opus-4-8"}[target]
    losses = find_losses("gemini", ask("gemini", **config), target, model)
    where = "/generationConfig/thinkingConfig/thinkingBudget"
    assert find_reason(losses, where) == reason
    assert "".join(loss.grade for loss in losses if loss.where == where) == grade


def test_a_blank_text_is_not_reported_as_empty():
    body = ask(
        "chat", messages=[{"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "q"}]}]
    )
    reason = find_reason(find_losses("chat", body, "messages"), "/messages/0/content/0")
    assert reason == "the target rejects text that is empty or only white space"


# Replies


def find_reply_reasons(source: str, body: dict[str, Any], client: str) -> dict[str, str]:
    losses = translate_response(json.dumps(body).encode(), source, client).losses
    return {loss.where: loss.what for loss in losses}


def chat_reply(**choice: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"message": {"content": "a"}, "finish_reason": "stop", **choice}]}


def test_a_stop_token_is_not_reported_as_a_stop_sequence():
    place = "/choices/0/stop_reason"
    assert find_reply_reasons("chat", chat_reply(stop_reason=154829), "messages") == {
        place: "not known to the client's dialect"
    }
    assert find_reply_reasons("chat", chat_reply(stop_reason="END"), "messages") == {}
    assert find_reply_reasons("chat", chat_reply(stop_reason="END"), "gemini") == {
        place: "the client's dialect has no field for the stop sequence"
    }


def test_a_finish_reason_is_explained_without_terms_of_our_own():
    body = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "MODEL_ARMOR"}]}
    for client in ("chat", "responses", "messages"):
        assert find_reply_reasons("gemini", body, client) == {
            "/candidates/0/finishReason": "'MODEL_ARMOR' is reported as a content filter"
        }


def test_a_citation_keeps_what_the_client_has_a_field_for():
    page = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}
    item = {"type": "message", "content": [{"type": "output_text", "text": "ab", "annotations": [page]}]}
    body = {"id": "r", "status": "completed", "output": [item]}
    place = "/output/0/content/0/annotations/0"
    assert find_reply_reasons("responses", body, "chat") == {}
    assert find_reply_reasons("responses", body, "messages") == {
        f"{place}/{name}": "citations in the client's dialect have no field for it"
        for name in ("start_index", "end_index")
    }


@pytest.mark.parametrize(("start", "end", "lost"), [(0, 0, set()), (0, 1, {"start", "end"}), (3, 3, set())])
def test_an_empty_span_of_a_citation_is_no_loss(start, end, lost):
    page = {"url": "https://a.example", "title": "A", "start_index": start, "end_index": end}
    message = {"content": "abcd", "annotations": [{"type": "url_citation", "url_citation": page}]}
    found = find_reply_reasons("chat", chat_reply(message=message), "messages")
    assert {where.rpartition("/")[2].partition("_")[0] for where in found} == lost


@pytest.mark.parametrize(
    "choice",
    [
        {"logprobs": {"content": None, "refusal": None}},
        {"message": {"content": "a", "padding": ""}},
        {"message": {"content": "a", "x": {"y": [], "z": [None, ""]}}},
    ],
)
def test_a_value_with_nothing_in_it_is_no_loss(choice):
    assert find_reply_reasons("chat", chat_reply(**choice), "messages") == {}


# Recorded requests


def _read_pointer(body: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        body = body[int(token)] if isinstance(body, list) else body[token.replace("~1", "/").replace("~0", "~")]
    return body


def _is_signed(value: Any) -> bool:
    return any(
        value.get(name) for name in ("signature", "data", "thoughtSignature", "thought_signature", "encrypted_content")
    )


CLIENT_WORDS = ("bash", "text_editor", "memory", "computer", "apply_patch", "local_shell")


@needs_shelf
@pytest.mark.parametrize("source", DIALECTS)
def test_the_reasons_for_recorded_requests_are_true(source):
    wrong: list[str] = []
    for name, body in distinct_requests(source):
        for target in set(DIALECTS) - {source}:
            try:
                losses = find_losses(source, body, target)
            except Problem:
                continue
            for loss in losses:
                value = _read_pointer(body, loss.where)
                kind = str(value.get("type", next(iter(value), ""))) if isinstance(value, dict) else ""
                if loss.what == HOSTED and kind.startswith(CLIENT_WORDS):
                    wrong.append(f"{name} {loss}: {kind}")
                if loss.what == FOREIGN and not _is_signed(value):
                    wrong.append(f"{name} {loss}: unsigned")
                if loss.what == WITHOUT_SIGNATURE and isinstance(value, dict) and _is_signed(value):
                    wrong.append(f"{name} {loss}: signed")
    assert wrong == []
