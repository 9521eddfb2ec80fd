"""What runs inside mitmproxy sends listed hosts to the surface, and leaves everything else alone."""

import json
from types import SimpleNamespace

import pytest

from dragoman.cli.intercept.addon import ROUTES, Redirect
from dragoman.cli.intercept.hosts import host_expression


@pytest.fixture
def redirect(tmp_path):
    routes = [
        (host_expression("generativelanguage.googleapis.com"), "/intercept/one"),
        (host_expression("*-aiplatform.googleapis.com"), "/intercept/two"),
    ]
    result = {"host": "127.0.0.1", "port": 8741, "headers": {"x-dragoman-key": "k"}, "routes": routes}
    (tmp_path / ROUTES).write_text(json.dumps(result))
    return Redirect(tmp_path)


def flow(host, scheme="https", port=443, path="/v1/models?x=1"):
    request = SimpleNamespace(host=host, port=port, scheme=scheme, path=path, headers={"a": "b"}, stream=False)
    return SimpleNamespace(request=request, server_conn=SimpleNamespace(via="a proxy"), response=SimpleNamespace())


@pytest.mark.parametrize(
    ("host", "prefix"),
    [
        ("generativelanguage.googleapis.com", "/intercept/one"),
        ("GenerativeLanguage.GoogleApis.com", "/intercept/one"),
        ("europe-west1-aiplatform.googleapis.com", "/intercept/two"),
    ],
)
def test_a_request_for_a_listed_host_goes_to_the_gateway(redirect, host, prefix):
    one = flow(host)
    redirect.requestheaders(one)
    asked = one.request
    assert (asked.scheme, asked.host, asked.port) == ("http", "127.0.0.1", 8741)
    assert asked.path == f"{prefix}/v1/models?x=1"
    assert asked.headers == {"a": "b", "x-dragoman-key": "k"}
    assert one.server_conn.via is None
    assert asked.stream is True


@pytest.mark.parametrize(
    ("host", "scheme"),
    [
        ("oauth2.googleapis.com", "https"),
        ("generativelanguage.googleapis.com.evil.example", "https"),
        ("evil-generativelanguage.googleapis.com", "https"),
        ("generativelanguage-googleapis.com", "https"),
        ("generativelanguage.googleapis.com", "http"),
    ],
)
def test_any_other_request_stays_as_it_is(redirect, host, scheme):
    one = flow(host, scheme)
    redirect.requestheaders(one)
    asked = one.request
    assert (asked.scheme, asked.host, asked.port, asked.path) == (scheme, host, 443, "/v1/models?x=1")
    assert asked.headers == {"a": "b"}
    assert one.server_conn.via == "a proxy"


def test_replies_pass_as_they_come_and_the_folder_goes_at_the_end(redirect, tmp_path):
    one = flow("generativelanguage.googleapis.com")
    redirect.responseheaders(one)
    assert one.response.stream is True
    redirect.done()
    assert not tmp_path.exists()


def test_a_rejected_certificate_is_reported_with_its_host(redirect, capsys):
    for name in ("generativelanguage.googleapis.com", None):
        redirect.tls_failed_client(SimpleNamespace(context=SimpleNamespace(client=SimpleNamespace(sni=name))))
    assert capsys.readouterr().out == "dragoman intercept is not trusted for generativelanguage.googleapis.com\n"
