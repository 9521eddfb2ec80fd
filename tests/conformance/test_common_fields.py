"""Which members of recorded requests make `Shape` read a document twice: common ones are declared, the rest is listed.

An undeclared member is kept all the same, but the request that has it is read level by level. A new name in
`SLOW` needs a reason; a common one is declared in the dialect's wire.py as `RawMember`.
"""

import copy
from collections import Counter
from functools import reduce
from operator import getitem

import msgspec
import pytest
from msgspec import structs

from conformance.recordings import DIALECTS, requests
from dragoman.core.traits import Traits
from dragoman.dialects.chat import wire as chat_wire
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.gemini import response as gemini_response
from dragoman.dialects.gemini import wire as gemini_wire
from dragoman.dialects.messages import wire as messages_wire
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS as RECORDS
from dragoman.dialects.responses import wire as responses_wire
from dragoman.wire import json, shape
from dragoman.wire import unread as unread_members
from shelf import needs_shelf

OTHER_VENDOR = "another vendor's extension, in at most 1 % of the requests"
RARE = "in at most 1 % of the requests"
TOOL_MEMBER = "a member of a tool; the same tools come with every request of a client, and are read once"
KEPT_WHOLE = "a tool that the vendor runs, or a block of one: kept whole, so it has no shape"
SNAKE = "snake_case, which proto JSON also takes: renamed when a request is read level by level"
SLOW: dict[str, dict[str, set[str]]] = {
    "chat": {
        OTHER_VENDOR: {
            *(
                "ChatRequest.echo",
                "ChatRequest.min_p",
                "ChatRequest.plugins",
                "ChatRequest.random_seed",
            ),
            *("ChatRequest.reasoning_format", "ChatRequest.repetition_penalty", "ChatRequest.safety_model"),
            *("SystemMessage.cache_control", "SentCall.cache_control", "UserMessage.cache_control"),
            "type=document_url",
        },
        RARE: {
            *(
                "ChatRequest.audio",
                "ChatRequest.logit_bias",
                "ChatRequest.modalities",
                "ChatRequest.store",
                "ChatRequest.top_logprobs",
            ),
            *("ChatRequest.web_search_options", "ChatFunctionCall.parsed_arguments"),
            "UserMessage.tool_calls",
        },
        TOOL_MEMBER: {
            *("ChatTool.cache_control", "ChatTool.parameters"),
            *("Function.external_execution", "Function.requires_confirmation", "Function.type"),
        },
    },
    "responses": {
        TOOL_MEMBER: {
            "CustomTool.allowed_callers",
            "WireFunctionTool.allowed_callers",
            "WireFunctionTool.output_schema",
        },
        KEPT_WHOLE: {
            *("type=apply_patch", "type=code_interpreter", "type=computer_use_preview", "type=file_search"),
            *("type=image_generation", "type=local_shell", "type=mcp", "type=programmatic_tool_calling"),
            *("type=tool_search", "type=web_search", "type=web_search_preview"),
        },
    },
    "messages": {
        RARE: {"FormatShape.json_schema", "type=compaction", "type=container_upload", "type=search_result"},
        KEPT_WHOLE: {
            *("ToolShape.allowed_domains", "ToolShape.blocked_domains", "ToolShape.citations", "ToolShape.max_uses"),
            *("ToolShape.max_content_tokens", "ToolShape.user_location", "ToolShape.max_characters"),
            *("ToolShape.display_height_px", "ToolShape.display_width_px", "ToolShape.mcp_server_name"),
            *("ToolShape.max_tokens", "ToolShape.model"),
            *("type=advisor_tool_result", "type=bash_code_execution_tool_result", "type=code_execution_tool_result"),
            *("type=mcp_tool_result", "type=mcp_tool_use", "type=server_tool_use", "type=tool_addition"),
            *("type=tool_reference", "type=tool_search_tool_result", "type=web_fetch_tool_result"),
            "type=web_search_tool_result",
        },
    },
    "gemini": {
        SNAKE: {
            *(
                "GeminiPart.file_data",
                "GeminiPart.function_call",
                "GeminiPart.function_response",
                "GeminiPart.inline_data",
            ),
            *("GeminiPart.thought_signature", "FunctionResponsePart.file_data", "FunctionResponsePart.inline_data"),
            *("Blob.mime_type", "FileData.file_uri", "FileData.mime_type"),
            *(
                "GeminiTool.function_declarations",
                "GeminiTool.google_search",
                "FunctionCallingConfig.allowed_function_names",
            ),
            *("GenerationConfig.response_mime_type", "GenerationConfig.response_schema"),
            *("ThinkingConfig.include_thoughts", "ThinkingConfig.thinking_budget", "ThinkingConfig.thinking_level"),
        },
        RARE: {
            *("GenerationConfig.imageConfig", "GenerationConfig.mediaResolution", "GenerationConfig.speechConfig"),
            *("GenerateContentRequest.cachedContent", "GenerateContentRequest.modelArmorConfig"),
            *("GenerateContentRequest.requestId", "GenerateContentRequest.requestType"),
            *("GenerateContentRequest.sessionId", "GenerateContentRequest.userAgent"),
        },
        KEPT_WHOLE: {
            *(
                "GeminiPart.codeExecutionResult",
                "GeminiPart.executableCode",
                "GeminiPart.toolCall",
                "GeminiPart.toolResponse",
            ),
            "GeminiTool.fileSearch",
        },
    },
}
"""Undeclared fields, as Struct.member, and unknown tags; by dialect and reason."""


