"""Configuration files, and the errors for invalid ones."""

import re
from pathlib import Path

import pytest

from dragoman.config import ConfigError, load
from dragoman.server.services import find_text_calls

HASH = "0f" * 32
FULL = """
[server]
listen = "127.0.0.1:9000"
keys = ["env:OURS", { key = "sha256:HASH", name = "ci", models = ["gemini-*"], concurrency = 2 }]
strict = true

[upstreams.gemini]
kind = "gemini"
api_key = "env:GEMINI_API_KEY"

[upstreams.local]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1"

[models]
"gemini-3-flash" = "gemini/gemini-3-flash"
"local-*" = "local/*"
"fast" = ["gemini/gemini-3-flash", "local/qwen3"]
""".replace("HASH", HASH)


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    return file


def test_a_file_configures_the_address_keys_and_models(tmp_path):
    config = load(write(tmp_path, FULL), {"OURS": "secret", "GEMINI_API_KEY": "g"})
    assert config.server.listen == "127.0.0.1:9000"
    assert config.server.strict
    assert [(key.key, key.name, key.models, key.concurrency) for key in config.keys] == [
        ("secret", "key-2bb80d537b1d", (), 0),
        (f"sha256:{HASH}", "ci", ("gemini-*",), 2),
    ]
    assert config.upstreams["gemini"].api_key == "g"
    assert config.upstreams["local"].base_url == "http://127.0.0.1:11434/v1"
    assert config.models["fast"] == ("gemini/gemini-3-flash", "local/qwen3")


def test_the_variable_names_the_file(tmp_path):
    file = write(tmp_path, '[upstreams.a]\nkind = "anthropic"\napi_key = "k"\n')
    assert load(environment={"DRAGOMAN_CONFIG": str(file)}).upstreams["a"].kind == "anthropic"


def test_without_a_file_upstreams_appear_from_their_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load(environment={"GEMINI_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"})
    assert {name: table.kind for name, table in config.upstreams.items()} == {
        "gemini": "gemini",
        "anthropic": "anthropic",
        "openai": "openai-responses",
    }


def test_without_any_key_the_simulator_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(environment={}).upstreams["simulator"].kind == "simulator"


def test_a_file_without_upstreams_is_like_no_file_in_that(tmp_path):
    config = load(write(tmp_path, "[server]\nstrict = true\n"), {"GEMINI_API_KEY": "g"})
    assert list(config.upstreams) == ["gemini"]


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("[sever]\n", "sever", "unknown table"),
        ("[server]\nlistn = 1\n", "server", "unknown field `listn`"),
        ("[server]\nstrict = 1\n", "server.strict", "Expected `bool | str`, got `int`; use one of all"),
        ('[server]\nkeys = [""]\n', "server.keys[0]", "the key is empty"),
        ('[server]\nkeys = ["env:NONE"]\n', "server.keys[0]", "NONE is not set"),
        ('[upstreams.a]\nkind = "x"\n', "upstreams.a.kind", "unknown kind 'x'"),
        ('[upstreams.a]\nkind = "x"\n', "upstreams.a.kind", "use one of gemini, vertex-gemini, code-assist, anthropic"),
        ('[server]\nlog_format = "x"\n', "server.log_format", "use one of auto, json, text"),
        (
            '[upstreams.a]\nkind = "openai"\nbase_url = "http://x/v1"\napis = ["responses"]\n',
            "upstreams.a.apis",
            "has 'chat', and 'responses' if the server has it; got ['responses']",
        ),
        (
            '[upstreams.a]\nkind = "gemini"\napi_key = "k"\napis = ["gemini", "chat"]\n',
            "upstreams.a.apis",
            "an upstream of kind 'gemini' has 'gemini'; got",
        ),
        ("[server]\nmax_choices = 0\n", "server.max_choices", ">= 1"),
        ('[upstreams.a]\nkind = "gemini"\ntext_calls = "x"\n', "upstreams.a.text_calls", "use one of json, legacy"),
        ('[upstreams.a]\nkind = "anthropic"\ncache_marks = "on"\n', "upstreams.a.cache_marks", "use one of auto, off"),
        ('[upstreams.a]\nkind = "gemini"\npassthrough = "raw"\n', "upstreams.a.passthrough", "use one of adapt, exact"),
        ('[upstreams.a]\nkind = "gemini"\ntext_calls = { m = 1 }\n', "upstreams.a.text_calls", "Expected `str`"),
        (
            '[upstreams.a]\nkind = "openai"\nbase_url = "http://a/v1"\nserver = "vlm"\n',
            "upstreams.a.server",
            "unknown server 'vlm': did you mean `vllm`?",
        ),
        (
            '[upstreams.a]\nkind = "gemini"\napi_key = "k"\nserver = "vllm"\n',
            "upstreams.a.server",
            "unknown server 'vllm'; kind 'gemini' has no such setting",
        ),
        ('[upstreams.a]\nkind = "gemini"\n', "upstreams.a.api_key", "env:GEMINI_API_KEY"),
        ('[upstreams.a]\nkind = "anthropic"\n', "upstreams.a.api_key", "env:ANTHROPIC_API_KEY"),
        ('[upstreams.a]\nkind = "openai"\n', "upstreams.a.api_key", "env:OPENAI_API_KEY"),
        (
            '[upstreams.a]\nkind = "openai-responses"\nbase_url = "https://api.openai.com/v1"\n',
            "upstreams.a.api_key",
            "set base_url to a server that needs none",
        ),
        ('[server]\nkeys = ["sha256:zz"]\n', "server.keys[0]", "64 hexadecimal digits"),
        ("[upstreams.a]\n", "upstreams.a", "missing required field `kind`"),
        ('[upstreams."a/b"]\nkind = "gemini"\n', "upstreams.a/b", "letters, digits"),
        ('[upstreams.a]\nkind = "gemini"\napi_key = "env:NONE"\n', "upstreams.a.api_key", "set it"),
        (
            '[upstreams.a]\nkind = "gemini"\napi_key = "k"\n[models]\nm = "b/x"\n',
            'models."m"',
            "unknown upstream 'b'",
        ),
        ('[upstreams.a]\nkind = "gemini"\napi_key = "k"\n[models]\nm = "a"\n', 'models."m"', "upstream/model"),
        (
            '[upstreams.a]\nkind = "gemini"\napi_key = "k"\n[models]\nm = "a/*"\n',
            'models."m"',
            "the model name must contain one too",
        ),
        ('[upstreams.a]\nkind = "gemini"\napi_key = "k"\n[models]\n"*m*" = "a/x"\n', 'models."*m*"', "only one `*`"),
        ('[upstreams.a]\nkind = "gemini"\napi_key = "k"\n[models]\nm = []\n', 'models."m"', "must be"),
        ("models = 1\n", "models", "must be a table"),
        ("[server\n", "", "not valid TOML"),
    ],
)
def test_an_error_names_the_file_the_key_and_what_would_be_right(tmp_path, text, key, words):
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(file, {})
    assert str(error.value).startswith(f"{file}: {key}")
    assert words in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the file"):
        load(tmp_path / "none.toml", {})


