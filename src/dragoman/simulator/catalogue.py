"""The models that the simulator lists for each vendor."""

from typing import Any

OPENAI = ("gpt-6-luna", "gpt-6-sol", "gpt-5.6", "gpt-5.4", "gpt-5.4-mini", "gpt-5.2", "gpt-4.1", "gpt-4o", "o4-mini")
ANTHROPIC = {
    "claude-opus-5-5": "Claude Opus 5.5",
    "claude-sonnet-5-5": "Claude Sonnet 5.5",
    "claude-haiku-5-5": "Claude Haiku 5.5",
    "claude-opus-5": "Claude Opus 5",
    "claude-sonnet-5": "Claude Sonnet 5",
    "claude-opus-4-8": "Claude Opus 4.8",
    "claude-haiku-4-5": "Claude Haiku 4.5",
}
GEMINI = {
    "gemini-3.8-flash": "Gemini 3.8 Flash",
    "gemini-3.6-flash": "Gemini 3.6 Flash",
    "gemini-3.1-pro-preview": "Gemini 3.1 Pro Preview",
    "gemini-3-flash": "Gemini 3 Flash",
    "gemini-2.5-pro": "Gemini 2.5 Pro",
    "gemini-2.5-flash": "Gemini 2.5 Flash",
}
_CREATED = 1_780_000_000
_CREATED_AT = "2026-05-28T00:00:00Z"
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]


def build_openai_model(name: str) -> dict[str, Any]:
    """Return a model's entry in OpenAI's format."""
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "dragoman-simulator"}


def list_openai_models() -> dict[str, Any]:
    """Return the models of all vendors in OpenAI's format: clients of a gateway expect one list."""
    return {"object": "list", "data": [build_openai_model(name) for name in (*OPENAI, *ANTHROPIC, *GEMINI)]}


def build_anthropic_model(name: str) -> dict[str, Any]:
    """Return a model's entry in Anthropic's format."""
    from dragoman.simulator.apis.messages.models import build_list_entry, parse_model_name  # noqa: PLC0415  loaded on first use

    shown = ANTHROPIC.get(name, name)
    return {
        "type": "model",
        "id": name,
        "display_name": shown,
        "created_at": _CREATED_AT,
        **build_list_entry(parse_model_name(name)),
    }


def list_anthropic_models() -> dict[str, Any]:
    """Return the list in Anthropic's format."""
    models = [build_anthropic_model(name) for name in ANTHROPIC]
    return {"data": models, "has_more": False, "first_id": models[0]["id"], "last_id": models[-1]["id"]}


def build_gemini_model(name: str) -> dict[str, Any]:
    """Return a model's entry in the Gemini API's format."""
    from dragoman.simulator.apis.gemini.models import parse_generation  # noqa: PLC0415  loaded on first use

    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": GEMINI.get(name, name),
        "description": "A simulator, not a model",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": _METHODS,
        "thinking": parse_generation(name).can_think,
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
    }


def list_gemini_models() -> dict[str, Any]:
    """Return the list in the Gemini API's format."""
    return {"models": [build_gemini_model(name) for name in GEMINI]}


def build_vertex_model(name: str) -> dict[str, Any]:
    """Return a model's entry in Vertex's format."""
    return {
        "name": f"publishers/google/models/{name}",
        "versionId": "default",
        "launchStage": "GA",
        "publisherModelTemplate": f"projects/{{project}}/locations/{{location}}/publishers/google/models/{name}",
    }


def list_vertex_models() -> dict[str, Any]:
    """Return the list in Vertex's format."""
    return {"publisherModels": [build_vertex_model(name) for name in GEMINI]}
