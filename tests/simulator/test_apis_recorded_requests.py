"""Recorded requests that some server answered, but the simulator rejects: how many, and why that stays so.

All of them went to OpenAI-compatible servers with parameters of their own, or the reply was made up.
"""

import json
import re
from collections import Counter

import pytest

from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from shelf import exchanges, needs_shelf

_THOUGHTS = "thoughts in messages: OpenRouter, Ollama, DeepSeek, Cerebras, Z.ai and others have them"
_ROUTING = "OpenRouter: how a request is routed and counted"
_TOOLS = "OpenRouter: tools that it runs itself"
_THINKING = "how hard to think, as Anthropic, DeepSeek, Z.ai, Qwen, Groq and gateways name it"
_CACHE = "Anthropic's mark, as gateways take it"
_MISTRAL = "Mistral: a member or a word of its own"
_LOOSE = "a server that is less strict than OpenAI: Ollama, llama.cpp, Together, Hugging Face, Mistral, OpenRouter"
KEPT = {
    "chat": {
        "Unknown parameter: 'messages[N].reasoning'.": (25, _THOUGHTS),
        "Unknown parameter: 'messages[N].reasoning_content'.": (19, _THOUGHTS),
        "Unknown parameter: 'messages[N].reasoning_details'.": (18, _THOUGHTS),
        "Unknown parameter: 'provider'.": (16, _ROUTING),
        "Unknown parameter: 'usage'.": (11, _ROUTING),
        "Unknown parameter: 'plugins'.": (1, _ROUTING),
        "Invalid value: 'openrouter:advisor'.": (1, _TOOLS),
        "Invalid value: 'openrouter:web_search'.": (4, _TOOLS),
        "Unknown parameter: 'web_search_options'.": (1, "OpenRouter: takes it for all models"),
        "Unknown parameter: 'thinking'.": (22, _THINKING),
        "Unknown parameter: 'reasoning'.": (9, _THINKING),
        "Unknown parameter: 'reasoning_format'.": (1, _THINKING),
        "Unknown parameter: 'enable_thinking'.": (1, _THINKING),
        "Unknown parameter: 'messages[N].cache_control'.": (8, _CACHE),
        "Unknown parameter: 'tools[N].cache_control'.": (1, _CACHE),
        "Unknown parameter: 'messages[N].prefix'.": (15, _MISTRAL),
        "Unknown parameter: 'random_seed'.": (1, _MISTRAL),
        "Invalid value: 'any'.": (10, _MISTRAL),
        "Invalid value: 'thinking'.": (1, _MISTRAL),
        "Invalid type for 'messages[N].content[N].image_url'": (1, _MISTRAL),
        "Missing required parameter: 'tools[N].type'.": (2, _MISTRAL),
        "Missing required parameter: 'tool_choice.type'.": (1, _LOOSE),
        "Unknown parameter: 'messages[N].tool_calls'.": (2, _LOOSE),
        "Invalid 'max_tokens': integer below minimum": (2, _LOOSE),
        "Invalid 'messages[N]'. Image URLs are only allowed": (1, _LOOSE),
        "Invalid schema for ": (3, _LOOSE),
        "you must provide a model parameter": (10, "Azure: the path names the model"),
    },
    "responses": {
        "Item 'rs_REDACTED_N' of type 'reasoning' was provided without": (7, "xAI: no ids behind a thought"),
        "Invalid schema for function 'get_weather'": (1, "a reply that was made up (fc_12345xyz)"),
    },
}


def refusals(name: str) -> list[str]:
    """Return the simulator's errors for recorded requests that were answered, with N for numbers."""
    found: list[str] = []
    for exchange in exchanges(name):
        body = exchange["request"]
        if exchange["status"] != 200 or not isinstance(body, dict):
            continue
        situation = CheckContext(model=str(body.get("model", "")), recorded=True)
        result = APIS[name].accept(json.dumps(body).encode(), situation, TokenSigner())
        if isinstance(result, Violation):
            found.append(re.sub(r"\d+", "N", result.message))
    return found


@needs_shelf
@pytest.mark.parametrize("name", KEPT)
def test_an_answered_request_is_refused_only_for_a_known_reason(name):
    counted = Counter(
        next((start for start in KEPT[name] if message.startswith(start)), message) for message in refusals(name)
    )
    assert counted == {start: count for start, (count, _) in KEPT[name].items()}
