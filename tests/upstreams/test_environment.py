"""Upstreams from the variables that the vendors' SDKs read."""

import logging

import pytest

from dragoman.config import ConfigError, load
from dragoman.upstreams import environment
from dragoman.upstreams.environment import read_upstreams

KEYS = {"GEMINI_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
VARIABLES = {
    "gemini": "GOOGLE_GEMINI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
}


@pytest.mark.parametrize(("name", "variable"), VARIABLES.items())
def test_the_base_url_of_a_vendors_sdk_is_that_of_its_upstream(name, variable):
    upstreams = read_upstreams({**KEYS, variable: " https://proxy.example/x "})
    assert {each for each, table in upstreams.items() if table.base_url} == {name}
    assert upstreams[name].base_url == "https://proxy.example/x"


def test_the_variables_are_those_that_the_sdks_read(monkeypatch):
    import anthropic
    import openai
    from google.genai._base_url import get_base_url

    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, f"https://{variable.lower().replace('_', '-')}.example")
    assert openai.OpenAI(api_key="k").base_url.host == "openai-base-url.example"
    assert anthropic.Anthropic(api_key="k").base_url.host == "anthropic-base-url.example"
    assert get_base_url(vertexai=False) == "https://google-gemini-base-url.example"


def test_a_server_that_is_not_the_vendors_has_the_api_of_compatible_servers():
    def find_kind(base_url):
        return read_upstreams({**KEYS, "OPENAI_BASE_URL": base_url})["openai"].kind

    assert find_kind("http://127.0.0.1:11434/v1") == "openai"
    assert find_kind("https://api.openai.com/v1") == find_kind("") == "openai-responses"


def test_a_base_url_without_a_key_adds_no_upstream():
    assert list(read_upstreams({"OPENAI_BASE_URL": "https://proxy.example/v1"})) == ["simulator"]


@pytest.mark.parametrize("variable", VARIABLES.values())
def test_a_base_url_that_is_not_valid_is_an_error_that_names_the_variable(variable, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"the environment: {variable}: 'proxy' is not an http"):
        load(environment={**KEYS, variable: "proxy"})


@pytest.mark.parametrize(
    ("listen", "base_url", "is_own"),
    [
        ("127.0.0.1:8741", "http://127.0.0.1:8741", True),
        ("127.0.0.1:8741", "http://localhost:8741/v1/", True),
        ("[::1]:8741", "http://[::1]:8741", True),
        ("0.0.0.0:80", "http://localhost", True),
        ("gateway.example:8741", "http://Gateway.example:8741/v1", True),
        ("127.0.0.1:8741", "http://127.0.0.1:8742", False),
        ("127.0.0.1:8741", "http://other.example:8741", False),
        ("0.0.0.0:8741", "http://other.example:8741", False),
    ],
)
def test_the_gateways_own_address_is_ignored_and_one_line_says_so(listen, base_url, is_own, caplog):
    environment._warn_of_own_address.cache_clear()
    with caplog.at_level(logging.WARNING, "dragoman.upstreams"):
        for _ in range(2):
            found = read_upstreams({**KEYS, "OPENAI_BASE_URL": base_url}, listen)
    assert found["openai"].base_url == ("" if is_own else base_url)
    assert [record.getMessage() for record in caplog.records] == [
        f"dragoman: OPENAI_BASE_URL={base_url} is the address of this gateway: ignored, it is for clients"
    ] * is_own


def test_the_listen_address_of_the_file_and_of_the_command_line_count(tmp_path, monkeypatch):
    file = tmp_path / "dragoman.toml"
    file.write_text('[server]\nlisten = "127.0.0.1:9000"\n')
    variables = {**KEYS, "OPENAI_BASE_URL": "http://127.0.0.1:9000/v1"}

    def find_base_url(path, listen=""):
        return load(path, variables, listen=listen).upstreams["openai"].base_url

    monkeypatch.chdir(tmp_path / "..")
    assert find_base_url(file) == ""
    assert find_base_url(file, "127.0.0.1:9001") == "http://127.0.0.1:9000/v1"
    assert find_base_url(None) == "http://127.0.0.1:9000/v1"
    assert find_base_url(None, "127.0.0.1:9000") == ""


def test_the_base_urls_of_vertex_ai_are_those_of_the_vendors_sdks():
    variables = {
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_VERTEX_BASE_URL": "https://gemini.example",
        "ANTHROPIC_VERTEX_BASE_URL": "https://claude.example/v1",
    }
    found = read_upstreams(variables)
    assert {name: (table.kind, table.base_url) for name, table in found.items()} == {
        "vertex": ("vertex-gemini", "https://gemini.example"),
        "vertex-claude": ("vertex-anthropic", "https://claude.example/v1"),
    }
