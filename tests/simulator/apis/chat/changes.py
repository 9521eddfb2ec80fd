"""Changes that mutators make to a body; each one works on a copy."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, cast

from dragoman.simulator.apis.openai.models import find_chat_family
from dragoman.simulator.apis.rule import Json

Path = Sequence[str | int]
_MODEL_BOUND = (
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "modalities",
    "n",
    "prediction",
    "presence_penalty",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "seed",
    "stop",
    "temperature",
    "top_logprobs",
    "top_p",
    "web_search_options",
)


def change(body: Json, **members: Any) -> Json:
    """Set top-level fields."""
    return {**deepcopy(body), **members}


def without(body: Json, *names: str) -> Json:
    """Remove top-level fields."""
    return {name: deepcopy(value) for name, value in body.items() if name not in names}


def put(body: Json, path: Path, value: Any) -> Json:
    """Set the value at a path."""
    copy = deepcopy(body)
    _inside(copy, path[:-1])[path[-1]] = value
    return copy


def drop(body: Json, path: Path) -> Json:
    """Remove the value at a path."""
    copy = deepcopy(body)
    del _inside(copy, path[:-1])[path[-1]]
    return copy


def _inside(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def with_messages(body: Json, *messages: Json, at: int | None = None) -> Json:
    """Add messages, at the end by default."""
    copy = deepcopy(body)
    place = len(copy["messages"]) if at is None else at
    copy["messages"][place:place] = messages
    return copy


def messages(body: Json, *roles: str) -> Iterator[tuple[int, Json]]:
    """Iterate over messages with their indexes; over all of them if no role is given."""
    for place, message in enumerate(cast("list[Json]", body["messages"])):
        if not roles or message["role"] in roles:
            yield place, message


def parts(body: Json, *kinds: str) -> Iterator[tuple[Path, Json]]:
    """Iterate over the parts of messages with their paths."""
    for place, message in messages(body):
        content = message.get("content")
        if isinstance(content, list):
            for index, part in enumerate(cast("list[Json]", content)):
                if not kinds or part["type"] in kinds:
                    yield ("messages", place, "content", index), part


def calls(body: Json) -> Iterator[tuple[Path, Json]]:
    """Iterate over tool calls with their paths."""
    for place, message in messages(body, "assistant"):
        for index, call in enumerate(cast("list[Json]", message.get("tool_calls") or [])):
            yield ("messages", place, "tool_calls", index), call


def tools(body: Json) -> list[Json]:
    """Return the tools of a body."""
    return cast("list[Json]", body.get("tools") or [])


def schema_answer(body: Json) -> Json:
    """Return the JSON schema format of the answer; empty if there is none."""
    answer = cast("Json", body.get("response_format") or {})
    return cast("Json", answer.get("json_schema") or {})


def functions(body: Json) -> Iterator[tuple[Path, Json]]:
    """Iterate over function definitions with their paths."""
    for index, tool in enumerate(tools(body)):
        if tool["type"] == "function":
            yield ("tools", index, "function"), tool["function"]


def schemas(body: Json, *, strict: bool = False) -> Iterator[tuple[Path, Json]]:
    """Iterate over the schemas of tools and of the answer with their paths; with `strict`, only over strict ones."""
    for path, function in functions(body):
        if function.get("parameters") and (function.get("strict") or not strict):
            yield (*path, "parameters"), function["parameters"]
    answer = schema_answer(body)
    if answer.get("schema") and (answer.get("strict") or not strict):
        yield ("response_format", "json_schema", "schema"), answer["schema"]


def with_tool(body: Json, tool: Json) -> Json:
    """Add a tool to those of a body; a body without tools gets no other parameter."""
    copy = deepcopy(body)
    copy["tools"] = [*(copy.get("tools") or []), tool]
    return copy


def function_tool(name: str, parameters: Json | None = None) -> Json:
    """Return a tool."""
    schema = parameters or {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def change_model(body: Json, model: str) -> Json | None:
    """Return a body for another model, without model-specific fields; None if the history is bound to its model."""
    family = find_chat_family(model)
    bound = any(part["type"] == "input_audio" or "prompt_cache_breakpoint" in part for _, part in parts(body))
    if bound or any(messages(body, "function")):
        return None
    if any(tool["type"] == "custom" for tool in tools(body)) and not family.custom_tools:
        return None
    if schema_answer(body) and not family.structured:
        return None
    if tools(body) and family.tools == "never":
        return None
    copy = without(body, *_MODEL_BOUND)
    copy["model"] = model
    if tools(body) and family.tools == "effort-none":
        copy["reasoning_effort"] = "none"
    return copy
