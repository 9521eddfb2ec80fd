"""The tools of a request, as the protos write them down.

Sources: wire/gemini.md sections 2 to 4 and 13, wire/gemini_schema.md section 2, and which members google-genai sends
to which surface.
"""

from typing import Annotated

from dragoman.simulator.apis.gemini.proto import (
    STUDIO,
    VERTEX,
    Double,
    Fields,
    Float,
    Int32,
    Int64,
    Message,
    Value,
    Words,
)
from dragoman.simulator.apis.gemini.shape_media import Nothing

_TYPES = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_BEHAVIORS = ("UNSPECIFIED", "BLOCKING", "NON_BLOCKING")
_ENVIRONMENTS = ("ENVIRONMENT_UNSPECIFIED", "ENVIRONMENT_BROWSER", "ENVIRONMENT_MOBILE", "ENVIRONMENT_DESKTOP")
_POLICIES = (
    "SAFETY_POLICY_UNSPECIFIED",
    "FINANCIAL_TRANSACTIONS",
    "SENSITIVE_DATA_MODIFICATION",
    "COMMUNICATION_TOOL",
    "ACCOUNT_CREATION",
    "DATA_MODIFICATION",
    "USER_CONSENT_MANAGEMENT",
    "LEGAL_TERMS_AND_AGREEMENTS",
)
_CONFIDENCES = (
    "PHISH_BLOCK_THRESHOLD_UNSPECIFIED",
    "BLOCK_LOW_AND_ABOVE",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_HIGH_AND_ABOVE",
    "BLOCK_HIGHER_AND_ABOVE",
    "BLOCK_VERY_HIGH_AND_ABOVE",
    "BLOCK_ONLY_EXTREMELY_HIGH",
)
_RETRIEVALS = ("MODE_UNSPECIFIED", "MODE_DYNAMIC")
_Confidence = Annotated[str, Words("PhishBlockThreshold", _CONFIDENCES), VERTEX]


class Schema(Message):
    """The subset of OpenAPI's schemas; any other keyword is an unknown name."""

    type: Annotated[str, Words("Type", _TYPES)] | None = None
    format: str | None = None
    title: str | None = None
    description: str | None = None
    nullable: bool | None = None
    enum: list[str] | None = None
    items: "Schema | None" = None
    min_items: Int64 | None = None
    max_items: Int64 | None = None
    properties: "dict[str, Schema] | None" = None
    required: list[str] | None = None
    min_properties: Int64 | None = None
    max_properties: Int64 | None = None
    minimum: Double | None = None
    maximum: Double | None = None
    min_length: Int64 | None = None
    max_length: Int64 | None = None
    pattern: str | None = None
    example: Value | None = None
    any_of: "list[Schema] | None" = None
    property_ordering: list[str] | None = None
    default: Value | None = None
    additional_properties: Annotated[Value, VERTEX] | None = None
    ref: Annotated[str, VERTEX] | None = None
    defs: "Annotated[dict[str, Schema], VERTEX] | None" = None


class FunctionDeclaration(Message):
    """A function the client can run."""

    name: str = ""
    description: str | None = None
    parameters: Schema | None = None
    parameters_json_schema: Value | None = None
    response: Schema | None = None
    response_json_schema: Value | None = None
    behavior: Annotated[str, Words("FunctionDeclaration.Behavior", _BEHAVIORS)] | None = None


class Interval(Message):
    """From when to when."""

    start_time: str | None = None
    end_time: str | None = None


class SearchTypes(Message):
    """What to search."""

    web_search: Nothing | None = None
    image_search: Nothing | None = None


class GoogleSearch(Message):
    """Search by Google."""

    search_types: SearchTypes | None = None
    blocking_confidence: _Confidence | None = None
    exclude_domains: Annotated[list[str], VERTEX] | None = None
    time_range_filter: Interval | None = None


class DynamicRetrievalConfig(Message):
    """When an old model searches."""

    mode: Annotated[str, Words("DynamicRetrievalConfig.Mode", _RETRIEVALS)] | None = None
    dynamic_threshold: Float | None = None


class GoogleSearchRetrieval(Message):
    """Search by Google, for old models."""

    dynamic_retrieval_config: DynamicRetrievalConfig | None = None


class GoogleMaps(Message):
    """Maps."""

    enable_widget: bool | None = None
    auth_config: Fields | None = None
    grounding_types: Annotated[Fields, VERTEX] | None = None


