"""The table `[search]` names the search backend, and its errors are reported."""

import pytest

from dragoman.cli.provenance import format_config
from dragoman.config import ConfigError, load


def write(tmp_path, text):
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[search]\n{text}\n")
    return file


def test_the_table_is_read_and_its_key_comes_from_the_environment(tmp_path):
    file = write(tmp_path, 'backend = "http://127.0.0.1:8080/search"\nkey = "env:SEARCH_KEY"\nmax_uses = 3')
    config = load(file, {"SEARCH_KEY": "a-secret-key"})
    assert (config.search.backend, config.search.key, config.search.max_uses) == (
        "http://127.0.0.1:8080/search",
        "a-secret-key",
        3,
    )
    assert "a-secret-key" in config.secrets
    shown = "\n".join(format_config(file, {"SEARCH_KEY": "a-secret-key"}))
    assert "[search]" in shown
    assert "a-secret-key" not in shown


def test_without_the_table_there_is_no_backend(tmp_path):
    assert load(write(tmp_path, ""), {}).search.backend == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('backend = "searxng"', "neither"),
        ('backend = "http://user:pass@s.example/"', "neither"),
        ('backend = "model"', "needs `model`"),
        ('model = "gem"', 'only for backend = "model"'),
        ('key = "k"', "needs a `backend`"),
        ('backend = "https://s.example/"\nkey = "env:NOT_SET"', "NOT_SET is not set"),
        ("seconds = 0", "search.seconds"),
        ("max_results = 0", "search.max_results"),
        ("max_uses = 1.5", "search.max_uses"),
        ('backnd = "model"', "did you mean `backend`?"),
    ],
)
def test_invalid_settings_are_reported(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, text), {})
    assert words in str(error.value)
