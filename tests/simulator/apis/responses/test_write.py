"""Replies and streams match the official SDK's types exactly, and have the same content."""

import warnings

import pytest
from msgspec import structs
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall
from openai.types.responses.response_output_item import LocalShellCall

from dragoman.simulator.apis.conversation import Answer, AnswerUsage
from simulator.apis.responses.answers import (
    CASES,
    TYPED_EVENT,
    call,
    client,
    events,
    extras,
    frames,
    parse_typed,
    whole,
)
from simulator.apis.responses.bodies import WEATHER

ALL = pytest.mark.parametrize(("members", "answer"), CASES.values(), ids=CASES.keys())
NOT_IN_THE_SDK = {f"response.apply_patch_call_operation_diff.{step}" for step in ("delta", "done")}
"""Events that are recorded (openai_responses/langchain-0036), but not in the SDK's union."""
STATUS = {
    "stop": "completed",
    "calls": "completed",
    "length": "incomplete",
    "filtered": "incomplete",
    "malformed_call": "failed",
}


@ALL
def test_a_whole_reply_has_only_fields_of_the_sdk(members, answer):
    reply = parse_typed(whole(members, answer))
    assert list(extras(reply)) == []
    assert reply.status == STATUS[answer.end]


@ALL
def test_an_event_has_only_fields_of_the_sdk(members, answer):
    for number, result in enumerate(events(members, answer)):
        if result["type"] in NOT_IN_THE_SDK:
            continue
        event = TYPED_EVENT.validate_python(result)
        assert event.type == result["type"]
        assert type(event).model_fields["type"].annotation.__args__ == (result["type"],)
        assert list(extras(event)) == []
        assert result["sequence_number"] == number


@ALL
def test_a_frame_names_its_event(members, answer):
    for frame, result in zip(frames(members, answer), events(members, answer), strict=True):
        assert frame.startswith(f"event: {result['type']}\ndata: {{".encode())
        assert frame.endswith(b"}\n\n")
        assert frame.count(b"\n") == 3


@ALL
def test_the_last_event_holds_the_whole_reply(members, answer):
    last = events(members, answer)[-1]
    assert last["type"] == f"response.{STATUS[answer.end]}"
    assert last["response"] == whole(members, answer)


@ALL
def test_every_item_is_added_and_done_once_and_as_in_the_whole_reply(members, answer):
    result = events(members, answer)
    added = [event["item"] for event in result if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in result if event["type"] == "response.output_item.done"]
    output = whole(members, answer)["output"]
    assert done == output
    assert [(item["id"], item["type"]) for item in added] == [(item["id"], item["type"]) for item in output]


@ALL
@pytest.mark.parametrize("size", [0, 1, 24])
def test_the_deltas_make_up_the_items(members, answer, size):
    result = events(members, answer, size)
    for item in whole(members, answer)["output"]:
        output = "".join(event["delta"] for event in result if event.get("item_id") == item["id"] and "delta" in event)
        match item["type"]:
            case "message":
                (part,) = item["content"]
                assert output == part["refusal" if part["type"] == "refusal" else "text"]
            case "function_call":
                assert output == item["arguments"]
            case "custom_tool_call":
                assert output == item["input"]
            case "apply_patch_call":
                assert output == item["operation"].get("diff", "")
            case "reasoning":
                assert output == "".join(part["text"] for part in item["summary"])
            case _:
                assert output == ""


@ALL
def test_the_sdk_reads_the_whole_reply(members, answer):
    import msgspec

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = client(msgspec.json.encode(whole(members, answer)), "application/json").responses.create(
            model="m", input="i"
        )
        reply.model_dump()
    assert list(extras(reply)) == []
    check(reply, members, answer)


