"""The tables of informational losses: what a request asks for and what a reply answers is never in them."""

import pytest

from dragoman.dialects import reasons
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.ledger import normalise_pointer, open_reply_ledger, open_request_ledger

MATERIAL = ("tools", "tool_choice", "messages", "sampling.max_tokens", "sampling.stop", "output", "finish")
"""Core fields of a request or reply, with all below them."""
MATERIAL_IN_OWNER = ("tool", "call", "result", "media", "part", "message")
"""Core fields whose pointers are relative to a tool, a part or a message, with all below them."""
CACHE_MARKS = ("tool.cache", "part.cache")
LISTS = ("tools", "messages", "finish.blocked")
DESCRIPTIONS = ("finish.message",)
"""Texts that describe a field which is sent."""
"""Fields that contain others: a row below one of them is checked by itself."""
FRAMING = {"messages": {"/tools/#/eager_input_streaming"}}
"""Members of tools that only say in which pieces a reply is streamed."""

EARLIER_CITATIONS = {"chat": {"/messages/#/annotations"}}
"""Citations of earlier answers, whose text is sent; those of other dialects get this grade in `history`."""


def is_about(field, names):
    return field not in (*CACHE_MARKS, *DESCRIPTIONS) and any(
        field == name or field.startswith(f"{name}.") for name in names
    )


def list_above(pointer):
    """Return a pointer and those above it, without the root."""
    tokens = pointer.split("/")
    return ["/".join(tokens[:end]) for end in range(2, len(tokens) + 1)]


def overlaps(row, field, place):
    """Return whether a row is at, above or below the pointer of a material field."""
    if is_about(field, MATERIAL):
        return row in list_above(place) or (field not in LISTS and row.startswith(f"{place}/"))
    return is_about(field, MATERIAL_IN_OWNER) and any(row.endswith(above) for above in list_above(place))


def find_overlaps(rows, pointers):
    """Return the rows about a material field, each with the field."""
    return {
        (row, field)
        for row in map(normalise_pointer, rows)
        for field, places in pointers.items()
        if any(overlaps(row, field, place) for place in map(normalise_pointer, places))
    }


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_no_row_is_about_a_material_core_field(name):
    dialect = DIALECTS[name]
    rows = set(map(normalise_pointer, dialect.informational)) - EARLIER_CITATIONS.get(name, set())
    assert find_overlaps(rows, dialect.pointers) == set()
    assert find_overlaps(dialect.informational_replies, dialect.reply_pointers) == set()


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("/tools", "tools"),
        ("/response_format/json_schema/name", "output"),
        ("/max_tokens", "sampling.max_tokens"),
        ("/messages/#/tool_calls/#/extra_content", "part.signature"),
        ("/messages/#/content/#/annotations", "part.citations"),
        ("/messages/#/content/#/file", "media.name"),
    ],
)
def test_a_row_about_a_material_core_field_is_found(row, field):
    assert (normalise_pointer(row), field) in find_overlaps([row], DIALECTS["chat"].pointers)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_rows_about_members_of_tools_are_cache_marks(name):
    dialect = DIALECTS[name]
    rows = {row: reason for row, reason in dialect.informational.items() if row.startswith("/tools/")}
    assert {row for row, reason in rows.items() if reason != reasons.CACHE_ONLY} == FRAMING.get(name, set())


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_row_has_a_reason(name):
    dialect = DIALECTS[name]
    assert all([*dialect.informational.values(), *dialect.informational_replies.values()])


REQUESTS = {
    "chat": [
        "/messages/0/content",
        "/messages/0/content/0/text",
        "/messages/0/content/0/image_url/url",
        "/messages/0/content/0/input_audio/data",
        "/messages/0/content/0/file/file_data",
        "/messages/0/refusal",
        "/messages/0/reasoning_content",
        "/messages/0/tool_calls/0",
        "/messages/0/tool_calls/0/function/arguments",
        "/messages/0/reasoning_details/0/signature",
        "/max_tokens",
        "/stop/0",
        "/functions/0",
        "/tools/0/function/description",
        "/response_format",
        "/logprobs",
    ],
    "responses": [
        "/instructions",
        "/input/0",
        "/input/0/content/0/text",
        "/input/0/content/0/image_url",
        "/input/0/content/0/refusal",
        "/input/0/encrypted_content",
        "/input/0/summary/0/text",
        "/input/0/arguments",
        "/input/0/output",
        "/tools/0/description",
        "/max_output_tokens",
        "/text/format",
        "/previous_response_id",
    ],
    "messages": [
        "/system",
        "/system/0/text",
        "/messages/0/content/0",
        "/messages/0/content/0/text",
        "/messages/0/content/0/thinking",
        "/messages/0/content/0/signature",
        "/messages/0/content/0/source/data",
        "/messages/0/content/0/input",
        "/messages/0/content/0/content/0/text",
        "/messages/0/content/0/is_error",
        "/tools/0/description",
        "/max_tokens",
        "/stop_sequences/0",
        "/mcp_servers/0",
        "/output_config/format",
    ],
    "gemini": [
        "/systemInstruction/parts/0/text",
        "/contents/0/parts/0",
        "/contents/0/parts/0/text",
        "/contents/0/parts/0/thoughtSignature",
        "/contents/0/parts/0/inlineData/data",
        "/contents/0/parts/0/functionCall/args",
        "/contents/0/parts/0/functionResponse/response",
        "/tools/0/functionDeclarations/0/description",
        "/generationConfig/responseSchema",
        "/generationConfig/stopSequences",
        "/request/generationConfig/maxOutputTokens",
    ],
}
REPLIES = {
    "chat": [
        "/choices/0",
        "/choices/1",
        "/choices/0/message/content",
        "/choices/0/message/refusal",
        "/choices/0/message/annotations/0",
        "/choices/0/message/audio/data",
        "/choices/0/message/images/0",
        "/choices/0/message/reasoning_content",
        "/choices/0/message/reasoning_details",
        "/choices/0/message/tool_calls/0/function/name",
        "/choices/0/logprobs",
    ],
    "responses": [
        "/output/0",
        "/output/0/content/0/text",
        "/output/0/content/0/refusal",
        "/output/0/content/0/annotations/0",
        "/output/0/encrypted_content",
        "/output/0/arguments",
        "/output/0/namespace",
        "/output/0/result",
        "/incomplete_details",
    ],
    "messages": [
        "/content/0",
        "/content/0/text",
        "/content/0/citations/0",
        "/content/0/signature",
        "/content/0/data",
        "/content/0/input",
        "/stop_sequence",
    ],
    "gemini": [
        "/candidates/0",
        "/candidates/1",
        "/candidates/0/content/parts/0/text",
        "/candidates/0/content/parts/0/thoughtSignature",
        "/candidates/0/content/parts/0/inlineData",
        "/candidates/0/content/parts/0/functionCall/args",
        "/candidates/0/groundingMetadata",
        "/candidates/0/citationMetadata",
        "/promptFeedback/blockReason",
    ],
}


@pytest.mark.parametrize("name", sorted(DIALECTS))
@pytest.mark.parametrize(("opened", "places"), [(open_request_ledger, REQUESTS), (open_reply_ledger, REPLIES)])
def test_the_loss_of_content_is_material(name, opened, places):
    ledger = opened(DIALECTS[name])
    for where in places[name]:
        ledger.report_approximated(where, "changed")
    assert {loss.where: loss.grade for loss in ledger.losses()} == dict.fromkeys(places[name], "material")
