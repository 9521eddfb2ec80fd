"""The items of a reply: thought, search, message, loaded tools and calls, in the vendor's order.

The same answer on the same occasion gives the same items, ids and tokens: a whole reply and a stream tell one story.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.openai.reply_details import probabilities
from dragoman.simulator.apis.responses.compaction import compaction_item
from dragoman.simulator.apis.responses.echo import echoed_tool
from dragoman.simulator.apis.responses.ids import Issued, issue
from dragoman.simulator.apis.responses.read import SEARCH_NAME, tool_names
from dragoman.simulator.apis.responses.rules_tools import Placed, clients_tools
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import CompactionTrigger
from dragoman.simulator.apis.responses.shape_items import ToolSearchOutput
from dragoman.simulator.apis.responses.shape_tools import CustomTool, ToolSearchTool
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call


class _Reply(Struct):
    """A reply in the making."""

    request: Request
    occasion: Occasion
    items: list[Json]

    def add(self, prefix: str, kind: str, **members: Any) -> Json:
        """Add an item under the next id."""
        after_thought = bool(self.items) and self.items[-1]["type"] == "reasoning"
        issued = Issued(
            prefix=prefix,
            reply=self.occasion.id,
            index=len(self.items),
            stored=self.request.is_stored,
            after_thought=after_thought,
        )
        item: Json = {"id": issue(issued), "type": kind, **members}
        self.items.append(item)
        return item

    def speak(self, parts: list[Json], phase: str = "") -> None:
        """Add a message; a refusal belongs to no phase."""
        item = self.add("msg", "message", status="completed", role="assistant", content=parts)
        if phase and self.request.model.tells_phase:
            item["phase"] = phase


def items_of(answer: Answer, accepted: Accepted, occasion: Occasion) -> list[Json]:
    """Write the items of a reply."""
    request = cast("Request", accepted.body)
    if answer.end == "malformed_call" or request.prewarms:
        return []
    if request.items and isinstance(request.items[-1], CompactionTrigger):
        return [compaction_item(occasion, 0, stored=request.is_stored)]
    reply = _Reply(request, occasion, [])
    _think(reply, answer)
    _search(reply, answer)
    _speak(reply, answer)
    for call in answer.calls:
        _call(reply, call)
    if answer.end in {"length", "filtered"} and reply.items and "status" in reply.items[-1]:
        reply.items[-1]["status"] = "incomplete"
    limits = [one.compact_threshold for one in request.body.context_management or ()]
    # Calls wait for their answers: what leads to them is not sealed yet.
    if not answer.calls and any(limit is not None and answer.usage.input >= limit for limit in limits):
        reply.items.append(compaction_item(occasion, len(reply.items), stored=request.is_stored))
    return reply.items


def partial(token: str) -> str:
    """Return what a stream tells of encrypted content before the thought is complete: not yet the real thing."""
    return token[: len(token) // 2]


def _think(reply: _Reply, answer: Answer) -> None:
    if not answer.thought:
        return
    body = reply.request.body
    tells = body.reasoning is not None and body.reasoning.tells is not None
    summary = [{"type": "summary_text", "text": answer.thought}] if tells else []
    item = reply.add("rs", "reasoning", summary=summary)
    # Without a store the client must hold the thought itself, whether it asked for that or not.
    if body.store is False or "reasoning.encrypted_content" in (body.include or ()):
        item["encrypted_content"] = reply.occasion.signer.issue(item["id"], f"{reply.occasion.id}/{len(reply.items)}")


def _search(reply: _Reply, answer: Answer) -> None:
    if not answer.query:
        return
    action: Json = {"type": "search", "query": answer.query, "queries": [answer.query]}
    if "web_search_call.action.sources" in (reply.request.body.include or ()):
        action["sources"] = [{"type": "url", "url": source.url} for source in answer.sources]
    reply.add("ws", "web_search_call", status="completed", action=action)


def _speak(reply: _Reply, answer: Answer) -> None:
    if answer.refusal:
        reply.speak([{"type": "refusal", "refusal": answer.refusal}])
        return
    if not answer.text and (answer.calls or answer.end != "stop"):
        return
    body = reply.request.body
    asked = "message.output_text.logprobs" in (body.include or ())
    likely = probabilities(answer.text, body.top_logprobs or 0) if asked else []
    cited = list(_citations(answer))
    part: Json = {"type": "output_text", "annotations": cited, "logprobs": likely, "text": answer.text}
    reply.speak([part], "commentary" if answer.calls else "final_answer")


def _citations(answer: Answer) -> Iterator[Json]:
    for source in answer.sources:
        start = answer.text.find(source.quote)
        if start >= 0:
            yield {
                "type": "url_citation",
                "start_index": start,
                "end_index": start + len(source.quote),
                "title": source.title,
                "url": source.url,
            }


def _call(reply: _Reply, call: Call) -> None:
    request = reply.request
    if call.name == SEARCH_NAME and _searches_at_client(request):
        arguments: Any = call.arguments if isinstance(call.arguments, dict) else {}
        members: Json = {"call_id": _call_id(call), "execution": "client", "arguments": arguments}
        reply.add("tsc", "tool_search_call", status="completed", **members)
        return
    namespace, name = tool_names(request).get(call.name, ("", call.name))
    placed = next((one for one in clients_tools(request) if (one.namespace, one.tool.name) == (namespace, name)), None)
    if placed is not None and placed.tool.defer_loading and placed.where.startswith("/tools/"):
        _load(reply, placed)
        # A deferred tool outside of any group is called as its own group (recorded: openai_responses/pydantic-ai-0049).
        namespace = namespace or name
    grouped: Json = {"namespace": namespace} if namespace else {}
    if isinstance(call.arguments, str) or (placed is not None and isinstance(placed.tool, CustomTool)):
        text = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
        reply.add("ctc", "custom_tool_call", call_id=_call_id(call), name=name, input=text, **grouped)
        return
    written = msgspec.json.encode(call.arguments).decode()
    members = {"arguments": written, "call_id": _call_id(call), "name": name, **grouped}
    reply.add("fc", "function_call", status="completed", **members)


def _call_id(call: Call) -> str:
    return call.id if call.id.startswith("call_") else f"call_{call.id}"


def _searches_at_client(request: Request) -> bool:
    return any(isinstance(tool, ToolSearchTool) and tool.execution == "client" for tool in request.body.tools or ())


def _load(reply: _Reply, placed: Placed) -> None:
    """Look up a deferred tool first, unless that was done before."""
    top = int(placed.where.split("/")[2])
    wanted = echoed_tool(reply.request.document["tools"][top])
    found = [tool for item in reply.items if item["type"] == "tool_search_output" for tool in item["tools"]]
    earlier = [item for item in reply.request.items if isinstance(item, ToolSearchOutput)]
    if wanted in found or any(getattr(tool, "name", "") == wanted["name"] for item in earlier for tool in item.tools):
        return
    told: Json = {"status": "completed", "call_id": None, "execution": "server"}
    reply.add("tsc", "tool_search_call", **told, arguments={"paths": [wanted["name"]]})
    reply.add("tso", "tool_search_output", **told, tools=[wanted])
