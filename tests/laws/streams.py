"""Streams of any length, of every kind that a dialect can make long: many parts, many open at once, many sources."""

import json
from collections.abc import Callable, Iterator
from typing import Any

Stream = Callable[[int], bytes]


def _data(values: Iterator[Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def _render_named_events(values: Iterator[dict[str, Any]]) -> bytes:
    return b"".join(b"event: %b\n" % value["type"].encode() + _data(iter([value])) for value in values)


# Chat


def _chat(make: Callable[[int], Iterator[dict[str, Any]]], finish: str = "tool_calls") -> Stream:
    def stream(size: int) -> bytes:
        chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in make(size)]
        last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        return _data(iter([*chunks, last])) + b"data: [DONE]\n\n"

    return stream


def _call(text: str, **members: Any) -> dict[str, Any]:
    name = {"name": members.pop("name")} if "name" in members else {}
    return {"tool_calls": [{**members, "function": {**name, "arguments": text}}]}


def _open_calls(size: int) -> Iterator[dict[str, Any]]:
    return (_call("{", index=i, id=f"c{i}", name="f") for i in range(size))


def _whole_calls(size: int) -> Iterator[dict[str, Any]]:
    return (_call("{}", index=i, id=f"c{i}", name="f") for i in range(size))


def _calls_in_turns(size: int) -> Iterator[dict[str, Any]]:
    yield from _open_calls(size // 2)
    yield from (_call('"a":{}', index=i) for i in range(size // 2))
    yield from (_call("}", index=i) for i in range(size // 2))


def _nameless_calls(size: int) -> Iterator[dict[str, Any]]:
    return (_call("{}", name="f") for _ in range(size))


def _late_names(size: int) -> Iterator[dict[str, Any]]:
    yield from (_call("{", index=i) for i in range(size))
    yield from (_call("}", index=i, name="f") for i in range(size))


def _calls_of_one_id(size: int) -> Iterator[dict[str, Any]]:
    return (_call("{", index=i, id="c", name="f") for i in range(size))


def _names_with_every_piece(size: int) -> Iterator[dict[str, Any]]:
    yield _call('{"a":[', index=0, id="c", name="f")
    yield from (_call('{"b":{}},', index=0, id="c", name="f") for _ in range(size))
    yield _call("0]}", index=0, id="c", name="f")


def _call_between_texts(size: int) -> Iterator[dict[str, Any]]:
    yield _call('{"a":{}', index=0, id="c", name="f")
    for number in range(size):
        yield {"content": "word " * 4}
        yield _call(f',"b{number}":{{}}', index=0)
    yield _call("}", index=0)


def _refusals_and_texts(size: int) -> Iterator[dict[str, Any]]:
    return ({"content": "a"} if i % 2 else {"reasoning_content": "b"} for i in range(size))


def _texts(size: int) -> Iterator[dict[str, Any]]:
    return ({"content": "word "} for _ in range(size))


def _annotate(size: int) -> Iterator[dict[str, Any]]:
    for number in range(size):
        yield {"content": "word "}
        page = {"url": f"https://a.example/{number}", "title": "t", "start_index": 0, "end_index": 4}
        yield {"annotations": [{"type": "url_citation", "url_citation": page}]}


def _vendor_lists(size: int) -> Iterator[dict[str, Any]]:
    return ({"content": "a", "reasoning_details": [{"text": f"t{i}"}]} for i in range(size))


def _logprobs(size: int) -> bytes:
    chunks = (
        {
            "id": "c",
            "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": f"a{i}"}]}}],
        }
        for i in range(size)
    )
    last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return _data(chunks) + _data(iter([last])) + b"data: [DONE]\n\n"


def _other_choices(size: int) -> bytes:
    def chunks() -> Iterator[dict[str, Any]]:
        for number in range(size):
            yield {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}
            yield {"id": "c", "choices": [{"index": 1, "delta": {"content": "word " * 8}}]}
            yield {"id": "c", "choices": [{"index": 2, "delta": _call("{", index=number, id=f"c{number}", name="f")}]}
        yield {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    return _data(chunks()) + b"data: [DONE]\n\n"


# Messages


def _messages(make: Callable[[int], Iterator[dict[str, Any]]]) -> Stream:
    def stream(size: int) -> bytes:
        start = {"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": {}}}
        delta = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
        return _render_named_events(iter([start, *make(size), delta, {"type": "message_stop"}]))

    return stream


def _block(index: int, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": members}


def _delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **members}}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def _blocks(size: int) -> Iterator[dict[str, Any]]:
    for index in range(size):
        kind, member = ("thinking", "thinking") if index % 2 else ("text", "text")
        yield _block(index, type=kind, **{member: ""})
        yield _delta(index, kind, **{member: "word "})
        yield _stop(index)


