"""OpenAI Chat Completions: `POST /v1/chat/completions`."""

from dragoman.simulator.apis.api import AcceptedRequest, Api
from dragoman.simulator.apis.chat import rules_messages, rules_settings, rules_tools
from dragoman.simulator.apis.chat.body import BODY, ChatCompletionsRequest
from dragoman.simulator.apis.chat.read import read_model_request
from dragoman.simulator.apis.chat.rules_messages import PROBED
from dragoman.simulator.apis.chat.write import drop_choices, render_reply, render_stream, render_stream_error
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.declarations import find_first_mismatch
from dragoman.simulator.apis.openai.errors import NOT_JSON, render_error
from dragoman.simulator.apis.openai.models import find_chat_family
from dragoman.simulator.apis.openai.replies import BAD_KEY, NO_KEY, build_answer_headers
from dragoman.simulator.apis.openai.words import describe_mismatch
from dragoman.simulator.apis.rule import CheckContext, Rule, Violation, find_first_violation
from dragoman.wire.json import Malformed, decode, encode

_SDK = f"openai-python 3.49 types; {PROBED}"
MEMBER_RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule("chat.json", "The body is JSON.", "reported in public issues: the error text says how to fix it"),
    Rule(
        "chat.unknown-field",
        "Fields are those of OpenAI's API; fields of other APIs and of compatible servers are rejected.",
        f"{PROBED} (the body, developer messages, options); recorded as ignored, so accepted: unknown fields of a "
        "function, `annotations`, `index` of calls, `name` of results; elsewhere in messages: no source",
    ),
    Rule("chat.type", "Every field has the documented type.", _SDK),
    Rule("chat.enum", "Enum values are from OpenAI's lists.", _SDK),
    Rule("chat.required", "Required fields are present.", _SDK),
    Rule("chat.bounds", "Numbers are within bounds.", f"wire/openai_chat.md section 1; {PROBED}"),
)
"""Rules that the declaration of the body enforces."""
RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    *rules_settings.FIRST_RULES,
    *rules_messages.RULES,
    *rules_tools.RULES,
    *rules_settings.RULES,
    *rules_messages.LAST_RULES,
)
"""In the order in which they are checked; OpenAI reports only one error."""
_NOT_JSON = Violation(
    f"{NOT_JSON} If you have trouble figuring out how to fix this, please contact us through our help center at "
    "help.openai.com.)",
    rule="chat.json",
)
_NO_COUNT = (
    "Unknown request URL: POST /v1/chat/completions/input_tokens. Please check the URL for typos, or see the docs at "
    "https://platform.openai.com/docs/api-reference/."
)


def accept(body: bytes, context: CheckContext, _: TokenSigner) -> AcceptedRequest | Violation:
    """Validate a request; Chat Completions has no signatures to check."""
    try:
        document = decode(body)
        found = find_first_mismatch(BODY, document)
        if found is not None:
            is_unnamed = found.reason == "required" and found.name == "model"
            message = "you must provide a model parameter" if is_unnamed else describe_mismatch(found)
            return Violation(message, found.where, rule=f"chat.{found.reason}")
        request = ChatCompletionsRequest(document, family=find_chat_family(document["model"]))
        violation = find_first_violation(RULES, request, context)
    except (Malformed, RecursionError):
        return _NOT_JSON
    if violation is not None:
        return violation
    return AcceptedRequest(model_request=read_model_request(request), body=request, stream=bool(request.get("stream")))


def render_token_count(_accepted: AcceptedRequest, _tokens: int) -> bytes:
    """Return the error for a token count, which Chat Completions does not support."""
    error = {"message": _NO_COUNT, "type": "invalid_request_error", "param": None, "code": "unknown_url"}
    return encode({"error": error})


API = Api(
    name="chat",
    rules=(*MEMBER_RULES, *RULES),
    accept=accept,
    render_reply=render_reply,
    render_stream=render_stream,
    render_error=render_error,
    render_stream_error=render_stream_error,
    render_token_count=render_token_count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    drop_answer=drop_choices,
    build_headers=build_answer_headers,
)
