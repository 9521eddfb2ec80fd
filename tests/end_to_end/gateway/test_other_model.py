"""A name that is mapped to another model of the client's own dialect: only what that model rejects is changed."""

import json

import httpx2
import pytest

from dragoman.config import UpstreamTable
from server.conftest import in_thread, run_server_gateway

MODELS = {
    "luna": ("openai/gpt-5.6",),
    "five": ("openai/gpt-5",),
    "four": ("openai/gpt-4.1",),
    "local": ("openai/llama-4",),
    "deep": ("openai/deepseek-v4",),
    "rfive": ("responses/gpt-5",),
    "rfour": ("responses/gpt-4.1",),
    "rlocal": ("responses/llama-4",),
    "newest": ("anthropic/claude-opus-5-5",),
    "opus": ("anthropic/claude-opus-4-8",),
    "older": ("anthropic/claude-opus-4-6",),
    "small": ("anthropic/claude-haiku-4-5",),
    "elsewhere": ("anthropic/glm-5",),
    "flash": ("gemini/gemini-3.8-flash",),
    "pro": ("gemini/gemini-2.5-pro",),
    "vflash": ("vertex/gemini-3.8-flash",),
    "vopus": ("vertex-claude/claude-opus-4-8",),
    "assisted": ("assist/gemini-3.8-flash",),
    "gpt-5.1": ("responses/gpt-5.1",),
    "gpt-5": ("openai/gpt-5",),
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
NAMES = {name: target[0].partition("/")[2] for name, target in MODELS.items()}
SEND = {
    "chat": '"messages":[{"role":"user","content":"caf\\u00e9 \u00e9"}]',
    "responses": '"store":false, "input" : "caf\\u00e9 \u00e9"',
    "messages": '"messages":[ {"role":"user","content":"caf\\u00e9 \u00e9"} ]',
    "gemini": '"contents" : [{"role":"user","parts":[{"text":"caf\\u00e9 \u00e9"}]}]',
}
CHAT_TOOLS = '"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]'
CLAUDE_TOOLS = '"tools":[{"name":"f","input_schema":{"type":"object"}}]'
INSTRUCTION = '"system":"Call the tool f."'
# Dialect, alias, the client's parameters, what the upstream gets, the reported pointers, and those that strict refuses.
ROWS = [
    ("chat", "five", '"max_tokens":40', '"max_completion_tokens":40', "/max_completion_tokens /max_tokens", ""),
    ("chat", "five", '"user":"u","temperature" : 0.2', '"user":"u"', "/temperature", "/temperature"),
    ("chat", "five", '"user":"u","top_p":0.5', '"user":"u"', "/top_p", "/top_p"),
    ("chat", "five", '"user":"u","presence_penalty":0', '"user":"u"', "/presence_penalty", ""),
    ("chat", "five", '"user":"u","stop":["a"]', '"user":"u"', "/stop", "/stop"),
    ("chat", "five", '"reasoning_effort" : "max"', '"reasoning_effort" : "high"', *["/reasoning_effort"] * 2),
    ("chat", "four", '"user":"u","reasoning_effort":"low"', '"user":"u"', *["/reasoning_effort"] * 2),
    ("chat", "four", '"user":"u","verbosity":"low"', '"user":"u"', *["/verbosity"] * 2),
    ("chat", "five", '"user":"u","logprobs":true', '"user":"u"', *["/logprobs"] * 2),
    ("chat", "five", '"user":"u","logit_bias":{"5":1}', '"user":"u"', *["/logit_bias"] * 2),
    ("chat", "four", '"max_tokens":40,"temperature":0.2', '"max_tokens":40,"temperature":0.2', "", ""),
    ("chat", "local", '"max_completion_tokens":4', '"max_tokens":4', "/max_completion_tokens /max_tokens", ""),
    ("chat", "deep", CHAT_TOOLS.replace('"f",', '"f","strict" : true,'), CHAT_TOOLS, *["/tools/0/function/strict"] * 2),
    ("chat", "local", '"temperature":1.5,"seed":4', '"temperature":1.5,"seed":4', "", ""),
    (
        "chat",
        "luna",
        f'{CHAT_TOOLS},"reasoning_effort":"high"',
        f'{CHAT_TOOLS},"reasoning_effort":"none"',
        *["/reasoning_effort"] * 2,
    ),
    ("chat", "luna", CHAT_TOOLS, f'{CHAT_TOOLS},"reasoning_effort":"none"', "/reasoning_effort", ""),
    ("responses", "rfive", '"user":"u","temperature":0.2', '"user":"u"', *["/temperature"] * 2),
    ("responses", "rfive", '"user":"u","top_p":0.2', '"user":"u"', *["/top_p"] * 2),
    (
        "responses",
        "rfive",
        '"reasoning":{ "effort":"max", "summary":"auto"}',
        '"reasoning":{ "effort":"high", "summary":"auto"}',
        *["/reasoning/effort"] * 2,
    ),
    ("responses", "rfive", '"max_output_tokens": 8', '"max_output_tokens": 16', *["/max_output_tokens"] * 2),
    ("responses", "rfour", '"user":"u","reasoning":{"effort":"low"}', '"user":"u"', *["/reasoning"] * 2),
    ("responses", "rfour", '"user":"u","include":["reasoning.encrypted_content"]', '"user":"u"', "/include", ""),
    ("responses", "rfive", '"user":"u","top_logprobs":2', '"user":"u"', *["/top_logprobs"] * 2),
    ("responses", "rfour", '"user":"u","text":{"verbosity":"low"}', '"user":"u"', *["/text"] * 2),
    ("messages", "opus", '"max_tokens":50,"temperature":0.2', '"max_tokens":50', *["/temperature"] * 2),
    ("messages", "opus", '"max_tokens":50,"top_p":0.2', '"max_tokens":50', *["/top_p"] * 2),
    ("messages", "opus", '"max_tokens":50,"top_k":2', '"max_tokens":50', *["/top_k"] * 2),
    (
        "messages",
        "opus",
        '"max_tokens":5000, "thinking":{"type":"enabled", "budget_tokens":2000}',
        '"max_tokens":5000, "thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}',
        "/output_config/effort /thinking/budget_tokens /thinking/type",
        "/thinking/budget_tokens",
    ),
    (
        "messages",
        "older",
        '"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000}',
        '"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000}',
        "",
        "",
    ),
    (
        "messages",
        "older",
        '"max_tokens":50,"output_config":{"effort":"xhigh"}',
        '"max_tokens":50,"output_config":{"effort":"max"}',
        *["/output_config/effort"] * 2,
    ),
    (
        "messages",
        "small",
        '"max_tokens":5000,"thinking":{"type":"adaptive"}',
        '"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":3976}',
        "/thinking/budget_tokens /thinking/type",
        "/thinking/type",
    ),
    (
        "messages",
        "small",
        '"max_tokens":5000,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}',
        '"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":1024}',
        "/output_config/effort /thinking/budget_tokens /thinking/type",
        "/output_config/effort",
    ),
    (
        "messages",
        "newest",
        '"max_tokens":50,"thinking":{"type":"disabled"}',
        '"max_tokens":50,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}',
        "/output_config/effort /thinking/type",
        "/thinking/type",
    ),
    ("messages", "small", '"max_tokens":100000', '"max_tokens":64000', *["/max_tokens"] * 2),
    (
        "messages",
        "newest",
        f'"max_tokens":50,{CLAUDE_TOOLS},"tool_choice":{{"type":"tool","name":"f"}}',
        f'"max_tokens":50,{CLAUDE_TOOLS},"tool_choice":{{"type":"auto"}},{INSTRUCTION}',
        "/system /tool_choice",
        "/tool_choice",
    ),
    *(
        ("gemini", model, f'"generationConfig":{{{old}}}', f'"generationConfig":{{{new}}}', where, refused)
        for model, old, new, where, refused in (
            (
                "flash",
                '"seed":1, "temperature":0.2',
                '"seed":1',
                *["/generationConfig/temperature"] * 2,
            ),
            ("vflash", '"seed":1, "topP":0.2', '"seed":1', *["/generationConfig/topP"] * 2),
            ("flash", '"seed":1,"presencePenalty":1', '"seed":1', *["/generationConfig/presencePenalty"] * 2),
            (
                "flash",
                '"thinkingConfig":{"thinkingBudget":9000}',
                '"thinkingConfig":{"thinkingLevel":"HIGH"}',
                "/generationConfig/thinkingConfig/thinkingBudget /generationConfig/thinkingConfig/thinkingLevel",
                "/generationConfig/thinkingConfig/thinkingBudget",
            ),
            (
                "pro",
                '"thinkingConfig":{"thinkingLevel":"LOW"}',
                '"thinkingConfig":{"thinkingBudget":1024}',
                "/generationConfig/thinkingConfig/thinkingBudget /generationConfig/thinkingConfig/thinkingLevel",
                "/generationConfig/thinkingConfig/thinkingLevel",
            ),
            (
                "pro",
                '"thinkingConfig":{"thinkingBudget":0}',
                '"thinkingConfig":{"thinkingBudget":128}',
                *["/generationConfig/thinkingConfig/thinkingBudget"] * 2,
            ),
        )
    ),
]


FIRST = "call_489338739af14cdb06a86196"
# Dialect, alias of another vendor's model, alias of an own one, the history without ids, the same with them, pointers.
GAPS = [
    (
        "chat",
        "local",
        "four",
        (
            f'{CHAT_TOOLS},"messages":[{{"role":"user","content":"caf\\u00e9"}}, {{"role":"assistant","tool_calls":['
            '{"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool" , "content":"1"}]'
        ),
        (
            f'{CHAT_TOOLS},"messages":[{{"role":"user","content":"caf\\u00e9"}}, {{"role":"assistant","tool_calls":['
            f'{{"type":"function","function":{{"name":"f","arguments":"{{}}"}},"id":"{FIRST}"}}]}},'
            f'{{"role":"tool" , "content":"1","tool_call_id":"{FIRST}"}}]'
        ),
        "/messages/1/tool_calls/0/id /messages/2/tool_call_id",
    ),
    (
        "responses",
        "rlocal",
        "rfour",
        (
            '"store":false,"input":[{"role":"user","content":"caf\\u00e9"}, {"type":"function_call","name":"f",'
            '"arguments":"{}"} , {"type":"function_call_output","output":"1"}]'
        ),
        (
            '"store":false,"input":[{"role":"user","content":"caf\\u00e9"}, {"type":"function_call","name":"f",'
            f'"arguments":"{{}}","call_id":"{FIRST}"}} , {{"type":"function_call_output","output":"1","call_id":"{FIRST}"}}]'
        ),
        "/input/1/call_id /input/2/call_id",
    ),
    (
        "messages",
        "elsewhere",
        "opus",
        (
            f'"max_tokens":50,{CLAUDE_TOOLS},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":['
            '{"type":"tool_use","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"caf\\u00e9"} , '
            '{"type":"tool_result","content":"1"}]}]'
        ),
        (
            f'"max_tokens":50,{CLAUDE_TOOLS},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":['
            f'{{"type":"tool_use","name":"f","input":{{}},"id":"{FIRST}"}}]}},{{"role":"user","content":['
            f'{{"type":"tool_result","content":"1","tool_use_id":"{FIRST}"}} , {{"type":"text","text":"caf\\u00e9"}}]}}]'
        ),
        "/messages/1/content/0/id /messages/2/content/0 /messages/2/content/1/tool_use_id",
    ),
]


@pytest.fixture(scope="module")
def aliased():
    with in_thread() as simulator, run_server_gateway(simulator, models=MODELS) as running:
        yield running


def build_history_body(model, history, *, streamed):
    return f'{{ "model" : "{model}", "stream":{json.dumps(streamed)}, {history}}}'.encode()


def build_body(dialect, model, parameters, *, streamed=False):
    if dialect == "gemini":
        return f"{{ {SEND[dialect]},{parameters} }}".encode()
    return f'{{ "model" : "{model}", "stream":{json.dumps(streamed)}, {SEND[dialect]},{parameters}}}'.encode()


def ask(gateway, dialect, model, parameters, *, streamed=False, **headers):
    """Send a request with these parameters; return the reply."""
    path = PATHS.get(dialect)
    if path is None:
        path = f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if streamed else 'generateContent'}"
    body = build_body(dialect, model, parameters, streamed=streamed)
    return httpx2.post(gateway.base_url + path, content=body, headers=headers)


