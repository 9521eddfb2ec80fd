"""Send requests and parse replies with Google's SDK."""

from typing import Any

import httpx2

from end_to_end.scenarios import SYSTEM, Scenario
from end_to_end.talk import Call, Reply, Result
from oracles.clients import genai, genai_types

NAME = "gemini"
SAYS_FAILED = True
FAILS_BY_MEMBER = True
"""A result that failed is an object with this one member."""
SAYS_IMAGES = True


class Client:
    """One conversation."""

    def __init__(self, base_url: str, http: httpx2.Client, model: str, scenario: Scenario) -> None:
        options = genai_types.HttpOptions(base_url=base_url, httpx_client=http)
        self._sdk = genai.Client(api_key="any", vertexai=False, http_options=options)
        self._contents: list[Any] = [{"role": "user", "parts": [{"text": scenario.prompt}]}]
        config: dict[str, Any] = {"system_instruction": SYSTEM}
        if scenario.tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parameters_json_schema": tool.schema}
                for tool in scenario.tools
            ]
            config["tools"] = [{"function_declarations": declared}]
        if scenario.choice != "auto":
            named = {"mode": "ANY", "allowed_function_names": [scenario.choice]}
            config["tool_config"] = {
                "function_calling_config": {"mode": "NONE"} if scenario.choice == "none" else named
            }
        if scenario.thinks:
            config["thinking_config"] = {"include_thoughts": True, "thinking_level": "HIGH"}
        self._asked: dict[str, Any] = {"model": model, "contents": self._contents, "config": config}

    def turn(self, *, streamed: bool) -> Reply:
        """Ask, and keep the answer as the SDK has it."""
        if streamed:
            chunks: list[Any] = list(self._sdk.models.generate_content_stream(**self._asked))
        else:
            chunks = [self._sdk.models.generate_content(**self._asked)]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
        kept = [part for part in parts if part.text != "" or part.thought_signature or part.function_call]
        self._contents.append(genai_types.Content(role="model", parts=kept))
        calls = tuple(
            Call(part.function_call.id or "", part.function_call.name, part.function_call.args or {})
            for part in parts
            if part.function_call
        )
        assert chunks[-1].candidates[0].finish_reason == "STOP"
        usage = chunks[-1].usage_metadata
        texts = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return Reply(
            text="".join(part.text for part in parts if part.text and not part.thought),
            thought="".join(part.text for part in parts if part.text and part.thought),
            calls=calls,
            finish="calls" if calls else "stop",
            tokens=(usage.prompt_token_count, texts),
            cached=usage.cached_content_token_count or 0,
        )

    def forget(self) -> None:
        """Keep of the answer only its texts and its calls, unsigned."""
        content = self._contents[-1]
        kept = [part.model_copy(update={"thought_signature": None}) for part in content.parts if not part.thought]
        self._contents[-1] = genai_types.Content(role="model", parts=[p for p in kept if p.text or p.function_call])

    def answer(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> None:
        """Send what the tools answered."""
        self._contents.append({"role": "user", "parts": list(map(_part, calls, results))})


def _part(call: Call, result: Result) -> dict[str, Any]:
    response: dict[str, Any] = {"error": result.value} if result.failed else result.value
    answered: dict[str, Any] = {"id": call.id, "name": call.name, "response": response}
    if result.image:
        answered["parts"] = [{"inline_data": {"mime_type": "image/png", "data": result.image}}]
    return {"function_response": answered}
