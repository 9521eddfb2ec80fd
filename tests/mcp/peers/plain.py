"""A server of the 2025 revision without any SDK, so that it starts at once and can misbehave: `plain.py [MANNER]`."""

import json
import os
import sys
import time
from pathlib import Path

MANNER = sys.argv[1] if len(sys.argv) > 1 else ""
ANY = {"type": "object"}
TOOLS = {
    "surroundings": "Tell of the process.",
    "hang": "Never answer.",
    "die": "Crash.",
    "mumble": "Speak on standard error.",
    "colour": "Tell the colour.",
    "change": "Become another.",
    "calls": "Tell which calls were cancelled.",
    "nonsense": "Answer with what is no result.",
    "garbage": "Say what is no message, then answer.",
    "misfit": "Answer with another output than declared.",
}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
tools = dict(TOOLS)
seen: list[str] = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def flood(kind):
    """Write without end, on standard error if the kind says so."""
    notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    texts = {
        "line": "x" * 65536,
        "nonsense": "x\n" * 30_000,
        "empty-lines": "\n" * 60_000,
        "notifications": (json.dumps(notification) + "\n") * 500,
        "questions": '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 500,
        "false-answers": '{"jsonrpc": "2.0", "id": 12345, "result": {}}\n' * 500,
        "stderr": "y\n" * 30_000,
    }
    stream = sys.stderr if kind == "stderr" else sys.stdout
    while True:
        stream.write(texts[kind])


def tool(name):
    more = {"outputSchema": OUTPUT} if name == "misfit" else {}
    return {"name": name, "description": tools[name], "inputSchema": ANY, **more}


def list_items(cursor):
    """Three tools a page, or what the manner wants."""
    if MANNER == "endless":
        at = int(cursor or 0)
        return {"tools": [{"name": f"t{at}", "inputSchema": ANY}], "nextCursor": str(at + 1)}
    if MANNER == "bad-tools":
        bad = {"name": "outward", "inputSchema": {"type": "object", "$ref": "https://host.test/schema"}}
        return {"tools": [bad, tool("colour"), tool("colour"), {"name": "", "inputSchema": ANY}]}
    if MANNER == "impossible-tools":
        impossible = [{"name": "text", "inputSchema": {"type": "string"}}, {"inputSchema": ANY}, 7]
        return {"tools": [*impossible, {"name": "none", "inputSchema": None}, tool("colour")]}
    if MANNER == "wrong-list" or tools.get("colour") == "Wrong.":
        return {"tools": 7}
    names = list(tools)
    start = int(cursor or 0)
    page = {"tools": [tool(name) for name in names[start : start + 3]]}
    return page | ({"nextCursor": str(start + 3)} if start + 3 < len(names) else {})


def call(name, arguments):
    if MANNER.startswith("floods-on-call-") and name == "colour":
        flood(MANNER.removeprefix("floods-on-call-"))
    match name:
        case "surroundings":
            about = {
                "environment": dict(os.environ),
                "directory": str(Path.cwd()),
                "files": [path.name for path in Path.cwd().iterdir()],
                "pid": os.getpid(),
            }
            return {"content": [], "structuredContent": about}
        case "hang":
            return None
        case "die":
            os.kill(os.getpid(), 9)
        case "mumble":
            sys.stderr.write(arguments["words"] + "\n")
            sys.stderr.flush()
        case "change":
            if "add" in arguments:
                tools[arguments["add"]] = "Came later."
            elif arguments.get("words"):
                tools["colour"] = arguments["words"]
            else:
                del tools["colour"]
            send({"method": "notifications/tools/list_changed"})
        case "calls":
            return {"content": [], "structuredContent": {"seen": seen}}
        case "nonsense":
            return {"content": "?"}
        case "garbage":
            sys.stdout.write("this is no JSON\n")
        case "misfit":
            return {"content": [], "structuredContent": {"n": "many"}}
        case _:
            pass
    return {"content": [{"type": "text", "text": f"{name} done"}]}


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "notifications/cancelled":
        seen.append(f"cancelled {params['requestId']}")
    if "id" not in message:
        return
    identity = message["id"]
    if method == "initialize":
        if MANNER == "silent":
            return
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "plain", "version": "0"},
        }
    elif method == "tools/list" and MANNER != "no-tools":
        result = list_items(params.get("cursor"))
    elif method == "tools/call":
        if params["name"] == "hang":
            seen.append(f"hung {identity}")
        result = call(params["name"], params.get("arguments") or {})
        if result is None:
            return
    else:
        send({"id": identity, "error": {"code": -32601, "message": "Method not found"}})
        return
    send({"id": identity, "result": result})
    if MANNER.startswith("floods-at-once-") and method == "tools/list" and "nextCursor" not in result:
        flood(MANNER.removeprefix("floods-at-once-"))


if MANNER == "broken":
    sys.stderr.write("there is no database at db.test, token t0ken-secret\n")
    sys.exit(3)
if "PLAIN_STARTS" in os.environ:
    with Path(os.environ["PLAIN_STARTS"]).open("a") as starts:
        starts.write("started\n")
if MANNER == "deaf":
    time.sleep(600)
if "PLAIN_COLOUR" in os.environ:
    tools["colour"] = os.environ["PLAIN_COLOUR"]
for line in sys.stdin:
    answer(json.loads(line))
