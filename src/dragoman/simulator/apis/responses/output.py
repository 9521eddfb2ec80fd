"""The contents of a response: its output items, in the vendor's order, and the fields it echoes from its request.

The same answer with the same metadata gives the same items, ids and tokens, so that a whole reply and a stream agree.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.apis.api import AcceptedRequest, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, Call
from dragoman.simulator.apis.openai.replies import build_logprobs
from dragoman.simulator.apis.openai.schemas import make_strict
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.client_tools import VENDOR_TOOLS, build_vendor_call, find_vendor_tools
from dragoman.simulator.apis.responses.ids import ItemId, encode_item_id
from dragoman.simulator.apis.responses.read import SEARCH_NAME, map_tool_names
from dragoman.simulator.apis.responses.rules_tools import find_client_tools
from dragoman.simulator.apis.rule import Json

_LOCATION: Json = {"type": "approximate", "city": None, "country": "US", "region": None, "timezone": None}
_TIERS: dict[str | None, str] = {None: "default", "auto": "default", "fast": "priority"}
_NOT_ECHOED = {"return_token_budget", "n", "search_content_types"}
"""Fields of hosted tools that the vendor's SDK does not know in replies."""


class _ReplyBuilder(Struct):
    """A response under construction."""

    request: ResponsesRequest
    meta: ReplyMeta
    items: list[Json]

    def add(self, prefix: str, kind: str, **members: Any) -> Json:
        """Append an item with the next id."""
        after_thought = bool(self.items) and self.items[-1]["type"] == "reasoning"
        issued = ItemId(
            prefix=prefix,
            reply=self.meta.id,
            index=len(self.items),
            stored=self.request.is_stored,
            after_thought=after_thought,
        )
        item: Json = {"id": encode_item_id(issued), "type": kind, **members}
        self.items.append(item)
        return item

    def add_message(self, parts: list[Json], phase: str = "") -> None:
        """Append a message; a refusal has no phase."""
        item = self.add("msg", "message", status="completed", role="assistant", content=parts)
        if phase and self.request.family.generation >= (5, 3):
            item["phase"] = phase