def test_the_documented_file_is_one(tmp_path):
    document = (Path(__file__).parents[2] / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    config = load(write(tmp_path, block), {"DRAGOMAN_KEY": "k", "CI_KEY": "c", "GEMINI_API_KEY": "g"})
    assert [key.name for key in config.keys] == ["key-8254c329a928", "ci"]
    assert set(config.upstreams) == {"gemini", "local"}
    assert config.models["fast"] == ("gemini/gemini-3-flash", "local/qwen3")


@pytest.mark.parametrize(
    ("file", "output", "native"),
    [
        ("", "", True),
        ("", "true", True),
        ("", "FALSE", False),
        ("", "0", False),
        ("use_native_function_calling = false", "", False),
        ("use_native_function_calling = false", "true", False),
        ("use_native_function_calling = true", "off", False),
    ],
)
def test_the_file_and_the_environment_can_disable_native_function_calling(tmp_path, monkeypatch, file, output, native):
    environment = {"GEMINI_USE_NATIVE_FUNCTION_CALLING": output}
    config = load(write(tmp_path, f"[server]\n{file}\n"), environment)
    assert config.server.use_native_function_calling is native
    if not file:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert load(None, environment).server.use_native_function_calling is native


def test_a_value_that_is_neither_true_nor_false_is_reported():
    with pytest.raises(
        ConfigError, match="the environment: GEMINI_USE_NATIVE_FUNCTION_CALLING: 'maybe' is not a boolean"
    ):
        load(None, {"GEMINI_USE_NATIVE_FUNCTION_CALLING": "maybe"})


def test_models_without_tools_are_named_all_or_by_pattern(tmp_path):
    text = (
        '[upstreams.a]\nkind = "simulator"\ntext_calls = "legacy"\n'
        '[upstreams.b]\nkind = "simulator"\ntext_calls = { "gemma*" = "json" }\n[upstreams.c]\nkind = "simulator"\n'
    )
    config = load(write(tmp_path, text), {})
    assert find_text_calls(config) == {"a": {"*": "legacy"}, "b": {"gemma*": "json"}}
    forced = load(write(tmp_path, text), {"GEMINI_USE_NATIVE_FUNCTION_CALLING": "no"})
    assert find_text_calls(forced) == {"a": {"*": "legacy"}, "b": {"gemma*": "json", "*": "json"}, "c": {"*": "json"}}
