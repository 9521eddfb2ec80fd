"""The fields of a request as the protos declare them; any other field is an unknown name.

Messages that no rule is about, such as those for speech and retrieval, are not checked.

Sources: wire/gemini.md sections 2 to 4 and 13, wire/gemini_schema.md section 2, and the fields that google-genai sends
to each surface.
"""

from dragoman.simulator.apis.gemini.proto import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRUCT,
    VALUE,
    ProtoEnum,
    ProtoMap,
    ProtoMessage,
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
"""A part has one of these fields."""
_NOTHING = ProtoMessage("Nothing", {})
_RESOLUTION = ProtoEnum("MediaResolution", "UNSPECIFIED LOW MEDIUM HIGH ULTRA_HIGH", prefix="MEDIA_RESOLUTION_")
_PROCESSING = ProtoEnum("MediaProcessing", "MEDIA_PROCESSING_UNSPECIFIED STATIC AGENTIC")
_TOOL_TYPE = ProtoEnum(
    "ToolType",
    "TOOL_TYPE_UNSPECIFIED GOOGLE_SEARCH_WEB GOOGLE_SEARCH_IMAGE URL_CONTEXT GOOGLE_MAPS FILE_SEARCH MEDIA_PROCESSING",
)
_BLOB = ProtoMessage("Blob", {"mimeType=": str, "data=": BYTES, "displayName": str})
_FILE = ProtoMessage("FileData", {"mimeType": str, "fileUri=": str, "displayName": str})
_CALL = ProtoMessage(
    "FunctionCall",
    {"name=": str, "args": STRUCT},
    vertex={"partialArgs": [ProtoMessage("PartialArg")], "willContinue": bool},
)
_CALL.add({"id": str}, "studio", "vertex")
_RESULT_PART = ProtoMessage(
    "FunctionResponsePart",
    {"inlineData": _BLOB, "fileData": _FILE},
    studio={"mediaProcessing": _PROCESSING},
    oneof=("data", ("inlineData", "fileData")),
)
_RESULT = ProtoMessage(
    "FunctionResponse",
    {
        "name=": str,
        "response": STRUCT,
        "parts": [_RESULT_PART],
        "scheduling": ProtoEnum("FunctionResponse.Scheduling", "SCHEDULING_UNSPECIFIED SILENT WHEN_IDLE INTERRUPT"),
    },
    studio={"willContinue": bool},
)
_RESULT.add({"id": str}, "studio", "vertex")
_CODE = ProtoMessage(
    "ExecutableCode",
    {"language": ProtoEnum("ExecutableCode.Language", "LANGUAGE_UNSPECIFIED PYTHON"), "code": str, "id": str},
)
_OUTCOME = ProtoEnum("CodeExecutionResult.Outcome", "UNSPECIFIED OK FAILED DEADLINE_EXCEEDED", prefix="OUTCOME_")
_OFFSETS = {"startOffset": str, "endOffset": str}
_PART = ProtoMessage(
    "Part",
    {
        "text": str,
        "inlineData": _BLOB,
        "fileData": _FILE,
        "functionCall": _CALL,
        "functionResponse": _RESULT,
        "executableCode": _CODE,
        "codeExecutionResult": ProtoMessage("CodeExecutionResult", {"outcome": _OUTCOME, "output": str, "id": str}),
        "thought": bool,
        "thoughtSignature": BYTES,
        "videoMetadata": ProtoMessage("VideoMetadata", {**_OFFSETS, "fps": DOUBLE}),
        "mediaResolution": ProtoMessage("PartMediaResolution", {"level": _RESOLUTION, "numTokens": INT32}),
        "mediaProcessing": _PROCESSING,
        "audioTranscription": ProtoMessage("Transcription"),
        "speechMetadata": ProtoMessage("SpeechMetadata"),
    },
    studio={
        "toolCall": ProtoMessage("ToolCall", {"id": str, "toolType": _TOOL_TYPE, "args": STRUCT}),
        "toolResponse": ProtoMessage("ToolResponse", {"id": str, "toolType": _TOOL_TYPE, "response": STRUCT}),
        "partMetadata": STRUCT,
    },
    oneof=("data", PART_DATA),
)
_CONTENT = ProtoMessage("Content", {"role": str, "parts": [_PART]})

