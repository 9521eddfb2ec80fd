"""The members of a request as the protos declare them; whatever is not here is an unknown name.

What stands in messages that no rule is about, as in those for speech and retrieval, is not looked at.

Sources: wire/gemini.md sections 2 to 4 and 13, wire/gemini_schema.md section 2, and which members google-genai sends to
which surface.
"""

from dragoman.simulator.apis.gemini.proto import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRUCT,
    VALUE,
    Enum,
    Map,
    Message,
)

PART_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""A part holds one of these."""
_NOTHING = Message("Nothing", {})
_RESOLUTION = Enum("MediaResolution", "UNSPECIFIED LOW MEDIUM HIGH ULTRA_HIGH", prefix="MEDIA_RESOLUTION_")
_PROCESSING = Enum("MediaProcessing", "MEDIA_PROCESSING_UNSPECIFIED STATIC AGENTIC")
_TOOL_TYPE = Enum(
    "ToolType",
    "TOOL_TYPE_UNSPECIFIED GOOGLE_SEARCH_WEB GOOGLE_SEARCH_IMAGE URL_CONTEXT GOOGLE_MAPS FILE_SEARCH MEDIA_PROCESSING",
)
_BLOB = Message("Blob", {"mimeType=": str, "data=": BYTES, "displayName": str})
_FILE = Message("FileData", {"mimeType": str, "fileUri=": str, "displayName": str})
_CALL = Message(
    "FunctionCall",
    {"name=": str, "args": STRUCT},
    vertex={"partialArgs": [Message("PartialArg")], "willContinue": bool},
)
_CALL.add({"id": str}, "studio", "vertex")
_RESULT_PART = Message(
    "FunctionResponsePart",
    {"inlineData": _BLOB, "fileData": _FILE},
    studio={"mediaProcessing": _PROCESSING},
    oneof=("data", ("inlineData", "fileData")),
)
_RESULT = Message(
    "FunctionResponse",
    {
        "name=": str,
        "response": STRUCT,
        "parts": [_RESULT_PART],
        "scheduling": Enum("FunctionResponse.Scheduling", "SCHEDULING_UNSPECIFIED SILENT WHEN_IDLE INTERRUPT"),
    },
    studio={"willContinue": bool},
)
_RESULT.add({"id": str}, "studio", "vertex")
_CODE = Message(
    "ExecutableCode",
    {"language": Enum("ExecutableCode.Language", "LANGUAGE_UNSPECIFIED PYTHON"), "code": str, "id": str},
)
_OUTCOME = Enum("CodeExecutionResult.Outcome", "UNSPECIFIED OK FAILED DEADLINE_EXCEEDED", prefix="OUTCOME_")
_OFFSETS = {"startOffset": str, "endOffset": str}
_PART = Message(
    "Part",
    {
        "text": str,
        "inlineData": _BLOB,
        "fileData": _FILE,
        "functionCall": _CALL,
        "functionResponse": _RESULT,
        "executableCode": _CODE,
        "codeExecutionResult": Message("CodeExecutionResult", {"outcome": _OUTCOME, "output": str, "id": str}),
        "thought": bool,
        "thoughtSignature": BYTES,
        "videoMetadata": Message("VideoMetadata", {**_OFFSETS, "fps": DOUBLE}),
        "mediaResolution": Message("PartMediaResolution", {"level": _RESOLUTION, "numTokens": INT32}),
        "mediaProcessing": _PROCESSING,
        "audioTranscription": Message("Transcription"),
        "speechMetadata": Message("SpeechMetadata"),
    },
    studio={
        "toolCall": Message("ToolCall", {"id": str, "toolType": _TOOL_TYPE, "args": STRUCT}),
        "toolResponse": Message("ToolResponse", {"id": str, "toolType": _TOOL_TYPE, "response": STRUCT}),
        "partMetadata": STRUCT,
    },
    oneof=("data", PART_DATA),
)
_CONTENT = Message("Content", {"role": str, "parts": [_PART]})

SCHEMA = Message(
    "Schema",
    {
        "type": Enum("Type", "TYPE_UNSPECIFIED STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL"),
        **dict.fromkeys(("format", "title", "description", "pattern"), str),
        **dict.fromkeys(("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"), INT64),
        **dict.fromkeys(("minimum", "maximum"), DOUBLE),
        **{name: [str] for name in ("enum", "required", "propertyOrdering")},
        **dict.fromkeys(("example", "default"), VALUE),
        "nullable": bool,
    },
    vertex={"additionalProperties": VALUE, "ref": str},
)
"""The subset of OpenAPI's schemas."""
SCHEMA.add({"items": SCHEMA, "properties": Map(SCHEMA), "anyOf": [SCHEMA]})
SCHEMA.add({"defs": Map(SCHEMA)}, "vertex", "vertex v1")
_FUNCTION = Message(
    "FunctionDeclaration",
    {
        "name=": str,
        "description": str,
        "parameters": SCHEMA,
        "parametersJsonSchema": VALUE,
        "response": SCHEMA,
        "responseJsonSchema": VALUE,
        "behavior": Enum("FunctionDeclaration.Behavior", "UNSPECIFIED BLOCKING NON_BLOCKING"),
    },
)
_CONFIDENCE = Enum(
    "PhishBlockThreshold",
    "PHISH_BLOCK_THRESHOLD_UNSPECIFIED BLOCK_LOW_AND_ABOVE BLOCK_MEDIUM_AND_ABOVE BLOCK_HIGH_AND_ABOVE "
    "BLOCK_HIGHER_AND_ABOVE BLOCK_VERY_HIGH_AND_ABOVE BLOCK_ONLY_EXTREMELY_HIGH",
)
_SEARCH = Message(
    "GoogleSearch",
    {
        "searchTypes": Message("SearchTypes", {"webSearch": _NOTHING, "imageSearch": _NOTHING}),
        "timeRangeFilter": Message("Interval", {"startTime": str, "endTime": str}),
    },
    vertex={"blockingConfidence": _CONFIDENCE, "excludeDomains": [str]},
)
TOOL = Message(
    "Tool",
    {
        "functionDeclarations": [_FUNCTION],
        "googleSearch": _SEARCH,
        "googleSearchRetrieval": Message("GoogleSearchRetrieval"),
        "codeExecution": _NOTHING,
        "urlContext": _NOTHING,
        "googleMaps": Message(
            "GoogleMaps", {"enableWidget": bool, "authConfig": STRUCT}, vertex={"groundingTypes": STRUCT}
        ),
        "computerUse": Message("ComputerUse"),
    },
    studio={
        "fileSearch": Message("FileSearch", {"fileSearchStoreNames": [str], "topK": INT32, "metadataFilter": str}),
        "mcpServers": [Message("McpServer")],
    },
    vertex={
        "retrieval": Message("Retrieval"),
        "enterpriseWebSearch": Message("EnterpriseWebSearch"),
        "parallelAiSearch": Message("PartnerSearch"),
        "exaAiSearch": Message("PartnerSearch"),
    },
)
_CALLING = Message(
    "FunctionCallingConfig",
    {
        "mode": Enum("FunctionCallingConfig.Mode", "MODE_UNSPECIFIED AUTO ANY NONE VALIDATED"),
        "allowedFunctionNames": [str],
    },
    vertex={"streamFunctionCallArguments": bool},
)
_PLACE = Message("LatLng", {"latitude": DOUBLE, "longitude": DOUBLE})
_TOOL_CONFIG = Message(
    "ToolConfig",
    {
        "functionCallingConfig": _CALLING,
        "retrievalConfig": Message("RetrievalConfig", {"latLng": _PLACE, "languageCode": str}),
    },
    studio={"includeServerSideToolInvocations": bool},
)

