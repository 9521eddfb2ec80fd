"""Send requests and parse replies with OpenAI's SDK, over Chat Completions."""

import json
from base64 import b64encode
from typing import Any

import httpx2
import openai

from end_to_end.scenarios import SYSTEM, Scenario
from end_to_end.talk import Call, Reply, Result

NAME = "chat"
SAYS_FAILED = False
FAILS_BY_MEMBER = False
SAYS_IMAGES = False
"""A tool's message holds text alone: clients show an image in a message behind it."""
_ENDS = {"stop": "stop", "tool_calls": "calls"}


class Client:
    """One conversation."""

    def __init__(self, base_url: str, http: httpx2.Client, model: str, scenario: Scenario) -> None:
        self._sdk = openai.OpenAI(base_url=f"{base_url}/v1", api_key="any", max_retries=0, http_client=http)
        self._messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": scenario.prompt},
        ]
        self._asked: dict[str, Any] = {"model": model, "messages": self._messages}
        if scenario.tools:
            self._asked["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in scenario.tools
            ]
        if scenario.choice != "auto":
            named = {"type": "function", "function": {"name": scenario.choice}}
            self._asked["tool_choice"] = "none" if scenario.choice == "none" else named
        if scenario.thinks:
            self._asked["reasoning_effort"] = "high"

    def turn(self, *, streamed: bool) -> Reply:
        """Ask, and keep the answer as the SDK has it."""
        if streamed:
            counted = {"include_usage": True}
            with self._sdk.chat.completions.stream(**self._asked, stream_options=counted) as stream:
                completion: Any = stream.get_final_completion()
        else:
            completion = self._sdk.chat.completions.create(**self._asked)
        choice, usage = completion.choices[0], completion.usage
        message = choice.message.model_dump(exclude_none=True, exclude={"parsed"})
        # The SDK concatenates the role where a server repeats it in each delta.
        message["role"] = "assistant"
        for call in message.get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        self._messages.append(message)
        calls = tuple(
            Call(call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        )
        return Reply(
            text=choice.message.content or "",
            thought=message.get("reasoning_content", ""),
            calls=calls,
            finish=_ENDS[choice.finish_reason],
            tokens=(usage.prompt_tokens, usage.completion_tokens),
            cached=(usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0,
        )

    def forget(self) -> None:
        """Keep of the answer only what every client of this API keeps: its text and its calls."""
        message = self._messages[-1]
        kept = {name: message[name] for name in ("role", "content") if name in message}
        calls = [{name: call[name] for name in ("id", "type", "function")} for call in message.get("tool_calls", ())]
        self._messages[-1] = kept | ({"tool_calls": calls} if calls else {})

    def answer(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> None:
        """Send what the tools answered."""
        for call, result in zip(calls, results, strict=True):
            text = f"Error: {result.text}" if result.failed else result.text
            self._messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        shown = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(result.image).decode()}"}}
            for result in results
            if result.image
        ]
        if shown:
            self._messages.append({"role": "user", "content": shown})
