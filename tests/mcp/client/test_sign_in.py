"""Users sign in to an MCP server with the authorization server of the official SDK."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
import threading

import httpx2
import msgspec
import pytest
from mcp.shared.auth import OAuthClientInformationFull

from dragoman.config import ConfigError, load
from dragoman.mcp.client.sign_in import SignIn, SignInError, TokenFile
from dragoman.mcp.settings import ToolServer, UserSignIn
from mcp_authorization import run_authorized_server
from mcp_peers import Visit, text_of, visit_servers


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """The folder of the tokens."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "dragoman" / "mcp"


def find_free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def browse(url):
    """Open an address and follow its redirects, as a browser does."""
    threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}).start()


def sign_in(url, state, seconds=60, **settings):
    server = ToolServer(url=url, sign_in=UserSignIn(**settings))
    file = TokenFile(state / "far.json", url)
    return asyncio.run(SignIn(server=server, file=file, show_url=browse, seconds=seconds).run())


async def call(visit: Visit):
    return visit.status, text_of(await visit.call("far__whoami")) if visit.status.connected else visit.status.error


def use(url):
    return visit_servers(call, far=ToolServer(url=url, sign_in=True))


def test_a_user_signs_in_once_and_the_tokens_are_in_a_file_of_the_user_alone(state):
    with run_authorized_server() as (url, provider):
        assert sign_in(url, state) == ("whoami",)
        file = state / "far.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        status, text = use(url)
        assert (status.connected, text) == (True, "you")
        assert len(provider.challenges) == 1
        (registered,) = provider.clients.values()
        assert registered.token_endpoint_auth_method == "none"  # noqa: S105  no password
        assert {token.resource for token in provider.access.values()} == {url}
        assert [path.name for path in state.iterdir()] == ["far.json"]


def test_tokens_are_refreshed_when_they_are_rejected_or_expire_and_saved(state):
    with run_authorized_server() as (url, provider):
        sign_in(url, state)
        provider.access.clear()
        assert use(url)[1] == "you"
        assert provider.refreshed == 1
        assert use(url)[1] == "you"
        assert provider.refreshed == 1
        saved = msgspec.json.decode((state / "far.json").read_bytes())
        (state / "far.json").write_bytes(msgspec.json.encode({**saved, "expires_at": 1.0}))
        assert use(url)[1] == "you"
        assert provider.refreshed == 2
        assert msgspec.json.decode((state / "far.json").read_bytes())["expires_at"] > 1.0
        assert len(provider.challenges) == 1


def test_a_sign_in_that_has_ended_names_the_command_and_opens_no_browser(state):
    with run_authorized_server() as (url, provider):
        assert "not signed in: sign in with `dragoman mcp login far`" in use(url)[1]
        sign_in(url, state)
        provider.access.clear()
        provider.refresh.clear()
        assert "dragoman mcp login far" in use(url)[1]
        assert len(provider.challenges) == 1


def test_tokens_are_sent_to_no_other_url(state):
    with run_authorized_server() as (url, _), run_authorized_server() as (other, provider):
        sign_in(url, state)
        assert "not signed in" in use(other)[1]
        assert provider.challenges == []


def test_a_file_that_others_can_read_is_not_used(state):
    with run_authorized_server() as (url, _):
        sign_in(url, state)
        (state / "far.json").chmod(0o640)
        assert "other users can read" in use(url)[1]


def test_a_user_who_refuses_is_an_error(state):
    with run_authorized_server() as (url, provider):
        provider.refuses = True
        with pytest.raises(SignInError, match="the authorization server refused: access_denied"):
            sign_in(url, state)
        assert not state.exists()


def test_a_registered_client_is_used_as_it_is(state):
    with run_authorized_server() as (url, provider):
        with pytest.raises(SignInError, match="the browser did not return"):
            sign_in(url, state, seconds=1, client_id="unknown")
        assert provider.clients == {}


def describe_client(client_id, port, **more):
    return OAuthClientInformationFull(
        client_id=client_id, redirect_uris=[f"http://127.0.0.1:{port}/callback"], scope=None, **more
    )


def test_a_client_with_a_metadata_document_needs_no_registration(state):
    address, port = "https://app.example/client.json", find_free_port()
    with run_authorized_server(takes_documents=True) as (url, provider):
        provider.documents[address] = describe_client(address, port, token_endpoint_auth_method="none")  # noqa: S106
        assert sign_in(url, state, client_metadata_url=address, redirect_port=port) == ("whoami",)
        assert use(url)[1] == "you"
        assert (provider.clients, {token.client_id for token in provider.access.values()}) == ({}, {address})


def test_a_client_that_was_registered_before_signs_in_with_its_secret(state):
    port = find_free_port()
    with run_authorized_server() as (url, provider):
        method = {"client_secret": "s3cret", "token_endpoint_auth_method": "client_secret_post"}
        provider.clients["app"] = describe_client("app", port, **method)
        settings = {"client_id": "app", "client_secret": "s3cret", "redirect_port": port}
        assert sign_in(url, state, **settings) == ("whoami",)
        assert use(url)[1] == "you"
        with pytest.raises(SignInError):
            sign_in(url, state, **{**settings, "client_secret": "wrong"})


def test_the_command_signs_in_and_out(state, tmp_path):
    with run_authorized_server() as (url, _):
        config = tmp_path / "dragoman.toml"
        config.write_text(f'[tools.far]\nurl = "{url}"\nsign_in = true\n')
        follow = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
        browser = tmp_path / "browser"
        browser.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{follow}" "$1"\n')
        browser.chmod(0o700)
        environment = {**os.environ, "BROWSER": str(browser), "XDG_STATE_HOME": str(tmp_path)}

        def run(*words):
            command = [
                sys.executable,
                "-c",
                "import sys; from dragoman.cli import main; sys.exit(main())",
                "mcp",
                *words,
            ]
            return subprocess.run(  # noqa: S603
                command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
            )

        signed_in = run("login", "far")
        assert (signed_in.returncode, signed_in.stderr) == (0, "")
        assert "signed in to far: 1 tool (whoami)" in signed_in.stdout
        assert msgspec.json.decode((state / "far.json").read_bytes())["url"] == url
        assert "signed out of far" in run("logout", "far").stdout
        assert not (state / "far.json").exists()
        assert "not signed in to far" in run("logout", "far").stdout
        unknown = run("login", "near")
        assert unknown.returncode == 2
        assert "there is no [tools.near]" in unknown.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('command = "x"\nsign_in = true', "cannot be combined with `command`"),
        (
            'url = "https://b"\nsign_in = true\noauth = { issuer = "https://a", client_id = "d", client_secret = "s" }',
            "cannot be combined with `oauth`",
        ),
        ('url = "https://b"\nsign_in = { client_secret = "s" }', "client_id"),
        ('url = "https://b"\nsign_in = { client_metadata_url = "http://a/b" }', "https"),
        ('url = "http://far.example/mcp"\nsign_in = true', "https"),
        ('url = "https://b"\nsign_in = { redirect_port = 70000 }', "redirect_port"),
    ],
)
def test_invalid_sign_in_settings_are_reported(tmp_path, text, words):
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[tools.far]\n{text}\n")
    with pytest.raises(ConfigError, match=words) as error:
        load(file, {})
    assert "tools.far" in str(error.value)
