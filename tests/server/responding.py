"""Helpers for tests of stored conversations: Responses requests with OpenAI's SDK."""

import json

MODELS = ("gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist")
FLAT = {
    "type": "function",
    "name": "get_weather",
    "description": "Get weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
NESTED = {"type": "function", "function": {name: value for name, value in FLAT.items() if name != "type"}}
OTHER = {**FLAT, "name": "get_time", "description": "Get time"}
QUESTION = "What is the weather in Tokyo?"


def create_response(client, stream, **body):
    if not stream:
        return client.responses.create(**body)
    with client.responses.stream(**body) as events:
        return events.get_final_response()


def calls_of(response):
    return [item for item in response.output if item.type == "function_call"]


def result(call, output='{"temp":72,"unit":"F"}'):
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def send(gateway):
    """The last request that the simulator received."""
    return json.loads(gateway.simulator.requests[-1].body)
