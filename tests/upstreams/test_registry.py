"""Which APIs an upstream has."""

import pytest

from dragoman.upstreams.kind import UpstreamTable
from dragoman.upstreams.registry import find_other_kind


@pytest.mark.parametrize(
    ("kind", "base_url", "apis", "other"),
    [
        ("openai", "", None, "openai-responses"),
        ("openai", "https://api.openai.com/v1", None, "openai-responses"),
        ("openai", "", ("chat",), ""),
        ("openai", "http://127.0.0.1:8000/v1", None, ""),
        ("openai", "http://127.0.0.1:8000/v1", ("chat", "responses"), "openai-responses"),
        ("openai-responses", "", None, ""),
        ("gemini", "", None, ""),
        ("simulator", "", None, ""),
    ],
)
def test_openais_own_server_has_both_apis_and_others_have_those_that_are_named(kind, base_url, apis, other):
    found = find_other_kind(UpstreamTable(kind=kind, base_url=base_url, apis=apis))
    assert (found.name if found is not None else "") == other
