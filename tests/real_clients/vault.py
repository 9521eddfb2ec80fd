"""An MCP server on standard input and output with a tool that knows a word, which its environment holds.

If the environment holds a number too, so many other tools come before it.
"""

import json
import os
import sys

TOOL = {
    "name": "open_vault",
    "description": "Open the vault and tell what is in it.",
    "inputSchema": {"type": "object", "properties": {"door": {"type": "string"}}, "required": ["door"]},
}


def _build_other(number):
    properties = {f"part_{at}": {"type": "string", "description": f"Part {at} of the house."} for at in range(6)}
    schema = {"type": "object", "properties": properties}
    return {"name": f"look_{number:03}", "description": f"Look into room {number}.", "inputSchema": schema}


def _answer(message):
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "vault", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [*map(_build_other, range(int(os.environ.get("VAULT_OTHERS", "0")))), TOOL]}
        case "tools/call":
            door = message["params"]["arguments"]["door"]
            return {"content": [{"type": "text", "text": f"{os.environ['VAULT_WORD']} behind the {door} door"}]}
        case _:
            return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": _answer(message)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
