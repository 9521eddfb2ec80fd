"""A whole request fitted to a target: every step in its place."""

import pytest
from msgspec import structs

from dragoman.core.parts import Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.request import NativeTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signature_envelopes import seal_signature
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.undo import Undo
from interpreter.workbench import build_message, encode, loss_pointers

HI = build_message("user", "hi")
CALL = ToolCall(id="a", name="f", arguments="{}", where="/c")
RESULT = ToolResult(call_id="a", content=(Text(text="ok"),))
TOOL = Tool(name="f", parameters=b'{"type":"object","properties":{"a":{"type":"string"}}}')


def adapt_request(dialect, model, request, source="chat"):
    source_dialect = dialect_named(source)
    ledger = Ledger(source_dialect.pointers)
    adapted, undo = adapt(request, Adaptation(traits_for(dialect, model), ledger, source_dialect.issuer))
    return adapted, undo, loss_pointers(ledger)


def ask(*messages, **more):
    return Request(model="m", messages=messages or (HI,), **more)


def test_a_request_that_needs_nothing_is_the_same_but_for_its_spelling():
    request = ask(spelling=frozenset({"max_tokens"}), sampling=Sampling(max_tokens=99))
    assert adapt_request("messages", "claude-opus-5", request) == (ask(sampling=Sampling(max_tokens=99)), Undo(), [])


def test_every_part_of_a_request_is_adapted():
    request = ask(
        build_message("system", "rule"),
        build_message("user", "hi", name="ann", where="/m"),
        tools=(structs.replace(TOOL, name="a b"),),
        tool_choice=ToolChoice(mode="required", names=("a b",)),
        sampling=Sampling(temperature=0.5, max_tokens=99),
        thinking=Thinking(effort="minimal"),
        output=OutputFormat(kind="json"),
        verbosity="low",
        candidates=1,
        extras=Extras("chat", {"/logit_bias": b'{"1":1}'}),
    )
    adapted, undo, losses = adapt_request("messages", "claude-opus-5", request)
    assert adapted == ask(
        build_message("system", "rule", "When you call no tool, answer with one JSON object and nothing else."),
        HI,
        tools=(structs.replace(TOOL, name="a_b_c8687a08"),),
        tool_choice=ToolChoice(mode="required", names=("a_b_c8687a08",)),
        sampling=Sampling(max_tokens=99),
        thinking=Thinking(mode="adaptive", effort="low"),
    )
    assert undo == Undo({"a_b_c8687a08": ("", "a b")})
    assert losses == [
        ("dropped", "/logit_bias"),
        ("dropped", "/m/name"),
        ("approximated", "/reasoning_effort"),
        ("approximated", "/response_format"),
        ("dropped", "/temperature"),
        ("dropped", "/verbosity"),
    ]


@pytest.mark.parametrize(
    ("messages", "after"),
    [
        ((HI,), (build_message("system", "WORDS"), HI)),
        ((build_message("system", "a"), HI), (build_message("system", "a"), build_message("system", "WORDS"), HI)),
        ((HI, build_message("system", "b")), (build_message("system", "WORDS"), HI, build_message("system", "b"))),
    ],
)
def test_instructions_added_as_text_are_at_the_end_of_the_system_prompt(messages, after):
    request = ask(*messages, tools=(TOOL,), tool_choice=ToolChoice(mode="auto", parallel=False))
    source_dialect = dialect_named("messages")
    ledger = Ledger(source_dialect.pointers)
    traits = structs.replace(traits_for("chat", "gpt-4.1"), parallel_switch=False)
    adapted, _ = adapt(request, Adaptation(traits, ledger, source_dialect.issuer))
    words = "Call at most one tool at a time."
    assert adapted.messages == tuple(
        build_message("system", words) if message == build_message("system", "WORDS") else message for message in after
    )


def test_a_history_without_turns_still_contains_instructions_added_as_text():
    request = Request(model="m", messages=(), output=OutputFormat(kind="json"))
    adapted, *_ = adapt_request("messages", "claude-opus-5", request)
    assert adapted.messages[0] == build_message("system", "Answer with one JSON object and nothing else.")


def test_several_added_instructions_are_on_separate_lines():
    request = ask(
        output=OutputFormat(kind="json"),
        tools=(TOOL,),
        tool_choice=ToolChoice(mode="required"),
        sampling=Sampling(max_tokens=9),
    )
    adapted, *_ = adapt_request("messages", "claude-opus-5-5", request)
    words = "Call one of the tools.\nWhen you call no tool, answer with one JSON object and nothing else."
    assert adapted.messages[0] == build_message("system", words)


SHARED = Extras("chat", {"/store": b"true", "/logit_bias": b'{"1":1}'})


def test_fields_that_dialects_share_are_sent_and_others_are_reported():
    adapted, _, losses = adapt_request("responses", "gpt-4.1", ask(extras=SHARED))
    assert adapted.extras == Extras("responses", {"/store": b"true"})
    # What is kept as a response cannot be fetched as a chat completion.
    assert losses == [("dropped", "/logit_bias"), ("approximated", "/store")]
    adapted, _, losses = adapt_request("gemini", "gemini-3-pro", ask(extras=SHARED))
    assert (adapted.extras, losses) == (None, [("dropped", "/logit_bias"), ("dropped", "/store")])


