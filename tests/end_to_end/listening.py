"""Receive an answer with an official SDK, and return all that arrived before it ended or failed."""

from typing import Any

import anthropic
import openai
from msgspec import Struct

from oracles.clients import genai
from server.conftest import Gateway

ASKED: list[Any] = [{"role": "user", "content": "hello"}]
ERRORS = (openai.APIError, anthropic.APIError, genai.errors.APIError)


class ClientReply(Struct):
    """What the SDK received."""

    text: str = ""
    finish: str = ""
    error: Exception | None = None

    @property
    def status(self) -> int:
        """The status of the error; 0 if it has none."""
        error: Any = self.error
        found = getattr(error, "status_code", None) or getattr(error, "code", None)
        return found if isinstance(found, int) else 0


class Listener:
    """The three SDKs, pointed at a gateway, without tries of their own."""

    def __init__(self, gateway: Gateway) -> None:
        base = gateway.base_url
        self._openai = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0))
        self._anthropic = gateway.open(anthropic.Anthropic(base_url=base, api_key="any", max_retries=0))
        self._genai = gateway.open(genai.Client(api_key="any", http_options={"base_url": base}))

    def listen(self, client: str, model: str, *, streamed: bool) -> ClientReply:
        """Ask, and listen to the end."""
        received = ClientReply()
        ask = getattr(self, f"_{client}_{'streamed' if streamed else 'whole'}")
        try:
            ask(model, received)
        except ERRORS as error:
            received.error = error
        return received

    def _chat_whole(self, model: str, received: ClientReply) -> None:
        choice = self._openai.chat.completions.create(model=model, messages=ASKED).choices[0]
        received.text, received.finish = choice.message.content or "", choice.finish_reason

    def _chat_streamed(self, model: str, received: ClientReply) -> None:
        for chunk in self._openai.chat.completions.create(model=model, messages=ASKED, stream=True):
            for choice in chunk.choices:
                received.text += choice.delta.content or ""
                received.finish = choice.finish_reason or received.finish

    def _responses_whole(self, model: str, received: ClientReply) -> None:
        response = self._openai.responses.create(model=model, input="hello", store=False)
        received.text, received.finish = response.output_text, _end(response)

    def _responses_streamed(self, model: str, received: ClientReply) -> None:
        for event in self._openai.responses.create(model=model, input="hello", store=False, stream=True):
            match event.type:
                case "response.output_text.delta":
                    received.text += event.delta
                case "response.completed" | "response.incomplete" | "response.failed":
                    received.finish = _end(event.response)
                case _:
                    pass

    def _messages_whole(self, model: str, received: ClientReply) -> None:
        message = self._anthropic.messages.create(model=model, max_tokens=200, messages=ASKED)
        received.text = "".join(block.text for block in message.content if block.type == "text")
        received.finish = message.stop_reason or ""

    def _messages_streamed(self, model: str, received: ClientReply) -> None:
        with self._anthropic.messages.stream(model=model, max_tokens=200, messages=ASKED) as stream:
            for text in stream.text_stream:
                received.text += text
            received.finish = stream.get_final_message().stop_reason or ""

    def _gemini_whole(self, model: str, received: ClientReply) -> None:
        _hear_gemini(self._genai.models.generate_content(model=model, contents="hello"), received)

    def _gemini_streamed(self, model: str, received: ClientReply) -> None:
        for chunk in self._genai.models.generate_content_stream(model=model, contents="hello"):
            _hear_gemini(chunk, received)


def _end(response: Any) -> str:
    detail = response.error.code if response.error else None
    detail = detail or (response.incomplete_details.reason if response.incomplete_details else None)
    return f"{response.status} {detail}" if detail else response.status


def _hear_gemini(chunk: Any, received: ClientReply) -> None:
    for candidate in chunk.candidates or ():
        received.text += "".join(part.text or "" for part in (candidate.content and candidate.content.parts) or ())
        received.finish = candidate.finish_reason.value if candidate.finish_reason else received.finish
    if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
        received.finish = f"blocked {chunk.prompt_feedback.block_reason.value}"
