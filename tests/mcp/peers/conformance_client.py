"""The client that the conformance suite puts to the test: ours, with what a program has to add to it.

The suite passes the scenario in the environment and the address as the last argument. What is called is called through
the executor, as a loop does.
"""

import fcntl
import os
from pathlib import Path

if "CONFORMANCE_GATES" in os.environ:
    # The suite starts all clients at once, which is more than a small machine bears.
    GATE = Path(os.environ["CONFORMANCE_GATES"], f"gate-{os.getpid() % 2}").open("w")  # noqa: SIM115  held to the end
    fcntl.flock(GATE, fcntl.LOCK_EX)

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import ElicitResult

from dragoman.core.parts import ToolCall
from dragoman.mcp.client import Abilities, open_servers
from dragoman.mcp.settings import ToolServer
from dragoman.tools import Executor

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
CALLBACK = "http://localhost:3000/callback"
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "initialize": [],
    "json-schema-ref-no-deref": [],
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "request-metadata": [("add_numbers", {"a": 5, "b": 3})],
    "http-standard-headers": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
    "http-custom-headers": [(call["name"], call.get("arguments") or {}) for call in CONTEXT.get("toolCalls", [])],
}
"""What is called where it matters; elsewhere each tool is called once."""


class Memory:
    """Keeps what signing in brings."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Goes to where one signs in, and is sent back with a code."""

    def __init__(self) -> None:
        self.sent_back: dict[str, str] = {}

    async def go(self, address: str) -> None:
        async with httpx2.AsyncClient() as client:
            response = await client.get(address)
        query = parse_qs(urlsplit(response.headers["location"]).query)
        self.sent_back = {name: values[0] for name, values in query.items()}

    async def come_back(self) -> AuthorizationCodeResult:
        sent = self.sent_back
        return AuthorizationCodeResult(code=sent["code"], state=sent.get("state"), iss=sent.get("iss"))


def sign_in(address: str) -> httpx2.Auth:
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(
            server_url=address,
            storage=Memory(),
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT["client_secret"],
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106  the name of a method
        )
    memory, browser = Memory(), Browser()
    if "client_id" in CONTEXT:
        memory.client = OAuthClientInformationFull.model_validate(
            {
                "client_id": CONTEXT["client_id"],
                "client_secret": CONTEXT.get("client_secret"),
                "redirect_uris": [CALLBACK],
                "token_endpoint_auth_method": "client_secret_basic" if CONTEXT.get("client_secret") else "none",
            }
        )
    about = {
        "client_name": "dragoman",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }
    return OAuthClientProvider(
        server_url=address,
        client_metadata=OAuthClientMetadata.model_validate(about),
        storage=memory,
        redirect_handler=browser.go,
        callback_handler=browser.come_back,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


async def defaults(_: Any, params: Any) -> ElicitResult:
    """Accept, with what the form proposes."""
    properties = getattr(params, "requested_schema", {}).get("properties", {})
    proposed = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    confirmed = {name: True for name, schema in properties.items() if schema.get("type") == "boolean"}
    return ElicitResult(action="accept", content={**confirmed, **proposed})


def fill(schema: bytes | None) -> dict[str, Any]:
    """The least arguments that a tool takes."""
    document = msgspec.json.decode(schema or b"{}")
    usual = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
    properties = document.get("properties", {})
    return {name: usual.get(properties.get(name, {}).get("type"), "x") for name in document.get("required", [])}


async def main(address: str) -> int:
    # The suite's server in this scenario does not speak what it says it does.
    older = not REVISION.startswith("2026") or SCENARIO == "json-schema-ref-no-deref"
    settings = ToolServer(url=address, protocol="2025-11-25" if older else "auto")
    asks = SCENARIO.startswith(("elicitation", "sep-2322", "request-metadata", "auth/"))
    auth = sign_in(address) if SCENARIO.startswith("auth/") else None
    abilities = Abilities(auth=auth, elicit=defaults if asks else None)
    async with open_servers({"suite": settings}, abilities={"suite": abilities}, patience=30) as servers:
        (status,) = servers.status()
        sys.stderr.write(f"{status}\n")
        executor = Executor(servers.registry)
        calls = CALLS.get(SCENARIO)
        if SCENARIO == "json-schema-2020-12-preservation":
            focal = servers.registry.get("suite__json_schema_2020_12_tool")
            schema = msgspec.json.decode(focal.definition.parameters or b"") if focal is not None else status.unusable
            calls = [("json_schema_echo", {"schema": schema})]
        elif calls is None:
            calls = [
                (tool.name.removeprefix("suite__"), fill(tool.parameters)) for tool in servers.registry.definitions
            ]
        for name, arguments in calls:
            handler = servers.registry.get(f"suite__{name}")
            if None in arguments.values() and handler is not None:
                # The suite wants to see what no schema of its tools admits, and no executor lets through.
                sys.stderr.write(f"{await handler.run(arguments)}\n")
                continue
            text = msgspec.json.encode(arguments).decode()
            call = ToolCall(id="1", name=f"suite__{name}", arguments=text)
            sys.stderr.write(f"{await executor.execute(call)}\n")
    return 0 if status.connected else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