@pytest.mark.parametrize(
    ("dialect", "stream", "extras"),
    [
        ("chat", True, Extras("chat", {"/stream_options": b'{"include_usage":true}'})),
        ("chat", False, None),
        ("gemini", True, None),
    ],
)
def test_usage_of_a_stream_is_requested_where_that_is_necessary(dialect, stream, extras):
    adapted, _, losses = adapt_request(dialect, "gpt-5.6", ask(stream=stream), source="messages")
    assert (adapted.extras, losses) == (extras, [])


UNKEPT = {"/store": b"false"}
SEALED = {"/include": b'["reasoning.encrypted_content"]'}


@pytest.mark.parametrize(
    ("model", "fields"),
    [("gpt-5.6", UNKEPT | SEALED), ("o3", UNKEPT | SEALED), ("gpt-4.1", UNKEPT), ("a-local-one", UNKEPT)],
)
def test_responses_gets_store_false_and_returns_encrypted_reasoning_to_stateless_clients(model, fields):
    adapted, _, losses = adapt_request("responses", model, ask(), source="messages")
    assert (adapted.extras, losses) == (Extras("responses", fields), [])


SEARCH = NativeTool(dialect="messages", raw=b'{"type":"web_search_20250305","name":"web_search"}')
MIX = Extras("gemini", {"/toolConfig/includeServerSideToolInvocations": b"true"})


@pytest.mark.parametrize(
    ("model", "tools", "extras"),
    [
        ("gemini-3-pro", (TOOL, SEARCH), MIX),
        ("gemini-3-pro", (TOOL,), None),
        ("gemini-3-pro", (SEARCH,), None),
        ("gemini-2.5-pro", (TOOL, SEARCH), None),
    ],
)
def test_gemini_gets_a_flag_when_native_tools_are_combined_with_functions(model, tools, extras):
    adapted, *_ = adapt_request("gemini", model, ask(tools=tools), source="messages")
    assert adapted.extras == extras


def test_signatures_that_came_back_in_envelopes_are_opened_first():
    google = Signature("google", "s")
    holder = Reasoning(signature=seal_signature(google, "call", "anthropic"))
    request = ask(HI, build_message("assistant", holder, CALL), build_message("user", RESULT))
    adapted, _, losses = adapt_request("gemini", "gemini-3-pro", request, source="messages")
    assert adapted.messages[1] == build_message("assistant", structs.replace(CALL, signature=google))
    assert losses == []


def test_calls_and_results_are_paired_before_turns_are_made():
    request = ask(HI, build_message("assistant", CALL), build_message("user", "wait"), build_message("user", RESULT))
    adapted, *_ = adapt_request("messages", "claude-opus-5", structs.replace(request, tools=(TOOL,)))
    assert adapted.messages == (HI, build_message("assistant", CALL), build_message("user", RESULT, "wait"))


OLD = "claude-opus-4-5"
ENABLED = Thinking(mode="enabled", budget=2000)


@pytest.mark.parametrize(
    ("limit", "thinking"),
    [
        (9000, ENABLED),
        (2048, ENABLED),
        (2000, Thinking(mode="disabled")),
        (100, Thinking(mode="disabled")),
        (None, ENABLED),
    ],
)
def test_the_limit_on_the_answer_bounds_what_claude_may_think(limit, thinking):
    adapted, *_ = adapt_request("messages", OLD, ask(sampling=Sampling(max_tokens=limit), thinking=ENABLED))
    assert adapted.thinking == thinking


@pytest.mark.parametrize(
    ("model", "thinking", "budget", "limit"),
    [
        ("claude-opus-4-1", Thinking(effort="low"), 1024, 8192),
        ("claude-opus-4-1", Thinking(budget=7168), 7168, 8192),
        ("claude-opus-4-1", Thinking(budget=7169), 7169, 15_361),
        ("claude-opus-4-1", Thinking(effort="high"), 24_576, 32_000),
        ("claude-opus-4-1", Thinking(effort="max"), 30_976, 32_000),
        (OLD, Thinking(effort="max"), 32_768, 64_000),
    ],
)
def test_the_limit_is_raised_for_thoughts_where_the_caller_gave_none(model, thinking, budget, limit):
    adapted, *_ = adapt_request("messages", model, ask(thinking=thinking))
    assert (adapted.thinking, adapted.sampling) == (
        Thinking(mode="enabled", budget=budget),
        Sampling(max_tokens=limit),
    )


def test_the_models_own_limit_bounds_thoughts_under_a_higher_one_of_the_caller():
    adapted, *_ = adapt_request(
        "messages", OLD, ask(sampling=Sampling(max_tokens=100_000), thinking=Thinking(budget=80_000))
    )
    assert (adapted.thinking, adapted.sampling) == (
        Thinking(mode="enabled", budget=62_976),
        Sampling(max_tokens=64_000),
    )


