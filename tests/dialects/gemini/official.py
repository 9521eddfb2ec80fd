"""google-genai as a judge: its request types, its reply types and its stream parser."""

import functools
import warnings

import httpx2

with warnings.catch_warnings():
    # The SDK's own source has an escape sequence that Python warns of, and here a warning is an error.
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import errors, types

__all__ = ["errors"]


_answer = {"body": b"", "status": 200}


def _handle(request):
    return httpx2.Response(_answer["status"], content=_answer["body"])


@functools.cache
def _client():
    options = types.HttpOptions(httpx_client=httpx2.Client(transport=httpx2.MockTransport(_handle)))
    return genai.Client(api_key="key", http_options=options)


def whole(body, status=200):
    """Read a whole reply as the SDK does."""
    _answer.update(body=body, status=status)
    return _client().models.generate_content(model="m", contents="x")


def chunks(body):
    """Read a stream as the SDK does."""
    _answer.update(body=body, status=200)
    return list(_client().models.generate_content_stream(model="m", contents="x"))


def parse_parts(replies):
    """Return what the SDK understood of candidate 0: texts, thoughts, calls, the last finish and usage."""
    texts, thoughts, calls, finish, usage = [], [], [], None, None
    for reply in replies:
        usage = reply.usage_metadata or usage
        for candidate in (reply.candidates or [])[:1]:
            finish = candidate.finish_reason or finish
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.text:
                    (thoughts if part.thought else texts).append(part.text)
                if part.function_call:
                    calls.append((part.function_call.id or "", part.function_call.name, part.function_call.args or {}))
    return {
        "text": "".join(texts),
        "thought": "".join(thoughts),
        "calls": calls,
        "finish": finish.value if finish is not None else "",
        "prompt": (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0) if usage else 0,
    }


def accepts_request(body):
    """Fail unless the SDK's own types take the contents, tools and config of `body`."""
    for content in body["contents"]:
        types.Content.model_validate(content)
    if "systemInstruction" in body:
        types.Content.model_validate(body["systemInstruction"])
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    if "toolConfig" in body:
        types.ToolConfig.model_validate(body["toolConfig"])
    types.GenerationConfig.model_validate(body.get("generationConfig", {}))
