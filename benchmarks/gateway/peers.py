"""The servers that are measured: the gateway, both yardsticks, and LiteLLM's proxy where it is installed."""

import os
import shutil
import socket
from pathlib import Path

from benchmarks.gateway.cases import MODELS
from benchmarks.gateway.program import LOAD_CORE, SERVER_CORE, Program, python

_GATEWAY = "import sys; from dragoman.cli import main; sys.exit(main())"
_CONFIG = """
[upstreams.gemini]
kind = "gemini"
base_url = "{upstream}"
api_key = "some-key"

[upstreams.openai]
kind = "openai"
base_url = "{upstream}/v1"
api_key = "some-key"

[upstreams.anthropic]
kind = "anthropic"
base_url = "{upstream}"
api_key = "some-key"

[models]
"""
_LITELLM_KEY = "sk-0123456789abcdef0123456789abcdef"
_LITELLM_CONFIG = """
model_list:
  - model_name: gemini
    litellm_params: {{model: gemini/{model}, api_base: "{upstream}/v1beta", api_key: some-key}}
litellm_settings: {{set_verbose: false, drop_params: true, telemetry: false, num_retries: 0}}
general_settings: {{master_key: {key}}}
"""
_LITELLM_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "DISABLE_ADMIN_UI": "True",
}


def upstream() -> Program:
    """Return the upstream that all ask."""
    return Program(python("-m", "benchmarks.gateway.upstream"), LOAD_CORE)


def gateway(upstream: str, folder: Path, other: str = "") -> Program:
    """Return our gateway, one process; `other` is another dragoman: its command, or a folder with its package."""
    home = folder / (other.replace("/", "_") or "dragoman")
    home.mkdir(exist_ok=True)
    config = home / "dragoman.toml"
    models = "".join(f'"{name}" = "{name}/{model}"\n' for name, model in MODELS.items())
    config.write_text(_CONFIG.format(upstream=upstream) + models, encoding="utf-8")
    # What it keeps belongs to this run, not to whoever runs it.
    environment = {"XDG_STATE_HOME": str(home)}
    command = python("-c", _GATEWAY)
    if Path(other).is_file():
        command = [other]
    elif other:
        environment["PYTHONPATH"] = other
    arguments = ["serve", "--config", str(config), "--listen", "127.0.0.1:0"]
    return Program([*command, *arguments], SERVER_CORE, environment)


def translator(upstream: str) -> Program:
    """Return the smallest program that translates."""
    return Program(python("-m", "benchmarks.gateway.translator", upstream), SERVER_CORE)


def forwarder(upstream: str) -> Program:
    """Return the program that only passes bytes on."""
    return Program(python("-m", "benchmarks.gateway.forwarder", upstream), SERVER_CORE)


class LiteLLM:
    """LiteLLM's proxy, one process, as its own documentation runs it in production."""

    headers = f"authorization: Bearer {_LITELLM_KEY}\r\n"

    def __init__(self, command: str, upstream: str, folder: Path) -> None:
        config = folder / "litellm.yaml"
        settings = _LITELLM_CONFIG.format(upstream=upstream, model=MODELS["gemini"], key=_LITELLM_KEY)
        config.write_text(settings, encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.address = f"http://127.0.0.1:{port}"
        options = ["--config", str(config), "--host", "127.0.0.1", "--port", port, "--num_workers", "1"]
        self.program = Program([command, *options], SERVER_CORE, _LITELLM_ENVIRONMENT)


def litellm_command() -> str | None:
    """Return where LiteLLM is: the command or environment that LITELLM names, else what is on the path."""
    named = os.environ.get("LITELLM", "")
    if not named:
        return shutil.which("litellm")
    inside = Path(named) / "bin" / "litellm"
    return str(inside) if inside.is_file() else named
