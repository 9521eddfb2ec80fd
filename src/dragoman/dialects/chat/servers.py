"""What Chat-compatible servers accept beyond what a model's traits row says: one row for each server.

A row is found by `server` in the configuration, else by the host of the base URL, else by the model name. Each lists
only the traits in which the server differs; `edit_messages` adapts a history to them. The facts are from the servers'
documentation and source of November 2026.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.core.traits import ALL_SAMPLING, Traits
from dragoman.dialects.chat.reasoning_details import OPENROUTER
from dragoman.dialects.record import MessageEdit, ServerRow
from dragoman.wire import json

_NO_PENALTIES = ALL_SAMPLING - {"presence_penalty", "frequency_penalty"}
_THINKING_TYPE: dict[str, Any] = {
    "thinking": "switch",
    "thinking_on": (("thinking", Raw(b'{"type":"enabled"}')),),
    "thinking_off": (("thinking", Raw(b'{"type":"disabled"}')),),
}
"""An object `thinking` with the type, as at DeepSeek, Kimi and GLM."""
_TEMPLATE_SWITCH: dict[str, Any] = {
    "thinking": "switch",
    "thinking_on": (("chat_template_kwargs", Raw(b'{"enable_thinking":true,"thinking":true}')),),
    "thinking_off": (
        ("reasoning_effort", Raw(b'"none"')),
        ("chat_template_kwargs", Raw(b'{"enable_thinking":false,"thinking":false}')),
    ),
}
"""Variables of the model's prompt template: Qwen and GLM read the first, DeepSeek and Kimi the second."""
_REASONING_OBJECT: dict[str, Any] = {
    "thinking": "switch",
    "thinking_on": (("reasoning", Raw(b'{"enabled":true}')),),
    "thinking_off": (("reasoning", Raw(b'{"enabled":false}')),),
}
_ROUTER: dict[str, Any] = {
    **_REASONING_OBJECT,
    "efforts": ("minimal", "low", "medium", "high", "xhigh"),
    "effort_member": "reasoning/effort",
    "budget_member": "reasoning/max_tokens",
    "max_tokens_member": "max_tokens",
    "tools_need_no_effort": False,
    "reasoning_text": True,
    "reasoning_member": "reasoning",
    "reasoning_issuer": OPENROUTER,
}
_ALWAYS_THINKS: dict[str, Any] = {"thinking": "effort", "thinking_on": (), "thinking_off": ()}

