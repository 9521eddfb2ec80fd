"""Send requests with the official SDKs, with tools and histories in each dialect's format, and parse their errors."""

from typing import Any

import anthropic
import openai
from msgspec import Struct

from oracles.clients import genai
from server.conftest import Gateway

CLIENTS = ["chat", "responses", "messages", "gemini"]
Schemas = dict[str, Any]
"""Schemas of tools, by their names."""


class SdkError(Struct):
    """The fields of an SDK's error."""

    status: int
    message: str
    param: str
    code: str


def tools_of(dialect: str, schemas: Schemas) -> list[Any]:
    """Declare tools."""
    match dialect:
        case "chat":
            functions = [{"name": name, "parameters": schema} for name, schema in schemas.items()]
            return [{"type": "function", "function": function} for function in functions]
        case "responses":
            return [{"type": "function", "name": name, "parameters": schema} for name, schema in schemas.items()]
        case "messages":
            return [{"name": name, "input_schema": schema} for name, schema in schemas.items()]
        case _:
            return [{"function_declarations": [{"name": n, "parameters_json_schema": s} for n, s in schemas.items()]}]


def send_request(gateway: Gateway, dialect: str, model: str, schemas: Schemas, history: list[Any] | None = None) -> Any:
    """Send a request with tools; `history` is in the dialect's own format."""
    tools = tools_of(dialect, schemas)
    base = gateway.base_url
    output: Any = history or [{"role": "user", "content": "hello"}]
    match dialect:
        case "chat":
            sdk = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0))
            return sdk.chat.completions.create(model=model, messages=output, tools=tools)
        case "responses":
            sdk = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0))
            return sdk.responses.create(model=model, input=output, tools=tools, store=False)
        case "messages":
            sdk = gateway.open(anthropic.Anthropic(base_url=base, api_key="any", max_retries=0))
            return sdk.messages.create(model=model, max_tokens=200, messages=output, tools=tools)
        case _:
            sdk = gateway.open(genai.Client(api_key="any", http_options={"base_url": base}))
            contents: Any = history or "hello"
            return sdk.models.generate_content(model=model, contents=contents, config={"tools": tools})


def parse_error(error: Exception) -> SdkError:
    """Read an SDK's error."""
    match error:
        case openai.APIStatusError():
            return SdkError(error.status_code, error.message, error.param or "", error.code or "")
        case anthropic.APIStatusError():
            inner: Any = error.body["error"]  # pyright: ignore[reportIndexIssue]
            return SdkError(error.status_code, inner["message"], "", inner.get("details", {}).get("error_code", ""))
        case genai.errors.APIError():
            details = error.details["error"].get("details", [])
            fields = [one["field"] for detail in details for one in detail.get("fieldViolations", ())]
            reason = next((detail["reason"] for detail in details if "reason" in detail), "")
            return SdkError(error.code, error.message, fields[0] if fields else "", reason)
        case _:
            raise error