def list_pointers(header):
    """Return the pointers of the losses in the header."""
    return " ".join(sorted(item.split()[1].rstrip(":") for item in header.split("; ")[2:]))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[1]}-{row[4].replace('/', '.') or 'none'}")
def test_a_parameter_that_the_other_model_rejects_is_spliced_and_reported(aliased, row, streamed):
    dialect, alias, sent, got, reported, _ = row
    reply = ask(aliased, dialect, alias, sent, streamed=streamed)
    assert reply.status_code == 200, reply.text
    assert aliased.simulator.requests[-1].body == build_body(dialect, NAMES[alias], got, streamed=streamed)
    assert list_pointers(reply.headers.get("x-dragoman-losses", "")) == reported


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[1]}-{row[4].replace('/', '.') or 'none'}")
def test_strict_mode_rejects_what_it_rejects_in_a_translation(aliased, row):
    dialect, alias, sent, _, reported, refused = row
    before = len(aliased.simulator.requests)
    reply = ask(aliased, dialect, alias, sent, **{"x-dragoman-strict": "true"})
    assert reply.status_code == (400 if refused else 200), reply.text
    assert len(aliased.simulator.requests) == before + (not refused)
    assert refused in reply.text
    every = ask(aliased, dialect, alias, sent, **{"x-dragoman-strict": "all"})
    assert every.status_code == (400 if reported else 200)


