"""One request of each dialect that uses all of its features, to find the losses of each pair of dialects."""

from typing import Any

_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_PNG = "iVBORw0KGgo="

REQUESTS: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "gpt-4.1",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": "Look.", "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file_1"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": "Two calls.",
                "reasoning_content": "I should look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Ljubljana"}'},
                        "extra_content": {"google": {"thought_signature": "c2ln"}},
                    },
                    {"id": "call_2", "type": "custom", "custom": {"name": "calc", "input": "2+3"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "5"}]},
            {"role": "system", "content": "Now in German."},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "user", "content": "Please."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": "Weather.", "parameters": _SCHEMA, "strict": True},
            },
            {
                "type": "custom",
                "custom": {
                    "name": "calc",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}},
                },
            },
        ],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]},
        },
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "description": "An answer.", "schema": _SCHEMA, "strict": True},
        },
        "reasoning_effort": "minimal",
        "verbosity": "low",
        "max_completion_tokens": 500,
        "temperature": 1.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "top_logprobs": 2,
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": True},
        "store": True,
        "metadata": {"run": "1"},
        "service_tier": "flex",
        "safety_identifier": "user-1",
        "prompt_cache_key": "key",
        "prediction": {"type": "content", "content": "x"},
        "modalities": ["text", "audio"],
    },
    "responses": {
        "model": "gpt-5.6",
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"},
                    {"type": "input_image", "file_id": "file_1", "detail": "low"},
                    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "I should look."}],
                "encrypted_content": "gAAAA",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "weather",
                "namespace": "skies",
                "arguments": '{"city": "Ljubljana"}',
            },
            {"type": "custom_tool_call", "call_id": "call_2", "name": "calc", "input": "2+3"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [
                    {"type": "input_text", "text": "rain"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{_PNG}", "detail": "auto"},
                ],
            },
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "5"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "role": "developer", "content": "Now in German."},
            {"type": "item_reference", "id": "rs_0"},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "refusal", "refusal": "No."}],
            },
            {"role": "user", "content": "Please."},
        ],
        "tools": [
            {
                "type": "namespace",
                "name": "skies",
                "description": "The sky.",
                "tools": [{"type": "function", "name": "weather", "parameters": _SCHEMA, "strict": True}],
            },
            {"type": "custom", "name": "calc", "format": {"type": "text"}},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "mcp", "server_label": "m", "server_url": "https://example.com/mcp"},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tool_calls": 3,
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": _SCHEMA, "strict": True},
            "verbosity": "low",
        },
        "reasoning": {"effort": "xhigh", "summary": "auto", "context": "auto"},
        "max_output_tokens": 500,
        "temperature": 0.3,
        "top_p": 0.9,
        "top_logprobs": 2,
        "stream": True,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "store": True,
        "truncation": "auto",
        "metadata": {"run": "1"},
        "service_tier": "flex",
        "safety_identifier": "user-1",
        "prompt_cache_key": "key",
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    },
    "messages": {
        "model": "claude-opus-5",
        "max_tokens": 500,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
                        "title": "a.pdf",
                        "context": "A report.",
                        "citations": {"enabled": True},
                    },
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I should look.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Ljubljana"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "no sky"},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": _PNG},
                            },
                        ],
                    },
                    {"type": "text", "text": "Please."},
                ],
            },
            {"role": "system", "content": "Now in German."},
        ],
        "tools": [
            {
                "name": "weather",
                "description": "Weather.",
                "input_schema": _SCHEMA,
                "strict": True,
                "input_examples": [{"city": "Ljubljana"}],
                "defer_loading": True,
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
            {"type": "bash_20250124", "name": "bash"},
        ],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "max", "format": {"type": "json_schema", "schema": _SCHEMA}},
        "stop_sequences": ["END"],
        "temperature": 0.3,
        "top_p": 0.9,
        "top_k": 40,
        "stream": True,
        "metadata": {"user_id": "user-1"},
        "service_tier": "standard_only",
        "container": "c_1",
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Look."},
                    {"inlineData": {"mimeType": "image/png", "data": _PNG}, "mediaResolution": {"level": "HIGH"}},
                    {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}, "videoMetadata": {"fps": 1}},
                    {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}},
                    {
                        "fileData": {
                            "mimeType": "image/png",
                            "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/1",
                        }
                    },
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I should look.", "thought": True, "thoughtSignature": "c2ln"},
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                    {"text": "One call.", "thoughtSignature": "c2ln"},
                    {
                        "functionCall": {"id": "f1", "name": "weather", "args": {"city": "Ljubljana"}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "f1",
                            "name": "weather",
                            "response": {"error": "no sky"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": _PNG, "displayName": "sky"}}],
                        }
                    }
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Weather.", "parametersJsonSchema": _SCHEMA, "response": {}},
                    {
                        "name": "old",
                        "description": "Old form.",
                        "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}},
                    },
                ]
            },
            {"googleSearch": {}},
            {"googleMaps": {}},
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["weather", "old"]},
            "retrievalConfig": {"languageCode": "de"},
        },
        "generationConfig": {
            "temperature": 1.5,
            "topP": 0.9,
            "topK": 40,
            "candidateCount": 1,
            "maxOutputTokens": 500,
            "stopSequences": ["END"],
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "responseMimeType": "application/json",
            "responseJsonSchema": _SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000},
            "responseModalities": ["TEXT", "IMAGE"],
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "labels": {"run": "1"},
    },
}

MODELS = {
    "chat": "a compatible server's model",
    "responses": "gpt-6-luna",
    "messages": "claude-opus-5-5",
    "gemini": "gemini-3.8-flash",
}
