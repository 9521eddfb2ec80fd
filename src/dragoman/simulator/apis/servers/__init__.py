"""Chat-compatible servers that are not OpenAI: `POST /NAME/v1/chat/completions`.

Their requests have the fields of OpenAI's API and their own; a field that neither has is ignored, as by these servers.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from dragoman.simulator.apis.api import AcceptedRequest, Api, ApiRejection
from dragoman.simulator.apis.chat import rules_messages
from dragoman.simulator.apis.chat.body import MEMBERS, MESSAGES
from dragoman.simulator.apis.chat.read import read_model_request
from dragoman.simulator.apis.chat.write import drop_choices
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.declarations import Kind, Object, TaggedUnion, find_first_mismatch
from dragoman.simulator.apis.openai.models import find_chat_family
from dragoman.simulator.apis.openai.words import describe_mismatch
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation, find_first_violation
from dragoman.simulator.apis.servers.hosts import HOSTS
from dragoman.simulator.apis.servers.server import Server, ServerRequest
from dragoman.simulator.apis.servers.vendors import VENDORS
from dragoman.simulator.apis.servers.write import Renderer
from dragoman.wire.json import Malformed, decode, encode

_SDK = "wire/provider_quirks.md; the types of openai-python 3.49"
_MISMATCH_RULES: tuple[Rule[ServerRequest], ...] = (
    Rule("server.json", "The body is a JSON object.", "no source: the error text differs"),
    Rule("server.unknown-field", "Tools, messages and choices have only known fields.", _SDK),
    Rule("server.type", "Every field has the documented type.", _SDK),
    Rule("server.enum", "Tools are functions, and enum values are documented.", _SDK),
    Rule("server.required", "Required fields are present.", _SDK),
    Rule("server.bounds", "Numbers are within bounds.", _SDK),
)
_PAIRING = frozenset(
    f"chat.{name}" for name in ("tool-result-unasked", "tool-result-unknown-id", "tool-calls-unanswered")
)
PAIR_RULES: tuple[Rule[ServerRequest], ...] = tuple(
    Rule(
        rule.name.replace("chat.", "server.", 1),
        rule.says,
        "reported in public issues for DeepSeek and Kimi; vLLM does not check it",
        *rule.checks,
    )
    for rule in rules_messages.RULES
    if rule.name in _PAIRING
)
_OWN_MESSAGE_MEMBERS = {
    "reasoning_content?": str,
    "reasoning?": str,
    "reasoning_details?": [dict],
}
"""Fields of an assistant message that these servers read, or ignore."""
_NO_KEY = ApiRejection(status=401, message="Authentication Fails: the API key is invalid", rule="key")


def _declare_body(server: Server) -> Kind:
    """Return the declaration of a server's requests: their tools are functions."""
    messages = {**MESSAGES, "assistant": {**MESSAGES["assistant"], **_OWN_MESSAGE_MEMBERS}}
    function = {"function": {"name": str, "description?": str, "parameters?": dict, "strict?": bool}}
    members = {
        **MEMBERS,
        "messages": [TaggedUnion("role", messages)],
        "tools?": [TaggedUnion("type", {"function": function})],
        **server.members,
    }
    return Object(members, is_open=True)


def _build_api(server: Server) -> Api:
    body, renderer = _declare_body(server), Renderer(server)
    rules = (*PAIR_RULES, *server.rules) if server.checks_pairs else server.rules

    def accept(raw: bytes, context: CheckContext, signer: TokenSigner) -> AcceptedRequest | Violation:
        try:
            document: Any = decode(raw)
            found = find_first_mismatch(body, document)
            if found is not None:
                rule = "json" if not isinstance(document, dict) else found.reason
                return Violation(describe_mismatch(found), found.where, rule=f"server.{rule}")
            family = find_chat_family(document["model"])
            request = ServerRequest(document, family=family, signer=signer)
            violation = find_first_violation(rules, request, context)
        except (Malformed, RecursionError):
            return Violation("The body is not JSON", rule="server.json")
        if violation is not None:
            return violation
        model_request = structs.replace(read_model_request(request), thinks=server.thinks(request))
        return AcceptedRequest(model_request=model_request, body=request, stream=bool(request.get("stream")))

    return Api(
        name=server.name,
        rules=rules,
        accept=accept,
        render_reply=renderer.render_reply,
        render_stream=renderer.render_stream,
        render_error=renderer.render_error,
        render_stream_error=renderer.render_stream_error,
        render_token_count=lambda _accepted, _tokens: encode(_no_count()),
        bad_key=_NO_KEY,
        drop_answer=drop_choices,
    )


def _no_count() -> Json:
    return {"error": {"message": "Not found", "type": "invalid_request_error", "param": None, "code": None}}


ROWS: tuple[Server, ...] = (*VENDORS, *HOSTS)
SERVERS: Mapping[str, Api] = {server.name: _build_api(server) for server in ROWS}
RULES: tuple[Rule[Any], ...] = (*_MISMATCH_RULES, *PAIR_RULES, *(rule for server in ROWS for rule in server.rules))
"""All rules, each once."""