SERVERS: dict[str, ServerRow] = {
    "compatible": ServerRow(),
    "openai": ServerRow(hosts=("api.openai.com",)),
    "deepseek": ServerRow(
        hosts=("api.deepseek.com",),
        models=("deepseek*",),
        changes={
            "developer_role": False,
            **_THINKING_TYPE,
            "efforts": ("high", "max"),
            "reasoning_required": "calls",
            "forced_choice": False,
            "forced_unthinking": True,
            "strict_tools": False,
            "output_schema": False,
            "media": frozenset[str](),
        },
    ),
    "qwen": ServerRow(
        hosts=("dashscope.aliyuncs.com", "dashscope-*.aliyuncs.com"),
        changes={
            "developer_role": False,
            "thinking": "switch",
            "thinking_on": (("enable_thinking", Raw(b"true")),),
            "thinking_off": (("enable_thinking", Raw(b"false")),),
            "efforts": (),
            "budget_member": "thinking_budget",
            "strict_tools": False,
        },
    ),
    "kimi": ServerRow(
        hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        models=("kimi*", "moonshot*"),
        changes={
            "developer_role": False,
            **_THINKING_TYPE,
            "efforts": (),
            "reasoning_required": "calls",
            "forced_choice": False,
            "output_schema": False,
            "sampling": ALL_SAMPLING - {"seed"},
        },
        variants=(
            (
                "kimi-k3*",
                {
                    **_ALWAYS_THINKS,
                    "efforts": ("low", "high", "max"),
                    "reasoning_required": "turns",
                    "max_tokens_member": "max_completion_tokens",
                },
            ),
        ),
    ),
    "glm": ServerRow(
        hosts=("api.z.ai", "open.bigmodel.cn"),
        models=("glm*",),
        changes={
            "developer_role": False,
            **_THINKING_TYPE,
            "efforts": (),
            "forced_choice": False,
            "parallel_switch": False,
            "strict_tools": False,
            "output_schema": False,
            "speaker_names": False,
            "sampling": _NO_PENALTIES,
        },
        variants=(
            ("glm-5.2*", {"efforts": ("low", "medium", "high")}),
            ("glm-5.[3-9]*", {**_ALWAYS_THINKS, "efforts": ("low", "high", "max")}),
        ),
    ),
    "minimax": ServerRow(
        hosts=("api.minimax.io", "api.minimaxi.com"),
        models=("minimax*",),
        changes={
            "thinking": "none",
            "efforts": (),
            "unkept": (("/reasoning_split", b"true"),),
            "temperature_max": 1.0,
            "max_tokens_member": "max_completion_tokens",
        },
        variants=(
            (
                "minimax-m3*",
                {
                    "thinking": "switch",
                    "thinking_on": (("thinking", Raw(b'{"type":"adaptive"}')),),
                    "thinking_off": (("thinking", Raw(b'{"type":"disabled"}')),),
                },
            ),
        ),
    ),
    "xai": ServerRow(
        hosts=("api.x.ai",),
        models=("grok*",),
        changes={"efforts": ("low", "high"), "sampling": _NO_PENALTIES - {"stop"}},
        variants=(
            ("grok-4.3*", {"efforts": ("none", "low", "medium", "high")}),
            ("grok-4.[5-9]*", {"efforts": ("low", "medium", "high")}),
        ),
    ),
    "mistral": ServerRow(
        hosts=("api.mistral.ai",),
        changes={
            "id_exact": 9,
            "efforts": ("none", "high"),
            "reasoning_member": "thinking",
            "reasoning_issuer": "",
            "stream_fields": (),
            "sampling": ALL_SAMPLING - {"seed"},
            "user": False,
            "tiers": (),
        },
        variants=(("mistral-large*", {"efforts": ("none", "low", "medium", "high")}),),
    ),
    "groq": ServerRow(
        hosts=("api.groq.com",),
        changes={"reasoning_member": "reasoning", "efforts": ("low", "medium", "high")},
        variants=(
            (
                "qwen*",
                {
                    "thinking": "switch",
                    "thinking_on": (("reasoning_effort", Raw(b'"default"')),),
                    "thinking_off": (("reasoning_effort", Raw(b'"none"')),),
                    "efforts": (),
                },
            ),
        ),
    ),
    "together": ServerRow(
        hosts=("api.together.xyz", "api.together.ai"),
        changes={**_REASONING_OBJECT, "efforts": ("low", "medium", "high"), "reasoning_member": "reasoning"},
    ),
    "fireworks": ServerRow(hosts=("api.fireworks.ai",)),
    "cerebras": ServerRow(
        hosts=("api.cerebras.ai",),
        changes={
            "reasoning_member": "reasoning",
            "efforts": ("low", "medium", "high"),
            "parallel_switch": False,
            "sampling": _NO_PENALTIES,
            "media": frozenset[str](),
            "tiers": (),
        },
        variants=(("zai-glm*", {"reasoning_text": False, "reasoning_issuer": "", "thinking": "none"}),),
    ),
    "openrouter": ServerRow(hosts=("openrouter.ai",), changes=_ROUTER),
    "vercel": ServerRow(hosts=("ai-gateway.vercel.sh",), changes=_ROUTER),
    "vllm": ServerRow(
        changes={
            **_TEMPLATE_SWITCH,
            "reasoning_member": "reasoning",
            "efforts": ("minimal", "low", "medium", "high", "xhigh", "max"),
            "budget_member": "thinking_token_budget",
        }
    ),
    "llama.cpp": ServerRow(changes={**_TEMPLATE_SWITCH, "efforts": ("low", "medium", "high")}),
    "sglang": ServerRow(changes={**_TEMPLATE_SWITCH, "efforts": ("low", "medium", "high")}),
    "ollama": ServerRow(
        hosts=("*:11434",),
        changes={
            "reasoning_member": "reasoning",
            "efforts": ("none", "low", "medium", "high"),
            "forced_choice": False,
            "parallel_switch": False,
            "strict_tools": False,
            "link_kinds": frozenset[str](),
        },
    ),
    "lmstudio": ServerRow(hosts=("*:1234",)),
}


_REASONING_FIELDS = ("reasoning_content", "reasoning")


class _Turn(Struct):
    """A message of the history, as far as a server refuses something in it."""

    role: Any = None
    name: Any = None
    tool_calls: Any = None
    reasoning_content: Raw = Raw()
    reasoning: Raw = Raw()


_TURN_DECODER = msgspec.json.Decoder(_Turn)


def edit_messages(body: bytes, traits: Traits) -> Iterator[MessageEdit]:
    """Yield the edits of the messages that a server would refuse.

    The whole history is read, so only for a server that refuses something in it.
    """
    has_developer = not traits.developer_role and b'"developer"' in body
    if not (traits.reasoning_required or has_developer or not traits.speaker_names):
        return
    try:
        items = json.decode_array(json.decode_object(body)["messages"])
    except (KeyError, json.Malformed):
        return  # the server reports what is wrong with it
    for index, item in enumerate(items):
        turn = _read_turn(item)
        if turn is None:
            continue
        where = f"/messages/{index}"
        if turn.role == "developer" and not traits.developer_role:
            yield MessageEdit(f"{where}/role", b'"system"')
        if isinstance(turn.name, str) and turn.role != "tool" and not traits.speaker_names:
            yield MessageEdit(f"{where}/name", None, "the target has no names on messages")
        if turn.role == "assistant" and (
            traits.reasoning_required == "turns" or (traits.reasoning_required and turn.tool_calls)
        ):
            yield from _add_reasoning(turn, where, traits)


def _add_reasoning(turn: _Turn, where: str, traits: Traits) -> Iterator[MessageEdit]:
    """Yield the edits that give a turn the reasoning member, even if it is empty; one of another name is renamed."""
    given = {field: bytes(getattr(turn, field)) for field in _REASONING_FIELDS}
    if given[traits.reasoning_member] not in (b"", b"null"):
        return
    other = next((field for field, raw in given.items() if raw not in (b"", b"null")), None)
    yield MessageEdit(f"{where}/{traits.reasoning_member}", b'""' if other is None else given[other])
    if other is not None:
        yield MessageEdit(f"{where}/{other}", None)


def _read_turn(item: Raw) -> _Turn | None:
    try:
        return _TURN_DECODER.decode(item)
    except (msgspec.MsgspecError, RecursionError):
        return None