@pytest.mark.parametrize(
    ("dialect", "model", "parameters"),
    [
        ("chat", "gpt-5", '"max_tokens":40'),
        ("responses", "gpt-5.1", '"reasoning":{"effort":"max"}'),
        ("messages", "claude-opus-4-8", '"max_tokens":50,"temperature":0.2'),
        ("gemini", "gemini-3-flash", '"generationConfig":{"thinkingConfig":{"thinkingLevel":"X"}}'),
    ],
)
def test_a_model_that_is_not_mapped_gets_every_byte_and_the_vendor_judges(aliased, dialect, model, parameters):
    reply = ask(aliased, dialect, model, parameters)
    assert reply.status_code == 400
    assert "x-dragoman-losses" not in reply.headers
    assert aliased.simulator.requests[-1].body == build_body(dialect, model, parameters)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("row", GAPS, ids=lambda row: row[0])
def test_another_vendors_model_gets_missing_call_ids_and_results_before_text(aliased, row, streamed):
    dialect, alias, _, history, expected, pointers = row
    url = aliased.base_url + PATHS[dialect]
    reply = httpx2.post(url, content=build_history_body(alias, history, streamed=streamed))
    assert reply.status_code == 200, reply.text
    sent = aliased.simulator.requests[-1].body
    assert sent == build_history_body(NAMES[alias], expected, streamed=streamed)
    assert list_pointers(reply.headers["x-dragoman-losses"]) == pointers
    for strict, status in (("true", 200), ("all", 400)):
        headers = {"x-dragoman-strict": strict}
        refused = httpx2.post(url, content=build_history_body(alias, history, streamed=streamed), headers=headers)
        assert refused.status_code == status


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("row", GAPS, ids=lambda row: row[0])
def test_its_own_vendor_judges_a_history_without_call_ids(aliased, row, streamed):
    dialect, _, own, history, _, _ = row
    body = build_history_body(own, history, streamed=streamed)
    reply = httpx2.post(aliased.base_url + PATHS[dialect], content=body)
    assert reply.status_code == 400
    assert "x-dragoman-losses" not in reply.headers
    assert aliased.simulator.requests[-1].body == build_history_body(NAMES[own], history, streamed=streamed)


