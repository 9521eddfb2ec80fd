"""The examples of the tutorials, run against a gateway whose upstream is the simulator."""

import re
from pathlib import Path

import pytest

from dragoman.config import load
from dragoman.http.server import run_in_thread
from dragoman.server.runner import running

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorials"
BLOCK = re.compile(r"^```python gateway\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [block for page in sorted(TUTORIALS.glob("*.md")) for block in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_calls_a_tool_and_uses_its_result(tmp_path, monkeypatch, block, capsys):
    monkeypatch.chdir(tmp_path)
    with run_in_thread(lambda: running(load(environment={}), port=0, grace=0.2), "gateway") as gateway:
        exec(block.replace("http://127.0.0.1:8741", gateway.base_url), {})  # noqa: S102  our own examples
    printed = capsys.readouterr().out
    assert 'get_weather {"city":"Tokyo"}' in printed
    assert "rain" in printed