@ALL
def test_the_sdks_own_accumulator_ends_with_the_whole_reply(members, answer):
    if answer.end not in {"stop", "calls"}:
        return
    body = b"".join(frames(members, answer))
    with client(body, "text/event-stream").responses.stream(model="m", input="i") as stream:
        seen = [event.type for event in stream]
        reply = stream.get_final_response()
    assert seen[-1] == "response.completed"
    check(reply, members, answer)


def check(reply, members, answer):
    if answer.end == "malformed_call":
        assert reply.error.code == "server_error"
        assert reply.output == []
        return
    assert reply.output_text == answer.text
    refusals = [
        part.refusal
        for item in reply.output
        if item.type == "message"
        for part in item.content[:1]
        if part.type == "refusal"
    ]
    assert "".join(refusals) == answer.refusal
    calls = [item for item in reply.output if item.type in {"function_call", "custom_tool_call"}]
    expected = [call for call in answer.calls if call.name not in {"tool_search", "shell", "local_shell"}]
    if members.get("tools") == [{"type": "apply_patch"}]:
        expected = []
    assert [item.name for item in calls] == [call.name for call in expected]
    assert [item.call_id for item in calls] == [f"call_{call.id}" for call in expected]
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (40, 20, 60)
    assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (16, 8)


def types(name: str, size: int = 0) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events(*CASES[name], size)]


BEGIN = ["created", "in_progress"]
MESSAGE = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]
CALL = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
SUMMARY = [
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
]


def test_a_call_of_the_vendors_shell_is_an_item_of_its_own():
    (item,) = whole(*CASES["a shell call"])["output"]
    parsed = ResponseFunctionShellToolCall.model_validate(item)
    assert (parsed.id[:3], parsed.call_id, parsed.status) == ("sh_", "call_000000000000000000000001", "completed")
    assert (parsed.action.commands, parsed.environment.type) == (["pwd", "echo ü"], "local")


def test_the_commands_of_a_shell_call_are_streamed_one_after_another():
    result = events(*CASES["a shell call"], 3)
    added, done = (event["item"] for event in result if event["type"].startswith("response.output_item"))
    assert added["action"] == {**done["action"], "commands": []}
    commands = [event for event in result if event["type"].startswith("response.shell_call_command")]
    assert all(event["output_index"] == 0 and "item_id" not in event for event in commands)
    for number, command in enumerate(done["action"]["commands"]):
        first, *deltas, last = [event for event in commands if event["command_index"] == number]
        assert (first["command"], last["command"]) == ("", command)
        assert "".join(event["delta"] for event in deltas) == command


def test_a_call_of_the_local_shell_and_a_patch_are_items_of_their_own():
    (item,) = whole(*CASES["a local shell call"])["output"]
    parsed = LocalShellCall.model_validate(item)
    assert (parsed.id[:4], parsed.call_id) == ("lsh_", "call_000000000000000000000001")
    assert (parsed.action.type, parsed.action.command, parsed.action.env) == ("exec", ["echo", "ü"], {})
    made, gone = map(ResponseApplyPatchToolCall.model_validate, whole(*CASES["two patches"])["output"])
    assert (made.id[:4], made.status, made.operation.type) == ("apc_", "completed", "create_file")
    assert (gone.operation.type, gone.operation.path) == ("delete_file", "b.txt")


def test_a_patch_is_streamed_as_recorded():
    patched = ["output_item.added", *(f"apply_patch_call_operation_diff.{step}" for step in ("delta", "done"))]
    assert types("two patches") == [*BEGIN, *patched, *["output_item.done", "output_item.added"], *types("text")[-2:]]
    added, done = (
        event["item"]
        for event in events(*CASES["two patches"])[2:]
        if event.get("output_index") == 0 and event["type"].startswith("response.output_item")
    )
    assert added == {**done, "status": "in_progress", "operation": {**done["operation"], "diff": ""}}


def test_a_patch_that_is_cut_off_is_in_progress():
    members, answer = CASES["two patches"]
    (_, last) = whole(members, structs.replace(answer, end="length"))["output"]
    assert last["status"] == "in_progress"


