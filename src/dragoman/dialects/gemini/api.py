"""The HTTP API of Gemini: paths of AI Studio, Vertex and Code Assist, their clients' headers, Google's model names."""

from dragoman.dialects.api import READ_METHODS, Api, Endpoint, Operation, ServedPath

_VERSION = r"/(?:v1|v1beta|v1beta1|v1alpha)"
_MODELS = rf"{_VERSION}(?:(?:/projects/[^/]+/locations/[^/]+)?/publishers/google)?/models"
_ANY_VERSION = rf"(?:/upload|/download)?{_VERSION}"
_OTHER_RESOURCES = (
    "batches|cachedContents|corpora|fileSearchStores|files|operations|tunedModels|models/[^:/]+/operations"
)


def _build_method_path(name: str, operation: Operation, *, stream: bool = False) -> ServedPath:
    """Return the path of a method of a model, such as `models/NAME:generateContent`."""
    endpoint = Endpoint(operation=operation, stream=stream, google=True, in_url=True)
    return ServedPath(rf"{_MODELS}/(?P<model>.+):{name}", endpoint, is_pattern=True, ending=f":{name}")


def _build_code_assist_path(name: str, operation: Operation, *, stream: bool = False) -> ServedPath:
    """Return the path of a method of Code Assist, such as `/v1internal:generateContent`."""
    endpoint = Endpoint(operation=operation, stream=stream, google=True, wrapped=True)
    return ServedPath(rf"/v1internal:(?P<name>{name})", endpoint, is_pattern=True)


API = Api(
    paths=(
        ServedPath("/v1/gemini", Endpoint(operation="generate", in_session=True)),
        _build_method_path("generateContent", "generate"),
        _build_method_path("streamGenerateContent", "generate", stream=True),
        _build_method_path("countTokens", "count"),
        _build_code_assist_path("generateContent", "generate"),
        _build_code_assist_path("streamGenerateContent", "generate", stream=True),
        _build_code_assist_path("countTokens", "count"),
        _build_code_assist_path(r"stream\w*", "assist", stream=True),
        _build_code_assist_path(r"\w+", "assist"),
        ServedPath(
            r"/v1internal/operations/[^/]+",
            Endpoint(operation="assist", name="operation"),
            READ_METHODS,
            is_pattern=True,
        ),
        ServedPath(_MODELS, Endpoint(operation="models"), READ_METHODS, is_pattern=True),
        ServedPath(
            rf"{_MODELS}/(?P<model>(?!.+/operations/).+)", Endpoint(operation="model"), READ_METHODS, is_pattern=True
        ),
    ),
    other_paths=(
        rf"{_ANY_VERSION}/models/(?P<model>[^:]+):[A-Za-z]+",
        rf"{_ANY_VERSION}/(?:{_OTHER_RESOURCES})(?:[/:].+)?",
    ),
    own_headers=frozenset({"x-goog-api-key", "x-goog-api-client"}),
    own_paths=r"/v1beta|v1internal",
    forwarded_headers=frozenset({"x-goog-request-params"}),
    model_names=r"(?:models/)?(?:gemini|gemma|learnlm)-",
    default_model="gemini-3-flash",
)