def _tool_blocks(size: int) -> Iterator[dict[str, Any]]:
    for index in range(size):
        yield _block(index, type="tool_use", id=f"t{index}", name="f", input={})
        yield _stop(index)


def _open_blocks(size: int) -> Iterator[dict[str, Any]]:
    yield from (_block(index, type="tool_use", id=f"t{index}", name="f", input={}) for index in range(size))
    yield from (_delta(index, "input_json", partial_json="{}") for index in range(size))
    yield from map(_stop, range(size))


def _build_cited_block(size: int) -> Iterator[dict[str, Any]]:
    yield _block(0, type="text", text="")
    for number in range(size):
        yield _delta(0, "text", text="word " * 8)
        page = {"type": "web_search_result_location", "url": f"https://a.example/{number}", "title": "t"}
        yield _delta(0, "citations", citation={**page, "cited_text": "w", "encrypted_index": "x"})
    yield _stop(0)


def _strange_deltas(size: int) -> Iterator[dict[str, Any]]:
    yield _block(0, type="text", text="")
    yield from (_delta(0, "novel", novel="word " * 8) for _ in range(size))
    yield _stop(0)


def _strange_blocks(size: int) -> Iterator[dict[str, Any]]:
    for index in range(size):
        yield _block(index, type="server_tool_use", id=f"s{index}", name="web_search", input={})
        yield _delta(index, "input_json", partial_json='{"query":"a"}')
        yield _stop(index)


# Responses


def _responses(make: Callable[[int], Iterator[dict[str, Any]]]) -> Stream:
    def stream(size: int) -> bytes:
        head = {"id": "r", "model": "m", "object": "response"}
        start = {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}
        end = {"type": "response.completed", "response": {**head, "status": "completed", "output": []}}
        return _render_named_events(iter([start, *make(size), end]))

    return stream


def _function(number: int, arguments: str = "") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "f", "arguments": arguments}


def _item(word: str, number: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{word}", "output_index": number, "item": item}


def _items(size: int) -> Iterator[dict[str, Any]]:
    for number in range(size):
        yield _item("added", number, _function(number))
        yield _item("done", number, _function(number, "{}"))


def _open_items(size: int) -> Iterator[dict[str, Any]]:
    yield from (_item("added", number, _function(number)) for number in range(size))
    for number in range(size):
        place = {"item_id": f"fc_{number}", "output_index": number}
        yield {"type": "response.function_call_arguments.delta", **place, "delta": "{}"}
    yield from (_item("done", number, _function(number, "{}")) for number in range(size))


def _done_only(size: int) -> Iterator[dict[str, Any]]:
    return (_item("done", number, _function(number, "{}")) for number in range(size))


def _content_parts(size: int) -> Iterator[dict[str, Any]]:
    yield _item("added", 0, {"type": "message", "id": "m", "role": "assistant", "content": []})
    for number in range(size):
        place = {"item_id": "m", "output_index": 0, "content_index": number}
        yield {"type": "response.output_text.delta", **place, "delta": "word "}
        yield {"type": "response.output_text.done", **place, "text": "word "}


def _annotations(size: int) -> Iterator[dict[str, Any]]:
    yield _item("added", 0, {"type": "message", "id": "m", "role": "assistant", "content": []})
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    for number in range(size):
        yield {"type": "response.output_text.delta", **place, "delta": "word " * 8}
        page = {"type": "url_citation", "url": f"https://a.example/{number}", "title": "t", "start_index": 0}
        yield {"type": "response.output_text.annotation.added", **place, "annotation": {**page, "end_index": 4}}


def _repeat_ends(size: int) -> Iterator[dict[str, Any]]:
    yield _item("added", 0, {"type": "message", "id": "m", "role": "assistant", "content": []})
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    for _ in range(size):
        yield {"type": "response.output_text.delta", **place, "delta": "word " * 8}
        yield {"type": "response.output_text.done", **place, "text": "word"}


def _summaries(size: int) -> Iterator[dict[str, Any]]:
    yield _item("added", 0, {"type": "reasoning", "id": "rs", "summary": []})
    for number in range(size):
        place = {"item_id": "rs", "output_index": 0, "summary_index": number}
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": "word "}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": "word "}


def _strange_events(size: int) -> Iterator[dict[str, Any]]:
    return ({"type": "response.novel", "number": number} for number in range(size))


# Gemini


def _gemini(make: Callable[[int], Iterator[dict[str, Any]]]) -> Stream:
    def stream(size: int) -> bytes:
        last = {"candidates": [{"finishReason": "STOP"}]}
        return _data(iter([*({"candidates": [{"index": 0, **one}]} for one in make(size)), last]))

    return stream


def _candidate(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"content": {"parts": list(parts)}, **members}