@pytest.mark.parametrize(("thinking", "forced"), [(ENABLED, False), (Thinking(mode="disabled"), True), (None, True)])
def test_a_tool_cannot_be_forced_while_old_claude_thinks(thinking, forced):
    request = ask(tools=(TOOL,), tool_choice=ToolChoice(mode="required"), thinking=thinking)
    adapted, *_ = adapt_request("messages", OLD, request)
    assert adapted.tool_choice == ToolChoice(mode="required" if forced else "auto")
    assert (adapted.messages == (HI,)) is forced


LOOP = (HI, build_message("assistant", CALL), build_message("user", RESULT))
OWN = Reasoning(texts=("hm",), signature=Signature("anthropic", "s"))


@pytest.mark.parametrize(
    ("model", "messages", "thinking", "off"),
    [
        (OLD, LOOP, ENABLED, True),
        (OLD, (HI, build_message("assistant", OWN, CALL), build_message("user", RESULT)), ENABLED, False),
        (OLD, (*LOOP, build_message("assistant", "done"), build_message("user", "so")), ENABLED, False),
        (OLD, (HI,), ENABLED, False),
    ],
)
def test_old_claude_does_not_think_within_a_tool_loop_that_another_model_began(model, messages, thinking, off):
    request = ask(*messages, tools=(TOOL,), thinking=thinking, sampling=Sampling(max_tokens=9000))
    adapted, _, losses = adapt_request("messages", model, request)
    assert adapted.thinking == (Thinking(mode="disabled") if off else thinking)
    assert [where for _, where in losses] == (["/thinking/budget_tokens", "/thinking/type"] if off else [])


@pytest.mark.parametrize(
    ("source", "thinking", "places"),
    [
        ("chat", Thinking(effort="high"), ["/reasoning_effort"]),
        ("gemini", Thinking(budget=2000), ["/generationConfig/thinkingConfig/thinkingBudget"]),
        ("messages", ENABLED, ["/thinking/budget_tokens", "/thinking/type"]),
    ],
)
def test_disabled_thinking_within_a_tool_loop_is_a_loss_if_the_caller_requested_thinking(source, thinking, places):
    request = ask(*LOOP, tools=(TOOL,), thinking=thinking, sampling=Sampling(max_tokens=60_000))
    adapted, _, losses = adapt_request("messages", OLD, request, source)
    assert adapted.thinking == Thinking(mode="disabled")
    assert losses == [("approximated", place) for place in places]


def test_a_loop_may_be_all_that_there_is_of_a_history():
    traits = structs.replace(traits_for("messages", OLD), starts_with_user=False)
    request = ask(*LOOP[1:], tools=(TOOL,), thinking=ENABLED, sampling=Sampling(max_tokens=9000))
    adapted, _ = adapt(request, Adaptation(traits, Ledger({}), "openai"))
    assert (len(adapted.messages), adapted.thinking) == (2, Thinking(mode="disabled"))


def test_a_history_that_starts_with_the_assistant_gets_a_user_message_first():
    adapted, _, losses = adapt_request(
        "messages", "claude-opus-5", ask(build_message("assistant", "hello", where="/m"), HI)
    )
    assert [message.role for message in adapted.messages] == ["user", "assistant", "user"]
    assert losses == [("approximated", "/m")]


def test_new_claude_thinks_within_any_tool_loop():
    request = ask(*LOOP, tools=(TOOL,), thinking=Thinking(effort="high"))
    adapted, *_ = adapt_request("messages", "claude-opus-5", request)
    assert adapted.thinking == Thinking(mode="adaptive", effort="high")


def test_temperature_is_sent_when_thinking_was_switched_off_within_a_loop():
    request = ask(*LOOP, tools=(TOOL,), thinking=ENABLED, sampling=Sampling(temperature=0.5, max_tokens=9000))
    adapted, *_ = adapt_request("messages", OLD, request)
    assert adapted.sampling == Sampling(temperature=0.5, max_tokens=9000)


BODIES = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_p": -1, "top_k": -1},
    "responses": {"model": "m", "input": "hi", "top_p": -1.0},
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "top_p": -1,
        "top_k": -1,
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"topP": -1, "topK": -1},
    },
}


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("chat", "gpt-4.1"),
        ("chat", "llama"),
        ("responses", "gpt-4.1"),
        ("messages", "claude-sonnet-4"),
        ("messages", "claude-opus-5"),
        ("gemini", "gemini-2.5-pro"),
        ("gemini", "gemini-3.8-pro"),
    ],
)
def test_minus_one_means_that_top_p_and_top_k_are_unset(source, target, model):
    if source == target:
        pytest.skip("forwarded unchanged")
    translation = translate_request(Call(encode(BODIES[source]), "m"), source, target, model=model)
    sent = translation.call.body.lower().replace(b"_", b"")
    assert b"topp" not in sent
    assert b"topk" not in sent
    assert [loss.where for loss in translation.losses if "top" in loss.where.lower()] == []