@pytest.fixture
def slow(monkeypatch) -> set[str]:
    """What made `Shape` read level by level."""
    found: set[str] = set()
    read_members, read_tagged = unread_members._decode_members, unread_members._decode_tagged

    def members_noted(members, plan, where, unread):
        unknown = members.keys() - plan.members.keys() - {plan.tag_field}
        found.update(f"{plan.struct.__name__}.{name}" for name in unknown)
        return read_members(members, plan, where, unread)

    def tags_noted(raw, plan, where, unread, failure):
        tag = json.decode(json.decode_object(raw)[plan.tag_field])
        if tag not in plan.tagged:
            found.add(f"{plan.tag_field}={tag}")
        return read_tagged(raw, plan, where, unread, failure)

    monkeypatch.setattr(unread_members, "_decode_members", members_noted)
    monkeypatch.setattr(unread_members, "_decode_tagged", tags_noted)
    return found


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_listed_members_of_recorded_requests_are_read_slowly(dialect, slow):
    counts: Counter[str] = Counter()
    for asked in requests(dialect):
        slow.clear()
        # Bytes that no other test sends: tools of known bytes may not be read again.
        body = msgspec.json.format(asked.body, indent=7)
        RECORDS[dialect].parse_request(Call(body, asked.model, asked.stream))
        counts.update(slow)
    listed = {name: reason for reason, names in SLOW[dialect].items() for name in names}
    assert counts.keys() - listed.keys() == set(), "declare it as RawMember if it is common, else list it with a reason"
    assert listed.keys() - counts.keys() == set(), "no recorded request has it any more"
    common = {name for name, count in counts.items() if count > len(requests(dialect)) / 100}
    assert {name for name in common if listed[name] in (RARE, OTHER_VENDOR)} == set(), "declare it as RawMember"


def test_an_undeclared_member_is_noticed(slow):
    RECORDS["chat"].parse_request(Call(b'{"messages":[{"role":"user","content":"x","novel":1}],"stream_options":{}}'))
    assert slow == {"UserMessage.novel"}


CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}, CHAT_IMAGE]},
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
    ],
}
RESPONSES = {
    "model": "m",
    "input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}],
    "reasoning": {"effort": "low"},
    "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}],
}
MESSAGES = {
    "model": "m",
    "max_tokens": 1,
    "messages": [
        {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]},
    ],
    "tools": [{"name": "f", "input_schema": {}}],
}
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "x"}]}],
    "tools": [{"functionDeclarations": [{"name": "f"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "generationConfig": {"temperature": 1},
}
HOLDERS = {
    chat_wire.ChatRequest: (CHAT, ()),
    chat_wire.ChatTextPart: (CHAT, ("messages", 0, "content", 0)),
    chat_wire.Url: (CHAT, ("messages", 0, "content", 1, "image_url")),
    chat_wire.AssistantMessage: (CHAT, ("messages", 1)),
    chat_wire.SentCall: (CHAT, ("messages", 1, "tool_calls", 0)),
    responses_wire.ResponsesRequest: (RESPONSES, ()),
    responses_wire.WireItem: (RESPONSES, ("input", 0)),
    responses_wire.ReasoningSettings: (RESPONSES, ("reasoning",)),
    responses_wire.WireFunctionTool: (RESPONSES, ("tools", 0)),
    messages_wire.RequestShape: (MESSAGES, ()),
    messages_wire.DocumentBlock: (MESSAGES, ("messages", 0, "content", 0)),
    messages_wire.ToolShape: (MESSAGES, ("tools", 0)),
    gemini_wire.GenerateContentRequest: (GEMINI, ()),
    gemini_wire.GeminiTool: (GEMINI, ("tools", 0)),
    gemini_wire.FunctionDeclaration: (GEMINI, ("tools", 0, "functionDeclarations", 0)),
    gemini_wire.ToolConfig: (GEMINI, ("toolConfig",)),
    gemini_wire.GenerationConfig: (GEMINI, ("generationConfig",)),
}
"""Structs of requests with members that are only carried: a document that has one, and where."""


def _list_raw_members(struct) -> list[str]:
    return [field.encode_name for field in structs.fields(struct) if field.type == shape.RawMember]


def _all_structs(base) -> set[type]:
    return {base}.union(*(_all_structs(struct) for struct in base.__subclasses__()))


REPLIES = {
    *(value for value in vars(wire_reply).values() if isinstance(value, type) and issubclass(value, shape.Wire)),
    gemini_wire.Candidate,
    gemini_wire.UsageMetadata,
    gemini_wire.GenerateContentResponse,
    gemini_response.WholeCandidate,
    gemini_response.WholeResponse,
    messages_wire.ReplyShape,
    messages_wire.UsageShape,
    messages_wire.FinalDelta,
    messages_wire.MessageDelta,
}
"""Structs of replies, whose members are held to every recorded reply."""
TYPED_VALUES = {
    "enable_thinking": True,
    "thinking_budget": 1024,
    "thinking_token_budget": 1024,
    "reasoning_details": [{"kept": 1}],
}
"""Values of members that are read: one of another type is rejected."""


def test_every_struct_with_raw_members_is_tried_below():
    ours = {struct for struct in _all_structs(shape.Wire) if struct.__module__.startswith("dragoman.")}
    assert {struct for struct in ours if _list_raw_members(struct)} - REPLIES == set(HOLDERS)


@pytest.mark.parametrize(
    ("struct", "member"), [(struct, member) for struct in HOLDERS for member in _list_raw_members(struct)]
)
def test_a_shared_field_is_parsed_at_once_and_rendered_back(struct, member, slow):
    document, path = HOLDERS[struct]
    record = RECORDS[struct.__module__.split(".")[2]]
    sent = copy.deepcopy(document)
    holder = reduce(getitem, path, sent)
    holder[member] = TYPED_VALUES.get(member, {"kept": [1]})
    for undeclared in (False, True):
        slow.clear()
        if undeclared:
            holder["novel"] = 1
        request = record.parse_request(Call(json.encode(sent)))
        assert bool(slow) == undeclared
        assert json.decode(record.render_request(request, Traits(dialect=record.name)).body) == sent
