"""How a dialect lists models: the default format, and the query parameters of pages."""

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.api import ListedModel, ModelEntry, ModelFormat, find_row, read_page_size
from dragoman.dialects.registry import DIALECTS

LISTED = ListedModel(name="m", display_name="Model M", input_limit=1000, output_limit=50, row={})
ROWS = [{"id": "a"}, {"id": "b"}]


def test_the_default_format_is_the_list_that_openais_clients_read():
    default = ModelFormat()
    row = default.build_row(ModelEntry(name="m", issuer="google", listed=LISTED))
    assert (row["id"], row["object"], row["owned_by"]) == ("m", "model", "google")
    assert (row["context_length"], row["max_output_tokens"]) == (1000, 50)
    assert default.build_page([row], {"limit": "0"}) == {"object": "list", "data": [row]}


def test_limits_that_are_not_known_are_left_out_of_the_default_format():
    row = ModelFormat().build_row(ModelEntry(name="m"))
    assert row.keys() == {"id", "object", "created", "owned_by"}
    assert row["owned_by"] == "dragoman"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_name_in_a_row_is_what_follows_the_prefix_of_the_format(dialect):
    models = DIALECTS[dialect].api.models
    row = models.build_row(ModelEntry(name="m", listed=LISTED))
    assert row[models.member] == models.prefix + "m"


@pytest.mark.parametrize(
    ("query", "size"), [({}, 20), ({"limit": ""}, 20), ({"limit": "7"}, 7), ({"limit": "2000"}, 1000)]
)
def test_a_page_has_the_size_of_the_query_within_the_maximum(query, size):
    assert read_page_size(query, "limit", 20, 1000) == size


@pytest.mark.parametrize("size", ["0", "-1", "many", "1.5", "1" * 5000])
def test_a_page_size_that_is_no_number_is_rejected(size):
    with pytest.raises(Problem, match="limit must be a number from 1 to 1000") as caught:
        read_page_size({"limit": size}, "limit", 20, 1000)
    assert (caught.value.kind, caught.value.where) == ("invalid_request", "/limit")


def test_a_page_starts_at_the_row_that_the_query_names():
    assert find_row(ROWS, "id", {"after_id": "b"}, "after_id") == 1


def test_a_row_that_is_not_in_the_list_is_rejected():
    with pytest.raises(Problem, match="no model is named 'c'"):
        find_row(ROWS, "id", {"after_id": "c"}, "after_id")
