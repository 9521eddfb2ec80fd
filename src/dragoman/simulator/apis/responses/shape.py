"""The shape of a request, and how one is read: `read_body` gives the typed body or what the vendor says is wrong.

`Request` is what the rules judge: the typed body, the document it came from, the model, and who signs.
"""

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.simulator.apis.responses import words
from dragoman.simulator.apis.responses.ids import is_our_conversation, issued_by_us, reply_of
from dragoman.simulator.apis.responses.models import Model
from dragoman.simulator.apis.responses.shape_hosted import Effort, Item
from dragoman.simulator.apis.responses.shape_items import (
    INPUT_MESSAGE,
    OUTPUT_MESSAGE,
    InputFile,
    InputImage,
    InputText,
    Text,
)
from dragoman.simulator.apis.responses.shape_tools import Tool, ToolChoice
from dragoman.simulator.rule import Json, Violation
from dragoman.simulator.shape import Shaped, Strict
from dragoman.simulator.signatures import Signer

NAME = "responses"
Includable = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]


class ReasoningOptions(Strict, kw_only=True):
    """How the model thinks, and what is told of it."""

    effort: Effort | None = None
    summary: Literal["concise", "detailed", "auto"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: Literal["standard", "pro"] | None = None
    generate_summary: Literal["concise", "detailed", "auto"] | None = None
    """What `summary` was called before."""

    @property
    def tells(self) -> str | None:
        """How much is told of the thoughts, by whichever of its names."""
        return self.summary or self.generate_summary


class PlainFormat(Strict, tag_field="type", tag="text"):
    """Any text."""


class JsonFormat(Strict, tag_field="type", tag="json_object"):
    """Any JSON object."""


class SchemaFormat(Strict, tag_field="type", tag="json_schema", kw_only=True):
    """JSON of a schema."""

    name: str
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class TextOptions(Strict, kw_only=True):
    """How the model answers."""

    format: PlainFormat | JsonFormat | SchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StreamOptions(Strict, kw_only=True):
    """How a stream is padded."""

    include_obfuscation: bool | None = None


class ContextManagement(Strict, kw_only=True):
    """When the conversation is compacted."""

    type: str
    compact_threshold: int | None = None


class Conversation(Strict, kw_only=True):
    """A conversation the vendor keeps."""

    id: str


class Prompt(Strict, kw_only=True):
    """A template the vendor keeps."""

    id: str
    version: str | None = None
    variables: dict[str, str | InputText | InputImage | InputFile] | None = None


class CacheOptions(Strict, kw_only=True):
    """How the prompt is cached."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m", "12h"] | None = None
    prewarm: bool | None = None
    comparison_response_id: str | None = None


class Moderation(Strict, kw_only=True):
    """Who looks over what is said."""

    model: str
    policy: dict[str, Any] | None = None


class AccessPrograms(Strict, kw_only=True):
    """What the account may ask about."""

    cyber: Literal["standard", "daybreak_blue", "daybreak_red"]


class ImageOptions(Strict, kw_only=True):
    """How pictures are kept."""

    context_compression: Literal["auto", "enabled", "disabled"] | None = None


class Body(Strict, kw_only=True):
    """A request."""

    model: str | UnsetType = UNSET
    input: Text | list[Item] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | Conversation | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    include: list[Includable] | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    context_management: list[ContextManagement] | None = None
    max_output_tokens: Annotated[int, Meta(ge=16)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
            Meta(max_length=16),
        ]
        | None
    ) = None
    prompt: Prompt | None = None
    prompt_cache_key: Annotated[str, Meta(max_length=64)] | None = None
    prompt_cache_options: CacheOptions | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: Annotated[str, Meta(max_length=128)] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None = None
    moderation: Moderation | None = None
    access_programs: AccessPrograms | None = None
    image: ImageOptions | None = None
    user: str | None = None
    client_metadata: dict[str, Any] | None = None
    """Sent by the vendor's own coding agent."""


class Request(Struct, frozen=True, kw_only=True):
    """A request as the rules see it."""

    body: Body
    document: Json
    model: Model
    signer: Signer

    @property
    def items(self) -> list[Item]:
        """The input, item by item; a text is none."""
        return self.body.input if isinstance(self.body.input, list) else []

    @property
    def is_stored(self) -> bool:
        """Whether the reply is remembered."""
        return self.body.store is not False

    @property
    def prewarms(self) -> bool:
        """Whether the prompt is only put into the cache, and nothing said."""
        options = self.body.prompt_cache_options
        return options is not None and bool(options.prewarm)

    @property
    def continues(self) -> bool:
        """Whether the vendor holds a part of the conversation that is not in the request."""
        body = self.body
        return bool(body.prompt or self._foreign_conversation) or (
            bool(body.previous_response_id) and not self._is_joined
        )

    @property
    def conversation(self) -> str:
        """The id of the conversation that the request is part of, or ""."""
        given = self.body.conversation
        return (given if isinstance(given, str) else given.id) if given is not None else ""

    @property
    def _foreign_conversation(self) -> bool:
        """What is said in a conversation of ours stands in the input; what is in another nobody knows."""
        return bool(self.conversation) and not is_our_conversation(self.conversation)

    @property
    def _is_joined(self) -> bool:
        """What is continued stands in the input: items of that reply, by their ids."""
        reply = reply_of(self.body.previous_response_id or "")
        issued = (issued_by_us(item.id or "") for item in self.items)
        return bool(reply) and any(one is not None and one.reply == reply for one in issued)


_SHAPED: Shaped[Body] = Shaped(Body, NAME, words.say)

_MEMBERS = tuple(Body.__struct_fields__)
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"
"""A note the vendor's own coding agent puts on every item."""


def read_body(body: bytes) -> tuple[Body, Json] | Violation:
    """Hold a body to the shape."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return Violation(words.NOT_JSON, rule=f"{NAME}.json")
    found = cast("Json", document)
    marked = _told_apart(found)
    read = _SHAPED.read(msgspec.json.encode(marked))
    return words.finished(read, marked, words.tree(Body), _MEMBERS) if isinstance(read, Violation) else (read, found)


def _told_apart(document: Json) -> Json:
    """Mark messages by role, references by their id, and leave nested tools as the nameless tools the vendor sees."""
    given: Any = document.get("input")
    tools: Any = document.get("tools")
    choice: Any = document.get("tool_choice")
    changed: Json = {}
    if isinstance(given, list):
        changed["input"] = [_marked(item) for item in cast("list[Any]", given)]
    if isinstance(tools, list):
        changed["tools"] = [_unnested(tool) for tool in cast("list[Any]", tools)]
    if isinstance(choice, dict):
        changed["tool_choice"] = _unnested(choice)
    return {**document, **changed} if changed else document


def _marked(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    known = {name: value for name, value in cast("Json", item).items() if name != _PASSTHROUGH}
    kind = known.get("type")
    if kind is None and "role" not in known and "id" in known:
        return {**known, "type": "item_reference"}
    if kind not in (None, "message") or (kind is None and "role" not in known):
        return known
    return {**known, "type": OUTPUT_MESSAGE if known.get("role") == "assistant" else INPUT_MESSAGE}


def _unnested(tool: Any) -> Any:
    """A tool in the shape of Chat has no name here; the vendor says that, not that `function` is unknown."""
    if not isinstance(tool, dict):
        return tool
    known = cast("Json", tool)
    if known.get("type") == "function" and "function" in known and "name" not in known:
        return {name: value for name, value in known.items() if name != "function"}
    return known
