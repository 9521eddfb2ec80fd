"""Aliases of ids and names: only where needed, deterministic and unique."""

import pytest

from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.ids import alias_id, build_call_id_stem, generate_id, hash_text
from dragoman.interpreter.undo import alias_name

CHAT = traits_for("chat", "gpt-4.1")
CLAUDE = traits_for("messages", "claude-opus-4-8")
GEMINI = traits_for("gemini", "gemini-3-pro")
GEMINI_2_5 = traits_for("gemini", "gemini-2.5-pro")
MISTRAL = traits_for("chat", "mistral-large")


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("a", CHAT),
        ("9lives", CHAT),
        ("-dash", CHAT),
        ("_under-Score_9", CHAT),
        ("n" * 64, CHAT),
        ("n" * 64, CLAUDE),
        ("n" * 128, GEMINI),
        ("n" * 64, GEMINI_2_5),
        ("_9", GEMINI),
        ("ns.tool:run-now", GEMINI),
    ],
)
def test_a_name_the_target_takes_is_left_alone(name, traits):
    assert alias_name(name, traits) == name


@pytest.mark.parametrize(
    ("name", "traits", "alias"),
    [
        ("a b", CHAT, "a_b_c8687a08"),
        ("ns.tool", CHAT, "ns_tool_edc3b8c3"),
        ("", CHAT, "__e3b0c442"),
        ("wetter_für", CHAT, "wetter_f_r_04f00565"),
        ("n" * 65, CHAT, "n" * 55 + "_1e3fb6d5"),
        ("n" * 129, GEMINI, "n" * 119 + "_0bf2917c"),
        ("n" * 65, GEMINI_2_5, "n" * 55 + "_1e3fb6d5"),
        ("9lives", GEMINI, "_9lives_bc867356"),
        ("-dash", GEMINI, "_-dash_b693fbbf"),
        ("", GEMINI, "__e3b0c442"),
        ("a/b", GEMINI, "a_b_c14cddc0"),
        ("~a", GEMINI, "_a_8d5679ec"),
    ],
)
def test_a_name_that_the_target_rejects_gets_a_readable_valid_alias(name, traits, alias):
    assert alias_name(name, traits) == alias
    assert alias_name(alias, traits) == alias


def test_names_that_differ_only_in_what_is_refused_stay_apart():
    assert alias_name("a b", CHAT) != alias_name("a.b", CHAT)


@pytest.mark.parametrize(
    ("call_id", "traits"),
    [("c", CHAT), ("i" * 40, CHAT), ("i" * 64, CLAUDE), ("call_1-A", CLAUDE), ("abcDEF123", MISTRAL)],
)
def test_an_id_the_target_takes_is_left_alone(call_id, traits):
    assert alias_id(call_id, traits) == call_id


@pytest.mark.parametrize(
    ("call_id", "traits", "alias"),
    [
        ("i" * 41, CHAT, "i" * 15 + "_2f53ab97230bb0423a8164fc"),
        ("a.b", CLAUDE, "a_b_2e7336dc8eba87ef472df568"),
        ("", CLAUDE, "_e3b0c44298fc1c149afbf4c8"),
        ("abcDEF12", MISTRAL, "a0b1bc793"),
        ("abcDEF12_", MISTRAL, "27a92c949"),
        ("abcDEF12é", MISTRAL, "b900128e4"),
    ],
)
def test_an_id_that_the_target_rejects_gets_an_alias(call_id, traits, alias):
    assert alias_id(call_id, traits) == alias
    assert alias_id(alias, traits) == alias


def test_a_digest_is_the_head_of_the_texts_sha256_even_for_half_a_character():
    assert hash_text("a b", 8) == "c8687a08"
    assert hash_text("\ud83d", 8) == "7586f70f"


def test_a_generated_id_has_the_clients_prefix_and_differs_by_seed():
    assert generate_id("toolu_", "a", 1) == "toolu_c56379f421431626ad17c613"
    assert generate_id("toolu_", "a", 1) != generate_id("toolu_", "a1")


def test_the_call_ids_of_a_reply_share_a_stem_that_is_unique_to_the_reply():
    assert len(build_call_id_stem("r", "2")) == 20
    stems = {build_call_id_stem(*of) for of in (("r", "2"), ("r", "3"), ("s", "2"), ("r2", ""))}
    assert len(stems) == 4
