"""Fields that two dialects of one vendor share."""

import pytest

from dragoman.interpreter.foreign_fields import find_shared_fields
from dragoman.interpreter.history_parts import find_shared_image_fields
from dragoman.interpreter.parameters import adapt_shared_value
from interpreter.workbench import adaptation_for, loss_pointers

OPENAI = {
    "/service_tier",
    "/store",
    "/prompt_cache_key",
    "/prompt_cache_options",
    "/prompt_cache_retention",
    "/moderation",
    "/user",
    "/safety_identifier",
}


@pytest.mark.parametrize(("source", "target"), [("chat", "responses"), ("responses", "chat")])
def test_the_dialects_of_openai_share_fields_by_name_and_meaning(source, target):
    assert find_shared_fields(source, target).keys() == OPENAI


@pytest.mark.parametrize(
    ("source", "target"), [("chat", "messages"), ("gemini", "responses"), ("messages", "gemini"), ("chat", "chat")]
)
def test_dialects_of_different_vendors_share_nothing(source, target):
    assert not find_shared_fields(source, target)


@pytest.mark.parametrize(
    ("source", "target", "fields"),
    [
        ("chat", "responses", {"/image_url/detail": "/detail"}),
        ("responses", "chat", {"/detail": "/image_url/detail"}),
        ("chat", "gemini", {}),
    ],
)
def test_fields_of_images_are_shared_by_their_pointers_in_each(source, target, fields):
    assert find_shared_image_fields(source, target) == fields


@pytest.mark.parametrize(
    ("target", "tier", "kept"),
    [
        ("chat", b'"flex"', True),
        ("chat", b'"ultrafast"', False),
        ("responses", b'"ultrafast"', True),
        ("responses", b'"on_demand"', False),
        ("responses", b"[1]", False),
    ],
)
def test_a_service_tier_is_sent_to_a_dialect_that_shares_it(target, tier, kept):
    adaptation = adaptation_for(target, "gpt-5.6")
    assert adapt_shared_value("/service_tier", tier, "tier", adaptation) == (tier if kept else None)
    assert loss_pointers(adaptation) == ([] if kept else [("dropped", "/service_tier")])
