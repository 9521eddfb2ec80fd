"""Known secrets and text that looks like a secret are redacted; ordinary text is not."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_limit import cpu_limit
from dragoman.gateway.redact import REDACTED, credentials_of, redact, redact_known
from dragoman.http.client import Outgoing
from dragoman.http.message import Origin

_LETTERS = string.ascii_letters + string.digits
SECRETS = st.text(_LETTERS, min_size=24, max_size=60).filter(lambda text: any(letter.isdigit() for letter in text))
WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
MARKS = ["sk-", "sk-proj-", "sk-ant-api03-", "AIza", "ya29.", "GOCSPX-", "xai-", "gsk_", "hf_", "ghp_", "AQ.", "dm-"]
PLACES = [
    "Authorization: Bearer {}",
    "authorization: bearer {}",
    "Bearer {}",
    "x-api-key: {}",
    "x-goog-api-key={}",
    '{{"api_key": "{}"}}',
    "{{'client_secret': '{}'}}",
    "https://host.test/v1/models?key={}",
    "https://host.test/v1?a=1&access_token={}&b=2",
    "https://user:{}@host.test/v1",
    "postgresql://me:{}@db/x",
    "the api_key={} was refused",
    "password: {}",
]


@given(SECRETS, st.sampled_from(PLACES), WORDS, WORDS)
def test_a_value_with_a_secrets_name_is_redacted_anywhere(secret, place, before, after):
    assert secret not in redact(f"{before} {place.format(secret)} {after}")


@given(SECRETS, st.sampled_from(MARKS), WORDS, WORDS)
def test_a_value_with_a_vendors_prefix_is_redacted(secret, mark, before, after):
    assert secret not in redact(f"{before} {mark}{secret} {after}")


@given(SECRETS, st.sampled_from(MARKS), st.sampled_from(PLACES))
def test_secrets_in_json_and_in_json_within_json_are_taken_out_and_leave_json(secret, mark, place):
    output = json.dumps({"error": json.dumps({"message": place.format(mark + secret)})})
    clean = redact(output)
    assert secret not in clean
    assert json.loads(clean)


@given(st.lists(st.text(min_size=6), min_size=1, max_size=4), WORDS)
def test_a_known_secret_is_taken_out_however_it_looks(secrets, words):
    text = words.join(secrets)
    clean = redact_known(text, secrets)
    assert not any(secret in clean.replace(REDACTED, "\0") for secret in secrets)


@pytest.mark.parametrize(
    "text",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n-----END PRIVATE KEY-----",
        "AKIAIOSFODNN7EXAMPLE",
        "dmFsaWQga2V5IHRoYXQgbG9va3MgbGlrZSBub3RoaW5nIDEyMw",
    ],
)
def test_tokens_and_keys_without_a_name_are_taken_out(text):
    assert redact(f"it was {text} here") == f"it was {REDACTED} here"


def test_of_a_private_key_that_is_cut_nothing_is_left():
    assert redact("a -----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkq") == f"a {REDACTED}"


@pytest.mark.parametrize(
    "text",
    [
        "the model 'gemini-3-flash' is not found: name it `upstream/model`",
        "call_6BSXRoSqgCbFQ9v6UjpbLMPq has no result",
        "toolu_01A09q90qw90lq917835lq9 is unknown; resp_68a1f2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c1d2e3",
        "Unexpected token } in JSON at position 12",
        "the key: value pairs of /tools/0/function/parameters/properties/city must be strings",
        "maximum context length is 128000 tokens, however you requested 130123 tokens",
        "https://ai.google.dev/gemini-api/docs/function-calling?hl=en",
        "no API key was given; send one as a bearer token, in x-api-key or in x-goog-api-key",
        "claude-sonnet-4-5-20250929 with secret: none",
    ],
)
def test_ordinary_text_is_not_redacted(text):
    assert redact(text) == text


@given(WORDS)
def test_what_is_clean_stays_as_it_is(text):
    once = redact(text)
    assert redact(once) == once


def test_a_short_secret_is_not_redacted_inside_other_text():
    assert redact_known("okay", ["k", "ok"]) == "okay"


def test_the_credentials_of_a_request_are_those_in_its_headers():
    headers = (("authorization", "Bearer abc.def"), ("x-goog-api-key", "g"), ("content-type", "application/json"))
    outgoing = Outgoing(Origin("https", "h", 443), "POST", "/", headers)
    assert credentials_of(outgoing) == {"Bearer abc.def", "abc.def", "g"}


def test_a_key_in_a_header_of_an_unknown_api_is_a_credential_and_an_idempotency_key_is_none():
    headers = (("X-Corner-Key", "corner-secret"), ("idempotency-key", "i"), ("user-agent", "a"))
    assert credentials_of(Outgoing(Origin("https", "h", 443), "POST", "/", headers)) == {"corner-secret"}


NASTY = ["a", "key=", "eyJ-", "sk-", "bearer ", "://:", "?key=", "aB1-", "token: ", "-----BEGIN A", "1//", "secret =  "]


@pytest.mark.parametrize("piece", NASTY)
def test_a_long_text_is_read_in_a_time_that_grows_with_its_length(piece):
    with cpu_limit():
        redact((piece * 500_000)[:500_000])
