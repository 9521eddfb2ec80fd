"""The members of a request as the protos declare them; whatever is not here is an unknown name.

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
_PARTIAL_ARG = Message(
    "PartialArg",
    {
        "jsonPath": str,
        "nullValue": Enum("NullValue", "NULL_VALUE"),
        "numberValue": DOUBLE,
        "stringValue": str,
        "boolValue": bool,
        "willContinue": bool,
    },
    oneof=("delta", ("nullValue", "numberValue", "stringValue", "boolValue")),
)
_CALL = Message(
    "FunctionCall",
    {"name=": str, "args": STRUCT},
    vertex={"partialArgs": [_PARTIAL_ARG], "willContinue": bool},
    not_v1={"id": str},
)
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
    not_v1={"id": str},
)
_CODE = Message(
    "ExecutableCode",
    {"language": Enum("ExecutableCode.Language", "LANGUAGE_UNSPECIFIED PYTHON"), "code": str, "id": str},
)
_OUTCOME = Enum("CodeExecutionResult.Outcome", "UNSPECIFIED OK FAILED DEADLINE_EXCEEDED", prefix="OUTCOME_")
_OFFSETS = {"startOffset": str, "endOffset": str}
_TRANSCRIPTION = Message(
    "Transcription",
    {
        "text": str,
        "finished": bool,
        "languageCode": str,
        "speakerLabel": str,
        "words": [Message("WordInfo", {"word": str, **_OFFSETS})],
        **_OFFSETS,
    },
)
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
        "audioTranscription": _TRANSCRIPTION,
        "speechMetadata": Message("SpeechMetadata", {"speaker": str, "style": str}),
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
_RETRIEVAL_MODE = Enum("DynamicRetrievalConfig.Mode", "MODE_UNSPECIFIED MODE_DYNAMIC")
_DYNAMIC = Message("DynamicRetrievalConfig", {"mode": _RETRIEVAL_MODE, "dynamicThreshold": FLOAT})
_COMPUTER = Message(
    "ComputerUse",
    {
        "environment": Enum("ComputerUse.Environment", "UNSPECIFIED BROWSER MOBILE DESKTOP", prefix="ENVIRONMENT_"),
        "excludedPredefinedFunctions": [str],
        "enablePromptInjectionDetection": bool,
        "disabledSafetyPolicies": [
            Enum(
                "ComputerUse.SafetyPolicy",
                "SAFETY_POLICY_UNSPECIFIED FINANCIAL_TRANSACTIONS SENSITIVE_DATA_MODIFICATION COMMUNICATION_TOOL "
                "ACCOUNT_CREATION DATA_MODIFICATION USER_CONSENT_MANAGEMENT LEGAL_TERMS_AND_AGREEMENTS",
            )
        ],
    },
)
_TRANSPORT = Message(
    "StreamableHttpTransport",
    {"url": str, "headers": Map(str), "timeout": str, "sseReadTimeout": str, "terminateOnClose": bool},
)
_PARTNER_SEARCH = Message(
    "PartnerSearch",
    {"apiKey": str, "customConfigs": STRUCT, "enableDataRetention": bool, "enableZeroDataRetention": bool},
)
_DATA_STORES = Message(
    "VertexAISearch",
    {
        "datastore": str,
        "engine": str,
        "maxResults": INT32,
        "filter": str,
        "dataStoreSpecs": [Message("DataStoreSpec", {"dataStore": str, "filter": str})],
    },
)
_RAG_STORE = Message(
    "VertexRagStore",
    {
        "ragCorpora": [str],
        "ragResources": [Message("RagResource", {"ragCorpus": str, "ragFileIds": [str]})],
        "ragRetrievalConfig": STRUCT,
        "similarityTopK": INT32,
        "vectorDistanceThreshold": DOUBLE,
        "storeContext": bool,
    },
)
TOOL = Message(
    "Tool",
    {
        "functionDeclarations": [_FUNCTION],
        "googleSearch": _SEARCH,
        "googleSearchRetrieval": Message("GoogleSearchRetrieval", {"dynamicRetrievalConfig": _DYNAMIC}),
        "codeExecution": _NOTHING,
        "urlContext": _NOTHING,
        "googleMaps": Message(
            "GoogleMaps", {"enableWidget": bool, "authConfig": STRUCT}, vertex={"groundingTypes": STRUCT}
        ),
        "computerUse": _COMPUTER,
    },
    studio={
        "fileSearch": Message("FileSearch", {"fileSearchStoreNames": [str], "topK": INT32, "metadataFilter": str}),
        "mcpServers": [Message("McpServer", {"name": str, "streamableHttpTransport": _TRANSPORT})],
    },
    vertex={
        "retrieval": Message(
            "Retrieval",
            {
                "disableAttribution": bool,
                "vertexAiSearch": _DATA_STORES,
                "vertexRagStore": _RAG_STORE,
                "externalApi": STRUCT,
            },
        ),
        "enterpriseWebSearch": Message(
            "EnterpriseWebSearch", {"blockingConfidence": _CONFIDENCE, "excludeDomains": [str]}
        ),
        "parallelAiSearch": _PARTNER_SEARCH,
        "exaAiSearch": _PARTNER_SEARCH,
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

_COPIED_VOICE = Message(
    "ReplicatedVoiceConfig",
    {"mimeType": str, "voiceSampleAudio": BYTES},
    studio={
        "consentAudio": BYTES,
        "voiceConsentSignature": Message("VoiceConsentSignature", {"signature": str}),
    },
)
_VOICE = Message(
    "VoiceConfig",
    {
        "prebuiltVoiceConfig": Message("PrebuiltVoiceConfig", {"voiceName": str}),
        "replicatedVoiceConfig": _COPIED_VOICE,
        "voice": str,
    },
)
_SPEAKER = Message("SpeakerVoiceConfig", {"speaker": str, "voiceConfig": _VOICE})
_SPEECH = Message(
    "SpeechConfig",
    {
        "voiceConfig": _VOICE,
        "languageCode": str,
        "multiSpeakerVoiceConfig": Message("MultiSpeakerVoiceConfig", {"speakerVoiceConfigs": [_SPEAKER]}),
    },
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
_DELIVERY = Enum("Delivery", "DELIVERY_UNSPECIFIED INLINE URI")
_RATIO = Enum(
    "AspectRatio",
    "UNSPECIFIED ONE_BY_ONE TWO_BY_THREE THREE_BY_TWO THREE_BY_FOUR FOUR_BY_THREE FOUR_BY_FIVE FIVE_BY_FOUR "
    "NINE_BY_SIXTEEN SIXTEEN_BY_NINE TWENTY_ONE_BY_NINE ONE_BY_EIGHT EIGHT_BY_ONE ONE_BY_FOUR FOUR_BY_ONE",
    prefix="ASPECT_RATIO_",
)
_SIZE = Enum("ImageSize", "UNSPECIFIED FIVE_TWELVE ONE_K TWO_K FOUR_K", prefix="IMAGE_SIZE_")
_SHOWN = {"delivery": _DELIVERY, "aspectRatio": _RATIO}
_FORMAT = Message(
    "ResponseFormat",
    {
        "text": Message("TextResponseFormat", {"mimeType": str, "schema": VALUE}),
        "audio": Message(
            "AudioResponseFormat", {"mimeType": str, "delivery": _DELIVERY, "bitRate": INT32, "sampleRate": INT32}
        ),
        "image": Message("ImageResponseFormat", {"mimeType": str, **_SHOWN, "imageSize": _SIZE}),
        "video": Message("VideoResponseFormat", {**_SHOWN, "duration": str, "gcsUri": str, "resolution": str}),
    },
)
_TRANSCRIPTION_CONFIG = Message(
    "AudioTranscriptionConfig",
    {
        "languageCodes": [str],
        "languageAuto": _NOTHING,
        "languageHints": Message("LanguageHints", {"languageCodes": [str]}),
        "customVocabulary": [str],
        "adaptationPhrases": [str],
        "wordTimestamp": bool,
        "diarization": bool,
        "mode": Enum("AudioTranscriptionConfig.Mode", "MODE_UNSPECIFIED VERBATIM SMART"),
        "sourceText": str,
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
        "responseFormat": [_FORMAT],
        "thinkingConfig": _THINKING,
        "mediaResolution": _RESOLUTION,
        "speechConfig": _SPEECH,
        "imageConfig": _IMAGE,
        "translationConfig": Message("TranslationConfig", {"targetLanguageCode": str, "echoTargetLanguage": bool}),
        "audioTranscriptionConfig": _TRANSCRIPTION_CONFIG,
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
_ARMOR = Message("ModelArmorConfig", {"promptTemplateName": str, "responseTemplateName": str})
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
    vertex={"labels": Map(str), "modelArmorConfig": _ARMOR, "outputConfig": STRUCT},
)
COUNT_REQUEST = Message(
    "CountTokensRequest",
    {"model": str, "contents": [_CONTENT]},
    studio={"generateContentRequest": REQUEST},
    vertex={"systemInstruction": _CONTENT, "tools": [TOOL], "generationConfig": _CONFIG},
)