@pytest.mark.parametrize("kind", ["local_shell", "apply_patch"])
def test_a_tool_of_the_client_hides_the_vendors_of_the_same_name(kind):
    function = {**WEATHER, "name": kind}
    (item,) = whole({"tools": [{"type": kind}, function]}, Answer(calls=(call(1, kind),), end="calls"))["output"]
    assert (item["type"], item["name"]) == ("function_call", kind)


def test_a_function_named_shell_or_a_container_gives_a_function_call():
    function = {**WEATHER, "name": "shell"}
    container = {"type": "shell", "environment": {"type": "container_auto"}}
    for tools in ([{"type": "shell"}, function], [container, function]):
        (item,) = whole({"tools": tools}, CASES["a shell call"][1])["output"]
        assert (item["type"], item["name"]) == ("function_call", "shell")


def test_the_events_come_in_the_vendors_order():
    assert types("text") == [*BEGIN, *MESSAGE, "completed"]
    assert types("two calls") == [*BEGIN, *MESSAGE, *CALL, *CALL, "completed"]
    assert types("thought") == [*BEGIN, "output_item.added", *SUMMARY, "output_item.done", *MESSAGE, "completed"]
    assert types("untold thought") == [*BEGIN, "output_item.added", "output_item.done", *MESSAGE, "completed"]
    assert types("length") == [*BEGIN, *MESSAGE, "incomplete"]
    assert types("a malformed call") == [*BEGIN, "failed"]
    assert types("in the background")[:3] == ["created", "queued", "in_progress"]
    custom = [event.replace("function_call_arguments", "custom_tool_call_input") for event in CALL]
    assert types("a custom call") == [*BEGIN, *custom, "completed"]


def test_a_search_has_its_steps_and_its_citations():
    search = [
        "output_item.added",
        *(f"web_search_call.{step}" for step in ("in_progress", "searching", "completed")),
        "output_item.done",
    ]
    cited = [*MESSAGE[:3], "output_text.annotation.added", *MESSAGE[3:]]
    assert types("search") == [*BEGIN, *search, *cited, "completed"]
    output = whole(*CASES["search"])["output"]
    assert output[0]["action"]["sources"] == [{"type": "url", "url": "https://example.com/paris"}]
    text, (annotation,) = output[1]["content"][0]["text"], output[1]["content"][0]["annotations"]
    assert text[annotation["start_index"] : annotation["end_index"]] == "Paris is in France"
    assert whole(*CASES["search"])["tool_usage"]["web_search"] == {"num_requests": 1}


def test_encrypted_content_is_sent_if_requested_or_if_nothing_is_stored():
    assert "encrypted_content" not in whole(*CASES["untold thought"])["output"][0]
    for name in ("sealed thought", "included thought"):
        assert whole(*CASES[name])["output"][0]["encrypted_content"]


def test_the_encrypted_content_of_an_item_that_is_only_begun_is_not_the_real_one():
    result = events(*CASES["sealed thought"])
    added = next(event["item"] for event in result if event["type"] == "response.output_item.added")
    done = next(event["item"] for event in result if event["type"] == "response.output_item.done")
    assert added["encrypted_content"] != done["encrypted_content"]


def test_messages_of_newer_models_have_their_phase():
    assert whole(*CASES["text"])["output"][0]["phase"] == "final_answer"
    assert whole(*CASES["two calls"])["output"][0]["phase"] == "commentary"
    assert "phase" not in whole(*CASES["an older model"])["output"][0]


def test_a_deferred_tool_is_loaded_once_before_it_is_called():
    output = whole(*CASES["a deferred call"])["output"]
    assert [item["type"] for item in output] == [
        "reasoning",
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "function_call",
    ]
    assert output[2]["tools"][0]["name"] == "get_later"
    assert output[3]["namespace"] == "get_later"