class FileSearch(Message):
    """Search in uploaded files."""

    file_search_store_names: list[str] | None = None
    top_k: Int32 | None = None
    metadata_filter: str | None = None


class ComputerUse(Message):
    """A screen and a keyboard."""

    environment: Annotated[str, Words("ComputerUse.Environment", _ENVIRONMENTS)] | None = None
    excluded_predefined_functions: list[str] | None = None
    enable_prompt_injection_detection: bool | None = None
    disabled_safety_policies: list[Annotated[str, Words("ComputerUse.SafetyPolicy", _POLICIES)]] | None = None


class EnterpriseWebSearch(Message):
    """Search for enterprises."""

    blocking_confidence: _Confidence | None = None
    exclude_domains: list[str] | None = None


class StreamableHttpTransport(Message):
    """Where an MCP server is."""

    url: str | None = None
    headers: dict[str, str] | None = None
    timeout: str | None = None
    sse_read_timeout: str | None = None
    terminate_on_close: bool | None = None


class McpServer(Message):
    """An MCP server that Google calls."""

    name: str | None = None
    streamable_http_transport: StreamableHttpTransport | None = None


class PartnerSearch(Message):
    """Search by another company."""

    api_key: str | None = None
    custom_configs: Fields | None = None
    enable_data_retention: bool | None = None
    enable_zero_data_retention: bool | None = None


class DataStoreSpec(Message):
    """A store of an engine."""

    data_store: str | None = None
    filter: str | None = None


class VertexAISearch(Message):
    """Search in a data store."""

    datastore: str | None = None
    engine: str | None = None
    max_results: Int32 | None = None
    filter: str | None = None
    data_store_specs: list[DataStoreSpec] | None = None


class RagResource(Message):
    """A part of a corpus."""

    rag_corpus: str | None = None
    rag_file_ids: list[str] | None = None


class VertexRagStore(Message):
    """Retrieval from corpora."""

    rag_corpora: list[str] | None = None
    rag_resources: list[RagResource] | None = None
    rag_retrieval_config: Fields | None = None
    similarity_top_k: Int32 | None = None
    vector_distance_threshold: Double | None = None
    store_context: bool | None = None


class Retrieval(Message):
    """Retrieval from the caller's own data."""

    disable_attribution: bool | None = None
    vertex_ai_search: VertexAISearch | None = None
    vertex_rag_store: VertexRagStore | None = None
    external_api: Fields | None = None


class Tool(Message):
    """Functions, or something Google runs itself."""

    function_declarations: list[FunctionDeclaration] | None = None
    google_search: GoogleSearch | None = None
    google_search_retrieval: GoogleSearchRetrieval | None = None
    code_execution: Nothing | None = None
    url_context: Nothing | None = None
    google_maps: GoogleMaps | None = None
    computer_use: ComputerUse | None = None
    file_search: Annotated[FileSearch, STUDIO] | None = None
    mcp_servers: Annotated[list[McpServer], STUDIO] | None = None
    retrieval: Annotated[Retrieval, VERTEX] | None = None
    enterprise_web_search: Annotated[EnterpriseWebSearch, VERTEX] | None = None
    parallel_ai_search: Annotated[PartnerSearch, VERTEX] | None = None
    exa_ai_search: Annotated[PartnerSearch, VERTEX] | None = None


class FunctionCallingConfig(Message):
    """How free the model is to call functions."""

    mode: Annotated[str, Words("FunctionCallingConfig.Mode", _MODES)] | None = None
    allowed_function_names: list[str] | None = None
    stream_function_call_arguments: Annotated[bool, VERTEX] | None = None


class LatLng(Message):
    """A place."""

    latitude: Double | None = None
    longitude: Double | None = None


class RetrievalConfig(Message):
    """From where and in which language to look."""

    lat_lng: LatLng | None = None
    language_code: str | None = None


class ToolConfig(Message):
    """How tools are used."""

    function_calling_config: FunctionCallingConfig | None = None
    retrieval_config: RetrievalConfig | None = None
    include_server_side_tool_invocations: Annotated[bool, STUDIO] | None = None


def server_tools(tools: list[Tool]) -> list[str]:
    """Return the names of the tools Google runs itself."""
    return [
        name
        for tool in tools
        for name in Tool.__struct_fields__
        if name != "function_declarations" and getattr(tool, name) is not None
    ]
