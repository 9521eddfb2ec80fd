"""Start each command-line agent as the README says, for one task and without questions."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from real_clients.conftest import Programs
from real_clients.settings import block, shell
from real_clients.stage import Stage

SELECTED = {"gemini-cli": "gemini-api-key", "gemini-cli-code-assist": "oauth-personal"}
"""How Gemini CLI shows who it is, by the block of the README."""
VAULT = Path(__file__).with_name("vault.py")


def vault(word: str, others: int = 0) -> dict[str, Any]:
    """Return how an agent starts an MCP server with a tool that knows a word, and with so many others before it."""
    return {"command": sys.executable, "args": [str(VAULT)], "env": {"VAULT_WORD": word, "VAULT_OTHERS": str(others)}}


def claude_code(
    stage: Stage, programs: Programs, prompt: str, *, model: str = "", servers: Mapping[str, Any] | None = None
) -> str:
    """Run Claude Code."""
    variables, (name, *mode) = shell("claude-code", stage.base_url)
    if model:
        variables["ANTHROPIC_MODEL"] = model
    options = [
        *mode,
        "--allowedTools",
        ",".join(["Bash", "Read", "ToolSearch", "WebSearch", *(f"mcp__{name}" for name in servers or ())]),
    ]
    if servers:
        options += ["--mcp-config", json.dumps({"mcpServers": servers})]
    return stage.run([*programs[name], "-p", prompt, *options], variables)


def codex(
    stage: Stage, programs: Programs, prompt: str, *, model: str = "", servers: Mapping[str, Any] | None = None
) -> str:
    """Run Codex."""
    settings = "features.plugins = false\n" + block("toml", "codex", stage.base_url)
    if model:
        settings = settings.replace("gemini-3-flash", model)
    for name, server in (servers or {}).items():
        environment = ", ".join(f'{key} = "{value}"' for key, value in server["env"].items())
        settings += f'[mcp_servers.{name}]\ncommand = "{server["command"]}"\nargs = {server["args"]}\n'
        settings += f"env = {{ {environment} }}\n"
    home = stage.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(settings, encoding="utf-8")
    free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return stage.run([*programs["codex"], "exec", *free, prompt], {"DRAGOMAN_KEY": "any"})


def gemini_cli(
    stage: Stage,
    programs: Programs,
    prompt: str,
    *,
    mode: str = "gemini-cli",
    servers: Mapping[str, Any] | None = None,
) -> str:
    """Run Gemini CLI, with an API key or as Code Assist's client."""
    variables, (name, *options) = shell(mode, stage.base_url)
    settings: dict[str, Any] = {"security": {"auth": {"selectedType": SELECTED[mode]}}}
    settings["mcpServers"] = {name: {**server, "trust": True} for name, server in (servers or {}).items()}
    home = stage.home / ".gemini"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    variables["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    return stage.run([*programs[name], *options, "--approval-mode", "yolo", "-p", prompt], variables)


def opencode(
    stage: Stage, programs: Programs, prompt: str, *, provider: str, servers: Mapping[str, Any] | None = None
) -> str:
    """Run opencode with one of the AI SDK's providers."""
    settings = json.loads(block("json", "opencode", stage.base_url))
    ours = settings["provider"]["dragoman"]
    ours["npm"] = f"@ai-sdk/{provider}"
    if provider == "google":
        ours["options"]["baseURL"] = f"{stage.base_url}/v1beta"
    settings["permission"] = {"*": "allow"}
    settings["mcp"] = {
        name: {
            "type": "local",
            "command": [server["command"], *server["args"]],
            "environment": server["env"],
            "enabled": True,
        }
        for name, server in (servers or {}).items()
    }
    (stage.folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    return stage.run([*programs["opencode"], "run", "--model", "dragoman/gemini-3-flash", prompt], {})


def claude_code_again(stage: Stage, programs: Programs, prompt: str, model: str) -> str:
    """Take up Claude Code's last conversation, with another model."""
    variables, (name, *mode) = shell("claude-code", stage.base_url)
    return stage.run([*programs[name], *mode, "-c", "-p", prompt], {**variables, "ANTHROPIC_MODEL": model})


def codex_again(stage: Stage, programs: Programs, prompt: str, model: str) -> str:
    """Take up Codex's last conversation, with another model."""
    free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    command = [*programs["codex"], "exec", "-m", model, *free, "resume", "--last", prompt]
    return stage.run(command, {"DRAGOMAN_KEY": "any"})


def gemini_cli_again(stage: Stage, programs: Programs, prompt: str, model: str) -> str:
    """Take up Gemini CLI's last conversation, with another model."""
    variables, (name, *_) = shell("gemini-cli", stage.base_url)
    variables["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    options = ["--resume", "latest", "-m", model, "--approval-mode", "yolo"]
    return stage.run([*programs[name], *options, "-p", prompt], variables)
