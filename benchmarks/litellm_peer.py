"""LiteLLM's translation of a chat request to Gemini, where it is installed: no HTTP, no logging, no routing."""

import importlib.util
import json
import logging
import os
from typing import Any

from benchmarks.clock import Work

INSTALLED = importlib.util.find_spec("litellm") is not None
MODEL = "gemini-3-flash"


def request_to_gemini(body: bytes) -> Work:
    """Return the work: bytes of a chat request in, bytes of a Gemini request out."""
    # Without this the import waits for a download of its price list.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    utils = importlib.import_module("litellm.utils")
    transformation = importlib.import_module("litellm.llms.vertex_ai.gemini.transformation")

    def translate_one() -> bytes:
        request: dict[str, Any] = json.loads(body)
        messages = request.pop("messages")
        request.pop("model")
        options = utils.get_optional_params(model=MODEL, custom_llm_provider="gemini", messages=messages, **request)
        result = transformation._transform_request_body(  # noqa: SLF001  # its whole request path ends here
            messages=messages,
            model=MODEL,
            optional_params=options,
            custom_llm_provider="gemini",
            litellm_params={},
            cached_content=None,
        )
        return json.dumps(result).encode()

    return translate_one
