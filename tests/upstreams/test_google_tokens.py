"""Google's credentials: a file becomes a token, once, and an invalid one is a gateway error."""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dragoman.core.problems import Problem
from dragoman.simulator.runner import in_thread
from dragoman.upstreams import google_tokens
from dragoman.upstreams.google_tokens import (
    FixedToken,
    GoogleTokenSource,
    load_credentials_file,
    load_default_credentials,
)


def write_grant(tmp_path: Path, token_uri: str, **members: str) -> str:
    """Write a user's grant, as Google's own tools do."""
    file = tmp_path / "credentials.json"
    grant = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    file.write_text(json.dumps({**grant, "token_uri": token_uri, **members}))
    return str(file)


def ask(tokens: GoogleTokenSource, times: int) -> list[str]:
    async def steps() -> list[str]:
        return await asyncio.gather(*(tokens.token() for _ in range(times)))

    return asyncio.run(steps())


def test_a_credentials_file_becomes_a_token_which_is_requested_once(tmp_path):
    with in_thread() as simulator:
        file = write_grant(tmp_path, f"{simulator.base_url}/token")
        found = ask(GoogleTokenSource(partial(load_credentials_file, file), "vertex"), 10)
        assert len(set(found)) == 1
        assert found[0]
        assert [seen.target for seen in simulator.requests] == ["/token"]


def test_a_grant_without_a_client_is_used_with_the_one_that_is_configured(tmp_path):
    with in_thread() as simulator:
        file = tmp_path / "oauth_creds.json"
        file.write_text(json.dumps({"refresh_token": "r", "token_uri": f"{simulator.base_url}/token"}))
        assert ask(GoogleTokenSource(partial(load_credentials_file, str(file), "mine", "hush"), "assist"), 1)[0]
        assert b"client_id=mine" in simulator.requests[0].body


def account(tmp_path: Path, token_uri: str) -> str:
    """Write a service account's key."""
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file = tmp_path / "account.json"
    members = {"type": "service_account", "client_email": "a@b", "private_key": text, "token_uri": token_uri}
    file.write_text(json.dumps(members))
    return str(file)


def test_a_service_accounts_key_is_read_from_a_file_or_the_usual_place(tmp_path, monkeypatch):
    with in_thread() as simulator:
        file = account(tmp_path, f"{simulator.base_url}/token")
        assert ask(GoogleTokenSource(partial(load_credentials_file, file), "vertex"), 1)[0]
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
        assert ask(GoogleTokenSource(load_default_credentials, "vertex"), 1)[0]


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"type":"authorized_user"}'])
def test_an_invalid_credentials_file_is_a_gateway_error(tmp_path, text):
    file = tmp_path / "credentials.json"
    file.write_text(text)
    with pytest.raises(Problem) as error:
        ask(GoogleTokenSource(partial(load_credentials_file, str(file)), "vertex"), 1)
    assert (error.value.status, error.value.code) == (502, "credentials")
    assert "upstream 'vertex' has no usable Google credentials" in error.value.message


def test_an_unreachable_token_server_is_reported(tmp_path):
    file = write_grant(tmp_path, "http://127.0.0.1:9/token")
    with pytest.raises(Problem, match="no usable Google credentials"):
        ask(GoogleTokenSource(partial(load_credentials_file, file), "vertex"), 1)


@pytest.mark.parametrize("load", ["a file", "the usual place", "nothing there"])
def test_errors_do_not_contain_the_path_of_the_credentials(tmp_path, monkeypatch, load):
    file = tmp_path / "credentials.json"
    if load != "nothing there":
        file.write_text("[]" if load == "a file" else "{}")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    given = load_default_credentials if load == "the usual place" else partial(load_credentials_file, str(file))
    with pytest.raises(Problem) as error:
        ask(GoogleTokenSource(given, "vertex"), 1)
    assert "credentials.json" not in error.value.message


class Account:
    """Credentials as google-auth has them: their expiry is in UTC without a time zone."""

    token = ""

    def __init__(self, life: float) -> None:
        self.life = life
        self.asked = 0
        self.broken = False

    def refresh(self, _: object) -> None:
        self.asked += 1
        if self.broken:
            raise OSError("the network is away")
        self.token = f"t{self.asked}"
        self.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=self.life)


def test_a_token_is_used_until_shortly_before_its_end(monkeypatch):
    account = Account(3600)
    tokens = GoogleTokenSource(lambda: account, "vertex")
    assert ask(tokens, 2) == ["t1", "t1"]
    later(monkeypatch, 3000)
    assert ask(tokens, 1) == ["t1"]
    later(monkeypatch, 3400)
    assert ask(tokens, 1) == ["t2"]


def test_a_token_that_is_still_good_is_used_where_no_new_one_comes(monkeypatch):
    account = Account(3600)
    tokens = GoogleTokenSource(lambda: account, "vertex")
    ask(tokens, 1)
    account.broken = True
    later(monkeypatch, 3400)
    assert ask(tokens, 3) == ["t1"] * 3
    assert account.asked == 2
    later(monkeypatch, 3700)
    with pytest.raises(Problem, match="the network is away"):
        ask(tokens, 1)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let time have passed since the test began."""
    now = time.monotonic()
    monkeypatch.setattr(google_tokens.time, "monotonic", lambda: now + seconds)


def test_a_missing_google_auth_is_an_error_that_says_what_to_install(monkeypatch):
    for name in ("google.auth", "google.auth.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Problem, match=r'google-auth is not installed; run: pip install "dragoman\[google\]"') as raised:
        ask(GoogleTokenSource(load_default_credentials, "vertex"), 1)
    assert (raised.value.status, raised.value.code) == (502, "credentials")


def test_a_fixed_token_is_given_as_it_is():
    assert asyncio.run(FixedToken("t").token()) == "t"