def test_an_exact_upstream_of_another_vendor_gets_a_history_as_it_is(serve):
    with in_thread() as simulator:
        table = UpstreamTable(kind="openai", base_url=f"{simulator.base_url}/v1", passthrough="exact")
        gateway = serve(upstreams={"same": table}, models={"local": ("same/llama-4",)})
        body = build_history_body("local", GAPS[0][3], streamed=False)
        reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", content=body)
        assert reply.status_code == 400
        assert simulator.requests[-1].body == build_history_body("llama-4", GAPS[0][3], streamed=False)


def test_parameters_of_a_model_of_which_nothing_is_known_pass_unchanged(aliased):
    parameters = '"max_tokens":50,"temperature":0.2,"thinking":{"type":"disabled"},"output_config":{"effort":"high"}'
    reply = ask(aliased, "messages", "elsewhere", parameters)
    assert "x-dragoman-losses" not in reply.headers
    assert aliased.simulator.requests[-1].body == build_body("messages", "glm-5", parameters)


def test_code_assist_gets_adapted_parameters_too(aliased):
    reply = ask(aliased, "gemini", "assisted", '"generationConfig":{"seed":1,"temperature":0.2}')
    assert reply.status_code == 200, reply.text
    assert json.loads(aliased.simulator.requests[-1].body)["request"]["generationConfig"] == {"seed": 1}
    assert list_pointers(reply.headers["x-dragoman-losses"]) == "/generationConfig/temperature"