def test_a_grouped_call_has_its_namespace():
    (item,) = whole(*CASES["a grouped call"])["output"]
    assert (item["namespace"], item["name"]) == ("crm", "get_customer")


def test_a_truncated_reply_has_its_status_and_reason():
    reply = whole(*CASES["length"])
    assert reply["incomplete_details"] == {"reason": "max_output_tokens"}
    assert reply["output"][0]["status"] == "incomplete"
    assert whole(*CASES["filtered"])["incomplete_details"] == {"reason": "content_filter"}


def test_a_tool_without_strict_is_echoed_as_the_strict_one_that_the_vendor_made_of_it():
    from simulator.apis.responses.bodies import WEATHER

    schema = WEATHER["parameters"]
    loose = {
        **WEATHER,
        "parameters": {name: schema[name] for name in ("type", "properties", "required")},
        "strict": None,
    }
    (tool,) = whole({"tools": [loose]}, CASES["text"][1])["tools"]
    assert tool["strict"] is True
    assert tool["parameters"]["required"] == ["city", "unit"]
    assert tool["parameters"]["additionalProperties"] is False
    free = {**loose, "parameters": {"type": "object", "properties": {"any": {"type": "object"}}}}
    (tool,) = whole({"tools": [free]}, CASES["text"][1])["tools"]
    assert tool["strict"] is False
    assert tool["parameters"] == free["parameters"]


def test_a_dropped_answer_has_no_output():
    import json

    from dragoman.simulator.apis.responses import API

    reply = json.loads(API.drop_answer(json.dumps(whole(*CASES["text"])).encode()))
    assert (reply["status"], reply["output"]) == ("completed", [])
    left = [data for event in events(*CASES["text"]) if (data := API.drop_answer(json.dumps(event).encode()))]
    assert [json.loads(data)["response"]["output"] for data in left] == [[], [], []]


def test_log_probabilities_cover_the_text_whole_and_streamed():
    members, answer = CASES["log probabilities"]
    (part,) = whole(members, answer)["output"][0]["content"]
    assert "".join(token["token"] for token in part["logprobs"]) == answer.text
    assert all(len(token["top_logprobs"]) == 2 for token in part["logprobs"])
    result = events(members, answer)
    deltas = [event for event in result if event["type"] == "response.output_text.delta"]
    assert "".join(token["token"] for event in deltas for token in event["logprobs"]) == answer.text
    (done,) = (event for event in result if event["type"] == "response.output_text.done")
    assert [token["token"] for token in done["logprobs"]] == [token["token"] for token in part["logprobs"]]


def test_deltas_are_padded_if_requested():
    _, answer = CASES["text"]
    padded = events({"stream_options": {"include_obfuscation": True}}, answer)
    assert all(isinstance(event["obfuscation"], str) for event in padded if "delta" in event)
    assert not any("obfuscation" in event for event in padded if "delta" not in event)
    plain = events({"stream_options": {"include_obfuscation": False}}, answer)
    assert not any("obfuscation" in event for event in plain)
    unpadded = [{name: value for name, value in event.items() if name != "obfuscation"} for event in padded]
    assert unpadded == plain


def test_a_prompt_that_only_fills_the_cache_has_no_output():
    reply = parse_typed(whole({"prompt_cache_options": {"prewarm": True}}, CASES["thought"][1]))
    assert (reply.status, reply.output) == ("completed", [])
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (40, 0)


def test_prompt_cache_diagnostics_compare_with_an_earlier_response():
    _, answer = CASES["text"]
    earlier = whole({}, answer)["id"]
    for name, used, result in (
        (earlier, answer.usage, "cache_hit"),
        (earlier, AnswerUsage(input=40, output=20), "unavailable"),
        ("resp_1", answer.usage, "comparison_response_not_found"),
    ):
        options = {"prompt_cache_options": {"comparison_response_id": name}}
        reply = parse_typed(whole(options, Answer(text="Hello.", usage=used)))
        assert reply.prompt_cache_diagnostics.type == result
