"""Signatures the simulator issues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.simulator.apis.conversation import TokenSigner

TOKEN = TokenSigner().issue("content", "reply 1")


@given(content=st.text(), occasion=st.text(), seed=st.integers(0, 3))
def test_a_signature_is_genuine_for_what_it_signs(content, occasion, seed):
    token = TokenSigner(seed).issue(content, occasion)
    assert TokenSigner(seed).judge(token, content) == "genuine"
    assert TokenSigner(seed).judge(token, content + "x") == "moved"
    assert TokenSigner(seed + 1).judge(token, content) == "altered"


def test_every_occasion_has_a_signature_of_its_own():
    assert TokenSigner().issue("content", "reply 2") != TOKEN
    assert TokenSigner().issue("content", "reply 1") == TOKEN


@pytest.mark.parametrize("place", range(0, len(TOKEN), 3))
def test_a_changed_signature_is_known(place):
    changed = TOKEN[:place] + ("A" if TOKEN[place] != "A" else "B") + TOKEN[place + 1 :]
    assert TokenSigner().judge(changed, "content") in {"altered", "moved", "foreign"}
    assert TokenSigner().judge(changed, "content") != "genuine"


@pytest.mark.parametrize("token", [TOKEN[:-4], TOKEN[:40], TOKEN + "AAAA", TOKEN[:-1], TOKEN + "*"])
def test_a_cut_or_longer_signature_is_altered(token):
    assert TokenSigner().judge(token, "content") == "altered"


@pytest.mark.parametrize("token", ["", "abc", "c2tpcA==", "RXpvbmUgZWxzZSdzIHNpZ25hdHVyZQ=="])
def test_another_issuers_signature_is_foreign(token):
    assert TokenSigner().judge(token, "content") == "foreign"
