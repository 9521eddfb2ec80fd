"""Make a conversation short: what users said stays, all else is sealed into one item that only the vendor can read."""

import msgspec

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.responses.ids import Issued, issue, response_id
from dragoman.simulator.apis.responses.joining import input_items
from dragoman.simulator.apis.responses.listing import kept
from dragoman.simulator.apis.responses.usage import usage_of
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Usage

_SEALED_TOKENS = 64


def compaction_item(occasion: Occasion, index: int, *, stored: bool) -> Json:
    """Return the item that stands for everything before it."""
    issued = Issued(prefix="cmp", reply=occasion.id, index=index, stored=stored, after_thought=False)
    name = issue(issued)
    return {
        "id": name,
        "type": "compaction",
        "encrypted_content": occasion.signer.issue(name, f"{occasion.id}/{index}"),
    }


def compact(accepted: Accepted, occasion: Occasion, tokens: int) -> bytes:
    """Write the answer to `POST /v1/responses/compact`."""
    items: list[Json] = input_items(accepted.body.document.get("input"))
    sealed = [number for number, item in enumerate(items, 1) if item.get("type") == "compaction"]
    since = items[sealed[-1] if sealed else 0 :]
    said = [one.told() for one in kept(since, occasion.id) if one.item.get("role") == "user"]
    return msgspec.json.encode(
        {
            "id": response_id(occasion.id),
            "object": "response.compaction",
            "created_at": occasion.created,
            "output": [*said, compaction_item(occasion, len(said), stored=True)],
            "usage": usage_of(Usage(input=tokens, output=_SEALED_TOKENS)),
        }
    )
