"""An MCP server on standard input and output with one tool, which knows a word that its environment holds."""

import json
import os
import sys

TOOL = {
    "name": "open_vault",
    "description": "Open the vault and tell what is in it.",
    "inputSchema": {"type": "object", "properties": {"door": {"type": "string"}}, "required": ["door"]},
}


def _answer(message):
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "vault", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
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