_IMAGE = Message(
    "ImageConfig",
    {"aspectRatio": str, "imageSize": str},
    vertex={
        "personGeneration": str,
        "prominentPeople": str,
        "outputMimeType": str,
        "outputCompressionQuality": INT32,
        "imageOutputOptions": STRUCT,
    },
)
_THINKING = Message(
    "ThinkingConfig",
    {
        "includeThoughts": bool,
        "thinkingBudget": INT32,
        "thinkingLevel": Enum("ThinkingConfig.ThinkingLevel", "THINKING_LEVEL_UNSPECIFIED MINIMAL LOW MEDIUM HIGH"),
    },
)
_CONFIG = Message(
    "GenerationConfig",
    {
        **dict.fromkeys(("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty"), FLOAT),
        **dict.fromkeys(("candidateCount", "maxOutputTokens", "seed", "logprobs"), INT32),
        "stopSequences": [str],
        "responseLogprobs": bool,
        "responseMimeType": str,
        "responseSchema": SCHEMA,
        "responseJsonSchema": VALUE,
        "responseModalities": [Enum("GenerationConfig.Modality", "MODALITY_UNSPECIFIED TEXT IMAGE AUDIO VIDEO")],
        "responseFormat": [Message("ResponseFormat")],
        "thinkingConfig": _THINKING,
        "mediaResolution": _RESOLUTION,
        "speechConfig": Message("SpeechConfig"),
        "imageConfig": _IMAGE,
        "translationConfig": Message("TranslationConfig"),
        "audioTranscriptionConfig": Message("AudioTranscriptionConfig"),
        "enableAffectiveDialog": bool,
    },
    studio={"enableEnhancedCivicAnswers": bool},
    vertex={"audioTimestamp": bool, "routingConfig": STRUCT, "modelConfig": STRUCT},
)
_CATEGORY = Enum(
    "HarmCategory",
    "UNSPECIFIED HARASSMENT HATE_SPEECH SEXUALLY_EXPLICIT DANGEROUS_CONTENT CIVIC_INTEGRITY JAILBREAK IMAGE_HATE "
    "IMAGE_DANGEROUS_CONTENT IMAGE_HARASSMENT IMAGE_SEXUALLY_EXPLICIT",
    prefix="HARM_CATEGORY_",
)
_THRESHOLD = Enum(
    "SafetySetting.HarmBlockThreshold",
    "HARM_BLOCK_THRESHOLD_UNSPECIFIED BLOCK_LOW_AND_ABOVE BLOCK_MEDIUM_AND_ABOVE BLOCK_ONLY_HIGH BLOCK_NONE OFF",
)
_SAFETY = Message(
    "SafetySetting",
    {"category": _CATEGORY, "threshold": _THRESHOLD},
    vertex={"method": Enum("SafetySetting.HarmBlockMethod", "HARM_BLOCK_METHOD_UNSPECIFIED SEVERITY PROBABILITY")},
)
REQUEST = Message(
    "GenerateContentRequest",
    {
        "model": str,
        "contents": [_CONTENT],
        "systemInstruction": _CONTENT,
        "tools": [TOOL],
        "toolConfig": _TOOL_CONFIG,
        "safetySettings": [_SAFETY],
        "generationConfig": _CONFIG,
        "cachedContent": str,
        "continuationToken": BYTES,
    },
    studio={"serviceTier": Enum("ServiceTier", "unspecified flex standard priority"), "store": bool},
    vertex={"labels": Map(str), "modelArmorConfig": Message("ModelArmorConfig"), "outputConfig": STRUCT},
)
COUNT_REQUEST = Message(
    "CountTokensRequest",
    {"model": str, "contents": [_CONTENT]},
    studio={"generateContentRequest": REQUEST},
    vertex={"systemInstruction": _CONTENT, "tools": [TOOL], "generationConfig": _CONFIG},
)
