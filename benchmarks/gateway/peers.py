"""Those that are measured: the gateway, the forwarder, and LiteLLM's proxy where it is installed."""

import os
import shutil
import socket
from pathlib import Path

from benchmarks.gateway.program import LOAD_CORE, SERVER_CORE, Program, python

MODEL = "some-model"
_GATEWAY = "import sys; from dragoman.cli import main; sys.exit(main())"
_CONFIG = """
[upstreams.gemini]
kind = "gemini"
base_url = "{upstream}"
api_key = "some-key"

[models]
"{model}" = ["gemini/{model}"]
"""
_LITELLM_KEY = "sk-0123456789abcdef0123456789abcdef"
_LITELLM_CONFIG = """
model_list:
  - model_name: {model}
    litellm_params: {{model: gemini/gemini-2.5-flash, api_base: "{upstream}/v1beta", api_key: some-key}}
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


def gateway(upstream: str, folder: Path) -> Program:
    """Return our gateway, one process."""
    config = folder / "dragoman.toml"
    config.write_text(_CONFIG.format(upstream=upstream, model=MODEL), encoding="utf-8")
    command = python("-c", _GATEWAY, "serve", "--config", str(config), "--listen", "127.0.0.1:0")
    # What it keeps belongs to this run, not to whoever runs it.
    return Program(command, SERVER_CORE, {"XDG_STATE_HOME": str(folder)})


def forwarder(upstream: str) -> Program:
    """Return the program that only passes bytes on."""
    return Program(python("-m", "benchmarks.gateway.forwarder", upstream), SERVER_CORE)


class LiteLLM:
    """LiteLLM's proxy, one process, as its own documentation runs it in production."""

    headers = f"authorization: Bearer {_LITELLM_KEY}\r\n"

    def __init__(self, command: str, upstream: str, folder: Path) -> None:
        config = folder / "litellm.yaml"
        config.write_text(_LITELLM_CONFIG.format(upstream=upstream, model=MODEL, key=_LITELLM_KEY), encoding="utf-8")
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
