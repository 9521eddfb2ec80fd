"""Which server an upstream is, from its settings."""

import pytest

from dragoman.upstreams.kind import UpstreamTable
from dragoman.upstreams.registry import KINDS


@pytest.mark.parametrize(
    ("base_url", "server", "expected"),
    [
        ("", "", "openai"),
        ("https://api.deepseek.com", "", "deepseek"),
        ("https://API.DeepSeek.com:443/beta", "", "deepseek"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "", "qwen"),
        ("https://openrouter.ai/api/v1", "", "openrouter"),
        ("http://127.0.0.1:11434/v1", "", "ollama"),
        ("http://[::1]:11434/v1", "", "ollama"),
        ("http://127.0.0.1:8000/v1", "", ""),
        ("http://127.0.0.1:8000/v1", "vllm", "vllm"),
        ("https://openrouter.ai/api/v1", "compatible", "compatible"),
        ("https://api.deepseek.com.example/v1", "", ""),
    ],
)
def test_the_server_is_named_in_the_settings_or_found_by_the_host(base_url, server, expected):
    table = UpstreamTable(kind="openai", base_url=base_url, server=server)
    assert KINDS["openai"].find_server(table) == expected


def test_a_kind_whose_dialects_have_no_servers_finds_none():
    assert KINDS["gemini"].servers == {}
    assert KINDS["gemini"].find_server(UpstreamTable(kind="gemini")) == ""
