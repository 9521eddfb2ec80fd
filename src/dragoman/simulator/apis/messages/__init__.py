"""Anthropic Messages, in its direct form and on Vertex."""

from dragoman.simulator.apis.api import AcceptedRequest, Api
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.declarations import Object, find_first_mismatch
from dragoman.simulator.apis.messages import rules_history, rules_messages, rules_schemas, rules_settings, rules_tools
from dragoman.simulator.apis.messages.body import COUNT, REQUEST, VERTEX_COUNT, VERTEX_REQUEST
from dragoman.simulator.apis.messages.errors import (
    BAD_KEY,
    BAD_TOKEN,
    NO_KEY,
    build_headers,
    check_headers,
    describe_mismatch,
    render_error,
    render_stream_error,
)
from dragoman.simulator.apis.messages.read import read_model_request
from dragoman.simulator.apis.messages.request import MessagesRequest, build_request
from dragoman.simulator.apis.messages.write import drop_content, render_reply, render_stream
from dragoman.simulator.apis.rule import CheckContext, Rule, Violation, find_first_violation
from dragoman.wire.json import Malformed, decode, encode

_TYPES = "wire/anthropic_messages.md sections 2 to 6 (the vendor's typed parameters)"
MEMBER_RULES: tuple[Rule[MessagesRequest], ...] = (
    Rule(
        "messages.unknown-field",
        "The body has only fields that the API knows.",
        "wire/anthropic_messages.md section 0",
    ),
    Rule("messages.type", "Every field has the documented type.", "recorded: anthropic/rig-0108"),
    Rule("messages.enum", "Enum values are from the documented list.", _TYPES),
    Rule("messages.required", "Required fields are present.", "recorded: anthropic/braintrust-sdk-ruby-0001"),
    Rule("messages.bounds", "Numbers are within their bounds.", _TYPES),
    Rule("messages.json", "The body is JSON.", "no source: not documented"),
    Rule("messages.authentication", "A request has a key or a token.", "wire/anthropic_messages.md section 1"),
    Rule(
        "messages.version-header",
        "A direct request names an existing API version.",
        "platform.claude.com api/versioning",
    ),
)
"""Rules that the declaration of the body and the check of the headers enforce."""
RULES: tuple[Rule[MessagesRequest], ...] = (
    *rules_settings.RULES,
    *rules_tools.RULES,
    *rules_schemas.RULES,
    *rules_messages.RULES,
    *rules_history.RULES,
)
"""In the order in which they are checked; the vendor reports only one error."""


def accept(body: bytes, context: CheckContext, signer: TokenSigner) -> AcceptedRequest | Violation:
    """Return the accepted request, or what is wrong with it."""
    try:
        document = decode(body)
        found = find_first_mismatch(_find_declaration(context), document)
        if found is not None:
            return Violation(describe_mismatch(found, document), found.where, rule=f"messages.{found.reason}")
        request = build_request(document, len(body), context, signer)
        violation = find_first_violation(RULES, request, context)
        if violation is not None:
            return violation
        return AcceptedRequest(
            model_request=read_model_request(request), body=request, stream=bool(request.get("stream"))
        )
    except (Malformed, RecursionError) as error:
        message = error.message if isinstance(error, Malformed) else "nested too deeply"
        return Violation(f"The request body is not valid JSON: {message}", rule="messages.json")


def _find_declaration(context: CheckContext) -> Object:
    if context.counting:
        return VERTEX_COUNT if context.vertex else COUNT
    return VERTEX_REQUEST if context.vertex else REQUEST


def render_token_count(_: AcceptedRequest, tokens: int) -> bytes:
    """Return the reply to a token-count request."""
    return encode({"input_tokens": tokens})


API = Api(
    name="messages",
    rules=(*MEMBER_RULES, *RULES),
    accept=accept,
    render_reply=render_reply,
    render_stream=render_stream,
    render_error=render_error,
    render_stream_error=render_stream_error,
    render_token_count=render_token_count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    bad_token=BAD_TOKEN,
    build_headers=build_headers,
    drop_answer=drop_content,
    check_headers=check_headers,
)