SCHEMA = ProtoMessage(
    "Schema",
    {
        "type": ProtoEnum("Type", "TYPE_UNSPECIFIED STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL"),
        **dict.fromkeys(("format", "title", "description", "pattern"), str),
        **dict.fromkeys(("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"), INT64),
        **dict.fromkeys(("minimum", "maximum"), DOUBLE),
        **{name: [str] for name in ("enum", "required", "propertyOrdering")},
        **dict.fromkeys(("example", "default"), VALUE),
        "nullable": bool,
    },
    vertex={"additionalProperties": VALUE, "ref": str},
)
"""Google's subset of OpenAPI schemas."""
SCHEMA.add({"items": SCHEMA, "properties": ProtoMap(SCHEMA), "anyOf": [SCHEMA]})
SCHEMA.add({"defs": ProtoMap(SCHEMA)}, "vertex", "vertex v1")
_FUNCTION = ProtoMessage(
    "FunctionDeclaration",
    {
        "name=": str,
        "description": str,
        "parameters": SCHEMA,
        "parametersJsonSchema": VALUE,
        "response": SCHEMA,
        "responseJsonSchema": VALUE,
        "behavior": ProtoEnum("FunctionDeclaration.Behavior", "UNSPECIFIED BLOCKING NON_BLOCKING"),
    },
)
_CONFIDENCE = ProtoEnum(
    "PhishBlockThreshold",
    "PHISH_BLOCK_THRESHOLD_UNSPECIFIED BLOCK_LOW_AND_ABOVE BLOCK_MEDIUM_AND_ABOVE BLOCK_HIGH_AND_ABOVE "
    "BLOCK_HIGHER_AND_ABOVE BLOCK_VERY_HIGH_AND_ABOVE BLOCK_ONLY_EXTREMELY_HIGH",
)
_SEARCH = ProtoMessage(
    "GoogleSearch",
    {
        "searchTypes": ProtoMessage("SearchTypes", {"webSearch": _NOTHING, "imageSearch": _NOTHING}),
        "timeRangeFilter": ProtoMessage("Interval", {"startTime": str, "endTime": str}),
    },
    vertex={"blockingConfidence": _CONFIDENCE, "excludeDomains": [str]},
)
TOOL = ProtoMessage(
    "Tool",
    {
        "functionDeclarations": [_FUNCTION],
        "googleSearch": _SEARCH,
        "googleSearchRetrieval": ProtoMessage("GoogleSearchRetrieval"),
        "codeExecution": _NOTHING,
        "urlContext": _NOTHING,
        "googleMaps": ProtoMessage(
            "GoogleMaps", {"enableWidget": bool, "authConfig": STRUCT}, vertex={"groundingTypes": STRUCT}
        ),
        "computerUse": ProtoMessage("ComputerUse"),
    },
    studio={
        "fileSearch": ProtoMessage("FileSearch", {"fileSearchStoreNames": [str], "topK": INT32, "metadataFilter": str}),
        "mcpServers": [ProtoMessage("McpServer")],
    },
    vertex={
        "retrieval": ProtoMessage("Retrieval"),
        "enterpriseWebSearch": ProtoMessage("EnterpriseWebSearch"),
        "parallelAiSearch": ProtoMessage("PartnerSearch"),
        "exaAiSearch": ProtoMessage("PartnerSearch"),
    },
)
_CALLING = ProtoMessage(
    "FunctionCallingConfig",
    {
        "mode": ProtoEnum("FunctionCallingConfig.Mode", "MODE_UNSPECIFIED AUTO ANY NONE VALIDATED"),
        "allowedFunctionNames": [str],
    },
    vertex={"streamFunctionCallArguments": bool},
)
_PLACE = ProtoMessage("LatLng", {"latitude": DOUBLE, "longitude": DOUBLE})
_TOOL_CONFIG = ProtoMessage(
    "ToolConfig",
    {
        "functionCallingConfig": _CALLING,
        "retrievalConfig": ProtoMessage("RetrievalConfig", {"latLng": _PLACE, "languageCode": str}),
    },
    studio={"includeServerSideToolInvocations": bool},
)

