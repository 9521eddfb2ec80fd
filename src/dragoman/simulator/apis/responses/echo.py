"""What a reply says again of its request: settings with their defaults, tools as the vendor understood them."""

from typing import Any, cast

from dragoman.simulator.apis.openai.schemas import made_strict
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.rule import Json

_LOCATION: Json = {"type": "approximate", "city": None, "country": "US", "region": None, "timezone": None}
_NOT_TOLD = {"return_token_budget", "n", "search_content_types"}
"""Members of hosted tools that the vendor's own SDK does not know in replies."""


def echoed(request: Request) -> Json:
    """Return the members of a reply that come from the request alone."""
    body, document = request.body, request.document
    tools = cast("list[Json]", document.get("tools") or [])
    told: Json = {
        "background": bool(body.background),
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "metadata": body.metadata or {},
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "prompt_cache_key": body.prompt_cache_key,
        "prompt_cache_retention": body.prompt_cache_retention,
        "reasoning": _reasoning(request),
        "safety_identifier": body.safety_identifier,
        "service_tier": _tier(body.service_tier),
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "text": _text(request),
        "tool_choice": document.get("tool_choice") or "auto",
        "tools": [echoed_tool(tool) for tool in tools],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": 1.0 if body.top_p is None else body.top_p,
        "truncation": body.truncation or "disabled",
        "user": body.user,
    }
    if body.conversation is not None:
        told["conversation"] = {"id": request.conversation}
    if body.prompt is not None:
        told["prompt"] = document["prompt"]
    if body.prompt_cache_options is not None:
        options = body.prompt_cache_options
        told["prompt_cache_options"] = {"mode": options.mode or "implicit", "ttl": options.ttl or "30m"}
    if body.access_programs is not None:
        told["access_programs"] = {"cyber": body.access_programs.cyber}
    if body.image is not None:
        asked = body.image.context_compression
        told["image"] = {"context_compression": asked if asked in {"enabled", "disabled"} else "enabled"}
    return told


def _reasoning(request: Request) -> Json:
    options, model = request.body.reasoning, request.model
    told: Json = {
        "effort": model.effort(options.effort if options is not None else None) or None,
        "summary": options.tells if options is not None else None,
    }
    if model.reasons:
        asked = options.context if options is not None and options.context != "auto" else None
        told["context"] = asked or ("all_turns" if model.generation >= (5, 6) else "current_turn")
        told["mode"] = (options.mode if options is not None else None) or "standard"
    return told


def _tier(asked: str | None) -> str:
    match asked:
        case None | "auto":
            return "default"
        case "fast":
            return "priority"
        case _:
            return asked


def _text(request: Request) -> Json:
    text = request.body.text
    given = cast("Json", request.document.get("text") or {})
    written: Any = given.get("format") or {"type": "text"}
    wanted = cast("Json", written)
    if wanted.get("type") == "json_schema":
        wanted = {**wanted, "description": wanted.get("description"), "strict": bool(wanted.get("strict"))}
    return {"format": wanted, "verbosity": (text.verbosity if text is not None else None) or "medium"}


def echoed_tool(tool: Json) -> Json:
    """Tell a tool again; where `strict` was not given the vendor tries to make its schema strict."""
    match tool.get("type"):
        case "function":
            return _function(tool)
        case "custom":
            return {**tool, "description": tool.get("description"), "format": tool.get("format") or {"type": "text"}}
        case "namespace":
            return {**tool, "tools": [echoed_tool(inner) for inner in cast("list[Json]", tool["tools"])]}
        case "web_search" | "web_search_2025_08_26" | "web_search_preview" | "web_search_preview_2025_03_11":
            given = cast("Json", tool.get("user_location") or {})
            place = {**_LOCATION, "country": None, **given} if given else _LOCATION
            size = tool.get("search_context_size") or "medium"
            return {**_told(tool), "search_context_size": size, "user_location": place}
        case _:
            return _told(tool)


def _told(tool: Json) -> Json:
    return {name: value for name, value in tool.items() if name not in _NOT_TOLD}


def _function(tool: Json) -> Json:
    told: Json = {**tool, "description": tool.get("description"), "parameters": tool.get("parameters")}
    if tool.get("strict") is not None:
        return told
    strict = made_strict(cast("Json | None", tool.get("parameters")))
    return {**told, "parameters": strict or tool.get("parameters"), "strict": strict is not None}
