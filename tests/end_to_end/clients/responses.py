"""Send requests and parse replies with OpenAI's SDK, over Responses."""

import json
from base64 import b64encode
from typing import Any

import httpx2
import openai
from openai.types.responses import ResponseFunctionShellToolCall

from end_to_end.scenarios import SYSTEM, Scenario
from end_to_end.talk import Call, Reply, Result

NAME = "responses"
SAYS_FAILED = False
FAILS_BY_MEMBER = False
SAYS_IMAGES = True


class Client:
    """One conversation, of which the client keeps all."""

    def __init__(self, base_url: str, http: httpx2.Client, model: str, scenario: Scenario) -> None:
        self._sdk = openai.OpenAI(base_url=f"{base_url}/v1", api_key="any", max_retries=0, http_client=http)
        self._input: list[Any] = [{"role": "user", "content": scenario.prompt}]
        self._asked: dict[str, Any] = {"model": model, "instructions": SYSTEM, "input": self._input}
        if scenario.tools:
            self._asked["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in scenario.tools
            ]
        if scenario.vendor_tool is not None:
            self._asked["tools"] = [scenario.vendor_tool.declaration]
        if scenario.choice != "auto":
            named = {"type": "function", "name": scenario.choice}
            self._asked["tool_choice"] = "none" if scenario.choice == "none" else named
        if scenario.thinks:
            self._asked |= {
                "reasoning": {"effort": "high", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "store": False,
            }

    def turn(self, *, streamed: bool) -> Reply:
        """Ask, and keep the answer as the SDK has it."""
        if streamed:
            with self._sdk.responses.stream(**self._asked) as stream:
                response: Any = stream.get_final_response()
        else:
            response = self._sdk.responses.create(**self._asked)
        assert response.status == "completed"
        calls: list[Call] = []
        thoughts: list[str] = []
        for item in response.output:
            kept = item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
            for content in kept.get("content", ()):
                content.pop("parsed", None)
            self._input.append(kept)
            if item.type == "function_call":
                calls.append(Call(item.call_id, item.name, json.loads(item.arguments)))
            elif item.type == "shell_call":
                assert isinstance(item, ResponseFunctionShellToolCall)
                calls.append(Call(item.call_id, "shell", item.action.model_dump(exclude_none=True)))
            elif item.type == "reasoning":
                thoughts += [summary.text for summary in item.summary]
        return Reply(
            text=response.output_text,
            thought="".join(thoughts),
            calls=tuple(calls),
            finish="calls" if calls else "stop",
            tokens=(response.usage.input_tokens, response.usage.output_tokens),
            cached=response.usage.input_tokens_details.cached_tokens,
        )

    def forget(self) -> None:
        """Keep of the answer only its messages and its calls."""
        self._input[:] = [item for item in self._input if item.get("type") != "reasoning"]

    def answer(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> None:
        """Send what the tools answered."""
        for call, result in zip(calls, results, strict=True):
            if call.name == "shell":
                output = {"type": "shell_call_output", "call_id": call.id, "output": result.value}
                self._input.append(output)
                continue
            output: Any = f"Error: {result.text}" if result.failed else result.text
            if result.image:
                url = f"data:image/png;base64,{b64encode(result.image).decode()}"
                output = [{"type": "input_text", "text": output}, {"type": "input_image", "image_url": url}]
            self._input.append({"type": "function_call_output", "call_id": call.id, "output": output})
