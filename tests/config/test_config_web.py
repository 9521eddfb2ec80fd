"""The table `[web]` configures the tool, and its errors are reported."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec import structs

from dragoman.config import ConfigError, load
from dragoman.core.parts import ToolCall
from dragoman.server.services import open_tool_services
from dragoman.tools.web import Settings
from dragoman.tools.web.fetch import WebTable


def configure(tmp_path: Path, text: str):
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[web]\n{text}\n")
    return load(file, {})


def test_the_table_and_the_tool_have_the_same_settings():
    table, settings = structs.asdict(WebTable()), structs.asdict(Settings())
    assert table == {name: value for name, value in settings.items() if name != "agent"}


def test_what_is_configured_is_what_the_tool_does(tmp_path):
    (tmp_path / "a.txt").write_text("in the file")
    config = configure(tmp_path, f'files = ["{tmp_path}"]\nseconds = 7\ndeny = ["evil.example"]')

    async def read_file(url: str) -> str:
        call = ToolCall(id="1", name="web_fetch", arguments=json.dumps({"url": url}))
        async with open_tool_services(config) as toolbox:
            assert 7 < toolbox.executor.registry.get("web_fetch").timeout < 30
            return (await toolbox.executor.execute(call)).content[0].text

    assert "in the file" in asyncio.run(read_file(f"file://{tmp_path}/a.txt"))
    assert "is not allowed" in asyncio.run(read_file("https://a.evil.example/"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('allow = ["https://a.example"]', "'https://a.example' in allow or deny is not a domain"),
        ('deny = ["a b"]', "'a b' in allow or deny is not a domain"),
        ('deny = ["[::1"]', "'[::1' in allow or deny is not a domain"),
        ('private = ["a.example"]', "'a.example' in private is not"),
        ('private = ["10.0.0.0/8"]', "'10.0.0.0/8' in private is not"),
        ('files = ["docs"]', "'docs' in files is not an absolute path"),
        ('redirects = "all"', "use one of site, anywhere"),
        ("max_bytes = 0", "greater than 0"),
        ("seconds = 0", "greater than 0"),
        ("secnds = 1", "did you mean `seconds`?"),
    ],
)
def test_invalid_settings_are_reported(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        configure(tmp_path, text)
    assert words in str(error.value)
    assert ": web" in str(error.value)


@pytest.mark.parametrize(
    "text", ['deny = ["[2606:4700::1]", "*.a.example", "8.8.8.8", "bücher.example"]', 'private = ["[::1]:80", "a:1"]']
)
def test_what_is_right_is_taken(tmp_path, text):
    async def open_tools() -> tuple[str, ...]:
        async with open_tool_services(configure(tmp_path, text)) as toolbox:
            return toolbox.executor.registry.names

    assert "web_fetch" in asyncio.run(open_tools())


@pytest.mark.parametrize("table", ["[mcp]", '[agents.a]\nmodel = "m"'])
def test_a_destination_that_can_never_match_is_reported(tmp_path, table):
    file = tmp_path / "dragoman.toml"
    file.write_text(f'{table}\ndestinations = ["bücher.example:443", "https://a.example"]\n')
    with pytest.raises(ConfigError) as error:
        load(file, {})
    assert "'https://a.example'" in str(error.value)
