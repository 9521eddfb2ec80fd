"""What other packages find in a reply of Gemini."""

import json

import pytest

from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.compat import list_pages
from shelf import exchanges, needs_shelf


@needs_shelf
def test_a_recorded_answer_without_cited_segments_has_the_pages_of_its_search():
    (recorded,) = [each for each in exchanges("gemini") if each["id"] == "gemini/pydantic-ai-0034"]
    response = DIALECT.parse_response(json.dumps(recorded["response"]).encode())
    pages = list_pages(response.extras.fields)
    assert [title for _, title in pages] == ["accuweather.com", "weather-and-climate.com", ""]
    assert pages[-1][0] == "https://www.google.com/search?q=time+in+Mexico+City,+MX"


@pytest.mark.parametrize("metadata", [b"{}", b"[]", b'{"groundingChunks":[{"web":{"title":"no address"}},{}]}'])
def test_metadata_without_addresses_has_no_pages(metadata):
    assert list_pages({"/candidates/0/groundingMetadata": metadata}) == []
    assert list_pages({}) == []