def test_claude_on_vertex_gets_adapted_parameters_too(aliased):
    reply = ask(aliased, "messages", "vopus", '"max_tokens":50,"temperature":0.2')
    assert reply.status_code == 200, reply.text
    assert b"temperature" not in aliased.simulator.requests[-1].body


def test_thinking_is_off_in_a_tool_loop_that_started_without_thinking_blocks(aliased):
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    asked = {
        "model": "small",
        "max_tokens": 5000,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    reply = httpx2.post(f"{aliased.base_url}/v1/messages", json=asked)
    assert reply.status_code == 200, reply.text
    sent = json.loads(aliased.simulator.requests[-1].body)
    assert sent == asked | {"model": "claude-haiku-4-5", "thinking": {"type": "disabled"}}
    assert "tool loop" in reply.headers["x-dragoman-losses"]


@pytest.mark.parametrize(
    ("dialect", "kind", "model", "parameters"),
    [
        ("chat", "openai", "gpt-5", '"max_tokens":40,"temperature":0.2'),
        ("responses", "openai-responses", "gpt-5", '"temperature":0.2'),
        ("messages", "anthropic", "claude-opus-4-8", '"max_tokens":50,"temperature":0.2'),
        ("gemini", "gemini", "gemini-3.8-flash", '"generationConfig":{"presencePenalty":1}'),
    ],
)
def test_an_exact_upstream_gets_another_name_and_the_same_bytes(serve, dialect, kind, model, parameters):
    with in_thread() as simulator:
        base = simulator.base_url + ("/v1" if kind.startswith("openai") else "")
        table = UpstreamTable(kind=kind, base_url=base, passthrough="exact")
        gateway = serve(upstreams={"same": table}, models={"mine": (f"same/{model}",)})
        reply = ask(gateway, dialect, "mine", parameters)
        assert reply.status_code == 400
        assert "x-dragoman-losses" not in reply.headers
        assert simulator.requests[-1].body == build_body(dialect, model, parameters)