_IMAGE = ProtoMessage(
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
_THINKING = ProtoMessage(
    "ThinkingConfig",
    {
        "includeThoughts": bool,
        "thinkingBudget": INT32,
        "thinkingLevel": ProtoEnum(
            "ThinkingConfig.ThinkingLevel", "THINKING_LEVEL_UNSPECIFIED MINIMAL LOW MEDIUM HIGH"
        ),
    },
)
_CONFIG = ProtoMessage(
    "GenerationConfig",
    {
        **dict.fromkeys(("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty"), FLOAT),
        **dict.fromkeys(("candidateCount", "maxOutputTokens", "seed", "logprobs"), INT32),
        "stopSequences": [str],
        "responseLogprobs": bool,
        "responseMimeType": str,
        "responseSchema": SCHEMA,
        "responseJsonSchema": VALUE,
        "responseModalities": [ProtoEnum("GenerationConfig.Modality", "MODALITY_UNSPECIFIED TEXT IMAGE AUDIO VIDEO")],
        "responseFormat": [ProtoMessage("ResponseFormat")],
        "thinkingConfig": _THINKING,
        "mediaResolution": _RESOLUTION,
        "speechConfig": ProtoMessage("SpeechConfig"),
        "imageConfig": _IMAGE,
        "translationConfig": ProtoMessage("TranslationConfig"),
        "audioTranscriptionConfig": ProtoMessage("AudioTranscriptionConfig"),
        "enableAffectiveDialog": bool,
    },
    studio={"enableEnhancedCivicAnswers": bool},
    vertex={"audioTimestamp": bool, "routingConfig": STRUCT, "modelConfig": STRUCT},
)
_CATEGORY = ProtoEnum(
    "HarmCategory",
    "UNSPECIFIED HARASSMENT HATE_SPEECH SEXUALLY_EXPLICIT DANGEROUS_CONTENT CIVIC_INTEGRITY JAILBREAK IMAGE_HATE "
    "IMAGE_DANGEROUS_CONTENT IMAGE_HARASSMENT IMAGE_SEXUALLY_EXPLICIT",
    prefix="HARM_CATEGORY_",
)
_THRESHOLD = ProtoEnum(
    "SafetySetting.HarmBlockThreshold",
    "HARM_BLOCK_THRESHOLD_UNSPECIFIED BLOCK_LOW_AND_ABOVE BLOCK_MEDIUM_AND_ABOVE BLOCK_ONLY_HIGH BLOCK_NONE OFF",
)
_SAFETY = ProtoMessage(
    "SafetySetting",
    {"category": _CATEGORY, "threshold": _THRESHOLD},
    vertex={"method": ProtoEnum("SafetySetting.HarmBlockMethod", "HARM_BLOCK_METHOD_UNSPECIFIED SEVERITY PROBABILITY")},
)
REQUEST = ProtoMessage(
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
    studio={"serviceTier": ProtoEnum("ServiceTier", "unspecified flex standard priority"), "store": bool},
    vertex={"labels": ProtoMap(str), "modelArmorConfig": ProtoMessage("ModelArmorConfig"), "outputConfig": STRUCT},
)
COUNT_REQUEST = ProtoMessage(
    "CountTokensRequest",
    {"model": str, "contents": [_CONTENT]},
    studio={"generateContentRequest": REQUEST},
    vertex={"systemInstruction": _CONTENT, "tools": [TOOL], "generationConfig": _CONFIG},
)
