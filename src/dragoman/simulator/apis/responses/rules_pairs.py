"""Rules about calls and what answers them: each call of the client's tools has its answer, each answer its call."""

from collections.abc import Iterator

from msgspec import Struct

from dragoman.simulator.apis.responses.rules_items import kind_of, references
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ComputerCall,
    ComputerCallOutput,
    Item,
    McpApprovalRequest,
    McpApprovalResponse,
    ShellCall,
    ShellCallOutput,
)
from dragoman.simulator.apis.responses.shape_items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    ToolSearchCall,
    ToolSearchOutput,
)
from dragoman.simulator.rule import Rule, Situation, Violation

_ANSWERS = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "tool_search_call": ("tool_search_output", "function_call_output"),
    "computer_call": ("computer_call_output",),
    "shell_call": ("shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
}
"""What may answer what; a look for tools may also be answered as a function is (recorded: pydantic-ai-0013)."""


class Pairs(Struct):
    """Calls and answers by their call ids, with their places."""

    calls: dict[str, list[tuple[int, str]]]
    answers: dict[str, list[tuple[int, str]]]


def _paired(request: Request) -> Pairs:
    pairs = Pairs({}, {})
    for number, item in enumerate(request.items):
        match item:
            case FunctionCall() | CustomToolCall() | ComputerCall() | ShellCall() | ApplyPatchCall():
                pairs.calls.setdefault(item.call_id, []).append((number, kind_of(item)))
            case ToolSearchCall(call_id=str() as call_id, execution="client"):
                pairs.calls.setdefault(call_id, []).append((number, kind_of(item)))
            case (
                FunctionCallOutput()
                | CustomToolCallOutput()
                | ComputerCallOutput()
                | ShellCallOutput()
                | ApplyPatchCallOutput()
            ):
                pairs.answers.setdefault(item.call_id, []).append((number, kind_of(item)))
            case ToolSearchOutput(call_id=str() as call_id, execution="client"):
                pairs.answers.setdefault(call_id, []).append((number, kind_of(item)))
            case _:
                pass
    return pairs


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")


def _unanswered(request: Request, _: Situation) -> Iterator[Violation]:
    pairs = _paired(request)
    for call_id, calls in pairs.calls.items():
        for number, kind in calls:
            if _is_async(request.items[number]):
                continue
            answers = pairs.answers.get(call_id, ())
            if not any(at > number and answer in _ANSWERS[kind] for at, answer in answers):
                yield Violation(f"No tool output found for {_spoken(kind)} {call_id}.", "/input")


def _is_async(item: Item) -> bool:
    return isinstance(item, FunctionCall | CustomToolCall) and bool(item.is_async)


def _unasked(request: Request, _: Situation) -> Iterator[Violation]:
    if request.continues or references(request):
        return
    pairs = _paired(request)
    for call_id, answers in pairs.answers.items():
        for number, kind in answers:
            calls = pairs.calls.get(call_id, ())
            if not any(at < number and kind in _ANSWERS[call] for at, call in calls):
                spoken = _spoken(kind.removesuffix("_output"))
                yield Violation(f"No tool call found for {spoken} output with call_id {call_id}.", "/input")


def _repeated_call(request: Request, _: Situation) -> Iterator[Violation]:
    pairs = _paired(request)
    for call_id, calls in pairs.calls.items():
        if len(calls) > 1:
            yield Violation(f"Duplicate tool call found with call_id {call_id}.", f"/input/{calls[1][0]}/call_id")
    for call_id, answers in pairs.answers.items():
        if len(answers) > 1:
            yield Violation(f"Duplicate tool output found with call_id {call_id}.", f"/input/{answers[1][0]}/call_id")


def _unasked_approval(request: Request, _: Situation) -> Iterator[Violation]:
    if request.continues or references(request):
        return
    asked = {item.id for item in request.items if isinstance(item, McpApprovalRequest)}
    for number, item in enumerate(request.items):
        if isinstance(item, McpApprovalResponse) and item.approval_request_id not in asked:
            message = f"No approval request found for approval response with id {item.approval_request_id}."
            yield Violation(message, f"/input/{number}")


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.call-once",
        "A call id is called once and answered once.",
        "wire/mapping.md section 2 (duplicated results); words not recorded",
        _repeated_call,
    ),
    Rule(
        "responses.call-answered",
        "Each call of the client's tools is answered later in the input, unless its tool answers later.",
        "wire/openai_responses.md section 2 (pairing)",
        _unanswered,
    ),
    Rule(
        "responses.answer-called",
        "Each answer has its call earlier in the input, or in what the vendor keeps.",
        "wire/openai_responses.md section 2 (pairing)",
        _unasked,
    ),
    Rule(
        "responses.approval-asked",
        "An approval answers a request for one.",
        "no source: the vendor's words are not known",
        _unasked_approval,
    ),
)
