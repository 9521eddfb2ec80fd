"""Send requests and parse replies with Anthropic's SDK."""

from base64 import b64encode
from typing import Any

import anthropic
import httpx2

from end_to_end.scenarios import SYSTEM, Scenario
from end_to_end.talk import Call, Reply, Result

NAME = "messages"
SAYS_FAILED = True
FAILS_BY_MEMBER = False
SAYS_IMAGES = True
_ENDS = {"end_turn": "stop", "tool_use": "calls"}


class Client:
    """One conversation."""

    def __init__(self, base_url: str, http: httpx2.Client, model: str, scenario: Scenario) -> None:
        self._sdk = anthropic.Anthropic(base_url=base_url, api_key="any", max_retries=0, http_client=http)
        prompt: Any = scenario.prompt
        if scenario.is_cached:
            prompt = [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]
        self._messages: list[Any] = [{"role": "user", "content": prompt}]
        self._asked: dict[str, Any] = {
            "model": model,
            "max_tokens": 2000,
            "system": SYSTEM,
            "messages": self._messages,
        }
        if scenario.tools:
            self._asked["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in scenario.tools
            ]
        if scenario.vendor_tool is not None:
            self._asked["tools"] = [scenario.vendor_tool.declaration]
        if scenario.choice != "auto":
            named = {"type": "tool", "name": scenario.choice}
            self._asked["tool_choice"] = {"type": "none"} if scenario.choice == "none" else named
        if scenario.thinks:
            self._asked["thinking"] = {"type": "adaptive", "display": "summarized"}

    def turn(self, *, streamed: bool) -> Reply:
        """Ask, and keep the answer as the SDK has it."""
        if streamed:
            with self._sdk.messages.stream(**self._asked) as stream:
                message: Any = stream.get_final_message()
        else:
            message = self._sdk.messages.create(**self._asked)
        blocks, usage = message.content, message.usage
        cached = usage.cache_read_input_tokens or 0
        self._messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in blocks]})
        return Reply(
            text="".join(block.text for block in blocks if block.type == "text"),
            thought="".join(block.thinking for block in blocks if block.type == "thinking"),
            calls=tuple(Call(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"),
            finish=_ENDS[message.stop_reason],
            tokens=(usage.input_tokens + (usage.cache_creation_input_tokens or 0) + cached, usage.output_tokens),
            cached=cached,
        )

    def forget(self) -> None:
        """Keep of the answer only its texts and its calls."""
        message = self._messages[-1]
        message["content"] = [block for block in message["content"] if block["type"] in {"text", "tool_use"}]

    def answer(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> None:
        """Send what the tools answered."""
        self._messages.append({"role": "user", "content": list(map(_block, calls, results))})


def _block(call: Call, result: Result) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
    if result.failed:
        block["is_error"] = True
    if result.image:
        source = {"type": "base64", "media_type": "image/png", "data": b64encode(result.image).decode()}
        block["content"] = [{"type": "text", "text": result.text}, {"type": "image", "source": source}]
    return block