def _function_calls(size: int) -> Iterator[dict[str, Any]]:
    return (_candidate({"functionCall": {"name": "f", "args": {}}}) for _ in range(size))


def _thoughts_and_texts(size: int) -> Iterator[dict[str, Any]]:
    return (_candidate({"text": "a"}, {"text": "b", "thought": True}) for _ in range(size))


def _ground_at_the_end(size: int) -> Iterator[dict[str, Any]]:
    yield from (_candidate({"text": "word " * 4}) for _ in range(size))
    chunks = [{"web": {"uri": f"https://a.example/{number}", "title": "t"}} for number in range(size)]
    supports = [
        {"segment": {"startIndex": number * 20, "endIndex": number * 20 + 4}, "groundingChunkIndices": [number]}
        for number in range(size)
    ]
    yield _candidate(groundingMetadata={"groundingChunks": chunks, "groundingSupports": supports})


def _ground_from_the_start(size: int) -> Iterator[dict[str, Any]]:
    *texts, grounded = _ground_at_the_end(size)
    yield _candidate({"text": ""}, groundingMetadata=grounded["groundingMetadata"])
    for text in texts:
        yield text
        yield _candidate({"text": "b", "thought": True})


def _queries_in_every_chunk(size: int) -> Iterator[dict[str, Any]]:
    *_, grounded = _ground_at_the_end(size)
    yield grounded
    for number in range(size):
        yield _candidate(
            {"text": "word " * 4},
            {"text": "b", "thought": True},
            groundingMetadata={"webSearchQueries": [f"q{number}"]},
        )


def _cite_in_every_chunk(size: int) -> Iterator[dict[str, Any]]:
    for number in range(size):
        source = {"uri": f"https://a.example/{number}", "startIndex": number * 20, "endIndex": number * 20 + 4}
        yield _candidate(
            {"text": "word " * 4}, {"text": "b", "thought": True}, citationMetadata={"citationSources": [source]}
        )


def _partial_arguments(size: int) -> Iterator[dict[str, Any]]:
    yield _candidate({"functionCall": {"name": "f", "willContinue": True}})
    for number in range(size):
        piece = {"jsonPath": f"$.a[{number}]", "stringValue": "word"}
        yield _candidate({"functionCall": {"partialArgs": [piece], "willContinue": True}})
    yield _candidate({"functionCall": {}})


def _other_candidates(size: int) -> bytes:
    def chunks() -> Iterator[dict[str, Any]]:
        for _ in range(size):
            yield {
                "candidates": [
                    {"index": 0, **_candidate({"text": "a"})},
                    {"index": 1, **_candidate({"text": "word " * 8})},
                ]
            }
        yield {"candidates": [{"index": 0, "finishReason": "STOP"}]}

    return _data(chunks())


STREAMS: dict[str, dict[str, Stream]] = {
    "chat": {
        "many texts": _chat(_texts, "stop"),
        "many open calls": _chat(_open_calls),
        "many whole calls": _chat(_whole_calls),
        "calls that grow in turns": _chat(_calls_in_turns),
        "calls without index and id": _chat(_nameless_calls),
        "calls named late": _chat(_late_names),
        "calls of one id": _chat(_calls_of_one_id),
        "a name with every piece": _chat(_names_with_every_piece),
        "a call between texts": _chat(_call_between_texts),
        "thoughts and texts in turns": _chat(_refusals_and_texts, "stop"),
        "many annotations": _chat(_annotate, "stop"),
        "lists of a vendor": _chat(_vendor_lists, "stop"),
        "logprobs": _logprobs,
        "other choices": _other_choices,
    },
    "messages": {
        "many blocks": _messages(_blocks),
        "many calls": _messages(_tool_blocks),
        "many open blocks": _messages(_open_blocks),
        "many citations": _messages(_build_cited_block),
        "deltas nobody knows": _messages(_strange_deltas),
        "blocks nobody knows": _messages(_strange_blocks),
    },
    "responses": {
        "many items": _responses(_items),
        "many open items": _responses(_open_items),
        "items only when done": _responses(_done_only),
        "many content parts": _responses(_content_parts),
        "many annotations": _responses(_annotations),
        "ends told again and again": _responses(_repeat_ends),
        "many summaries": _responses(_summaries),
        "events nobody knows": _responses(_strange_events),
    },
    "gemini": {
        "many calls": _gemini(_function_calls),
        "thoughts and texts in turns": _gemini(_thoughts_and_texts),
        "sources named at the end": _gemini(_ground_at_the_end),
        "sources named at the start": _gemini(_ground_from_the_start),
        "searches told in every chunk": _gemini(_queries_in_every_chunk),
        "a source named in every chunk": _gemini(_cite_in_every_chunk),
        "arguments in pieces": _gemini(_partial_arguments),
        "other candidates": _other_candidates,
    },
}