def build_items(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> list[Json]:
    """Return the output items of a response."""
    request = cast("ResponsesRequest", accepted.body)
    if answer.end == "malformed_call" or request.prewarms:
        return []
    if request.items and request.items[-1]["type"] == "compaction_trigger":
        return [build_compaction_item(meta, 0, stored=request.is_stored)]
    reply = _ReplyBuilder(request, meta, [])
    _add_reasoning(reply, answer)
    _add_search(reply, answer)
    _add_text(reply, answer)
    for call in answer.calls:
        _add_call(reply, call)
    if answer.end in {"length", "filtered"} and reply.items and "status" in reply.items[-1]:
        # A patch has no such status.
        reply.items[-1]["status"] = "in_progress" if reply.items[-1]["type"] == "apply_patch_call" else "incomplete"
    limits = [one.get("compact_threshold") for one in request.list("context_management")]
    # While calls are pending, the items that led to them are not compacted yet.
    if not answer.calls and any(limit is not None and answer.usage.input >= limit for limit in limits):
        reply.items.append(build_compaction_item(meta, len(reply.items), stored=request.is_stored))
    return reply.items


def build_compaction_item(meta: ReplyMeta, index: int, *, stored: bool) -> Json:
    """Return the compaction item, which replaces everything before it."""
    name = encode_item_id(ItemId(prefix="cmp", reply=meta.id, index=index, stored=stored, after_thought=False))
    return {
        "id": name,
        "type": "compaction",
        "encrypted_content": meta.signer.issue(name, f"{meta.id}/{index}"),
    }


def _add_reasoning(reply: _ReplyBuilder, answer: Answer) -> None:
    if not answer.thought:
        return
    request = reply.request
    summary = [{"type": "summary_text", "text": answer.thought}] if read_summary_option(request) is not None else []
    item = reply.add("rs", "reasoning", summary=summary)
    # Without `store` the client must keep the reasoning itself, whether it requested that or not.
    if not request.is_stored or "reasoning.encrypted_content" in request.list("include"):
        item["encrypted_content"] = reply.meta.signer.issue(item["id"], f"{reply.meta.id}/{len(reply.items)}")


def _add_search(reply: _ReplyBuilder, answer: Answer) -> None:
    if not answer.query:
        return
    action: Json = {"type": "search", "query": answer.query, "queries": [answer.query]}
    if "web_search_call.action.sources" in reply.request.list("include"):
        action["sources"] = [{"type": "url", "url": source.url} for source in answer.sources]
    reply.add("ws", "web_search_call", status="completed", action=action)


def _add_text(reply: _ReplyBuilder, answer: Answer) -> None:
    if answer.refusal:
        reply.add_message([{"type": "refusal", "refusal": answer.refusal}])
        return
    if not answer.text and (answer.calls or answer.end != "stop"):
        return
    request = reply.request
    wants_logprobs = "message.output_text.logprobs" in request.list("include")
    likely = build_logprobs(answer.text, request.get("top_logprobs") or 0) if wants_logprobs else []
    cited = list(_iterate_citations(answer))
    part: Json = {"type": "output_text", "annotations": cited, "logprobs": likely, "text": answer.text}
    reply.add_message([part], "commentary" if answer.calls else "final_answer")


def _iterate_citations(answer: Answer) -> Iterator[Json]:
    for source in answer.sources:
        start = answer.text.find(source.quote) if source.quote else -1
        if start >= 0:
            yield {
                "type": "url_citation",
                "start_index": start,
                "end_index": start + len(source.quote),
                "title": source.title,
                "url": source.url,
            }


def _add_call(reply: _ReplyBuilder, call: Call) -> None:
    request = reply.request
    if call.name == SEARCH_NAME and _searches_at_client(request):
        arguments: Any = call.arguments if isinstance(call.arguments, dict) else {}
        members: Json = {"call_id": _format_call_id(call), "execution": "client", "arguments": arguments}
        reply.add("tsc", "tool_search_call", status="completed", **members)
        return
    if isinstance(call.arguments, dict) and call.name in find_vendor_tools(request):
        members = build_vendor_call(call.name, call.arguments)
        reply.add(VENDOR_TOOLS[call.name].prefix, call_id=_format_call_id(call), **members)
        return
    namespace, name = map_tool_names(request).get(call.name, ("", call.name))
    placed = (one for one in find_client_tools(request) if (one[2], one[1]["name"]) == (namespace, name))
    where, tool, _ = next(placed, ("", cast("Json", {}), ""))
    if tool.get("defer_loading") and where.startswith("/tools/"):
        _add_tool_search(reply, int(where.split("/")[2]))
        # Without a namespace, a deferred tool gets its own name as one (recorded: openai_responses/pydantic-ai-0049).
        namespace = namespace or name
    grouped: Json = {"namespace": namespace} if namespace else {}
    if isinstance(call.arguments, str) or tool.get("type") == "custom":
        text = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
        reply.add("ctc", "custom_tool_call", call_id=_format_call_id(call), name=name, input=text, **grouped)
        return
    written = msgspec.json.encode(call.arguments).decode()
    members = {"arguments": written, "call_id": _format_call_id(call), "name": name, **grouped}
    reply.add("fc", "function_call", status="completed", **members)


def _format_call_id(call: Call) -> str:
    return call.id if call.id.startswith("call_") else f"call_{call.id}"


def _searches_at_client(request: ResponsesRequest) -> bool:
    return any(tool["type"] == SEARCH_NAME and tool.get("execution") == "client" for tool in request.list("tools"))


def _add_tool_search(reply: _ReplyBuilder, number: int) -> None:
    """Append a tool search for a deferred tool, unless one was done before."""
    wanted = echo_tool(reply.request.list("tools")[number])
    outputs = [item for item in (*reply.request.items, *reply.items) if item["type"] == "tool_search_output"]
    if any(tool.get("name") == wanted["name"] for item in outputs for tool in item["tools"]):
        return
    common: Json = {"status": "completed", "call_id": None, "execution": "server"}
    reply.add("tsc", "tool_search_call", **common, arguments={"paths": [wanted["name"]]})
    reply.add("tso", "tool_search_output", **common, tools=[wanted])


def echo_request(request: ResponsesRequest) -> Json:
    """Return the fields of a response that are copied from the request."""
    echoed: Json = {
        "background": bool(request.get("background")),
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": request.get("max_tool_calls"),
        "metadata": request.object("metadata"),
        "parallel_tool_calls": request.get("parallel_tool_calls") is not False,
        "previous_response_id": request.get("previous_response_id"),
        "prompt_cache_key": request.get("prompt_cache_key"),
        "prompt_cache_retention": request.get("prompt_cache_retention"),
        "reasoning": _echo_reasoning(request),
        "safety_identifier": request.get("safety_identifier"),
        "service_tier": _TIERS.get(request.get("service_tier"), request.get("service_tier")),
        "temperature": _as_float(request.get("temperature")),
        "text": _echo_text(request.object("text")),
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": [echo_tool(tool) for tool in request.list("tools")],
        "top_logprobs": request.get("top_logprobs") or 0,
        "top_p": _as_float(request.get("top_p")),
        "truncation": request.get("truncation") or "disabled",
        "user": request.get("user"),
    }
    if request.get("conversation") is not None:
        echoed["conversation"] = {"id": request.conversation}
    if request.get("prompt") is not None:
        echoed["prompt"] = request.get("prompt")
    if (options := request.get("prompt_cache_options")) is not None:
        mode, ttl = options.get("mode") or "implicit", options.get("ttl") or "30m"
        echoed["prompt_cache_options"] = {"mode": mode, "ttl": ttl}
    if (programs := request.get("access_programs")) is not None:
        echoed["access_programs"] = {"cyber": programs["cyber"]}
    if (image := request.get("image")) is not None:
        compression = image.get("context_compression")
        echoed["image"] = {"context_compression": compression if compression in {"enabled", "disabled"} else "enabled"}
    return echoed


def _as_float(given: float | None) -> float:
    return 1.0 if given is None else float(given)


def read_summary_option(request: ResponsesRequest) -> str | None:
    """Return the requested summary of the reasoning, under either name of the parameter."""
    return request.at("/reasoning/summary") or request.at("/reasoning/generate_summary")


def _echo_reasoning(request: ResponsesRequest) -> Json:
    options, family = request.object("reasoning"), request.family
    effort = options.get("effort") or family.default_effort
    echoed: Json = {"effort": effort or None, "summary": read_summary_option(request)}
    if family.reasons:
        context = options.get("context") if options.get("context") != "auto" else None
        echoed["context"] = context or ("all_turns" if family.generation >= (5, 6) else "current_turn")
        echoed["mode"] = options.get("mode") or "standard"
    return echoed


def _echo_text(text: Json) -> Json:
    wanted: Json = text.get("format") or {"type": "text"}
    if wanted["type"] == "json_schema":
        wanted = {**wanted, "description": wanted.get("description"), "strict": bool(wanted.get("strict"))}
    return {"format": wanted, "verbosity": text.get("verbosity") or "medium"}


def echo_tool(tool: Json) -> Json:
    """Return a tool as the response echoes it; without `strict` the vendor tries to make its schema strict."""
    match tool.get("type"):
        case "function":
            return _echo_function(tool)
        case "custom":
            return {**tool, "description": tool.get("description"), "format": tool.get("format") or {"type": "text"}}
        case "namespace":
            return {**tool, "tools": [echo_tool(inner) for inner in cast("list[Json]", tool["tools"])]}
        case "web_search" | "web_search_2025_08_26" | "web_search_preview" | "web_search_preview_2025_03_11":
            given = cast("Json", tool.get("user_location") or {})
            place = {**_LOCATION, "country": None, **given} if given else _LOCATION
            size = tool.get("search_context_size") or "medium"
            return {**_echo_members(tool), "search_context_size": size, "user_location": place}
        case _:
            return _echo_members(tool)


def _echo_members(tool: Json) -> Json:
    return {name: value for name, value in tool.items() if name not in _NOT_ECHOED}


def _echo_function(tool: Json) -> Json:
    echoed: Json = {**tool, "description": tool.get("description"), "parameters": tool.get("parameters")}
    if tool.get("strict") is not None:
        return echoed
    strict = make_strict(cast("Json | None", tool.get("parameters")))
    return {**echoed, "parameters": strict or tool.get("parameters"), "strict": strict is not None}
