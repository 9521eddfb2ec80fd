"""The environment variables that are set and removed for an intercepted command."""

import ssl
from pathlib import Path

import pytest
import trustme

from dragoman.cli.intercept.command import CertificateError, build_trust_variables
from dragoman.cli.intercept.hosts import drop_bypassed_hosts, host_expression, is_host
from dragoman.cli.intercept.mitmproxy import UserProxy, UserProxyError, build_proxy_variables, find_user_proxy

GOOGLE = ("generativelanguage.googleapis.com", "*-aiplatform.googleapis.com")


def authority() -> str:
    return trustme.CA().cert_pem.bytes().decode()


def subjects(file: str) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file)
    return len(context.get_ca_certs())


def test_variables_that_replace_authorities_contain_the_systems_and_the_proxys(tmp_path):
    ours = authority()
    result = build_trust_variables(ours, {}, tmp_path)
    usual = len(ssl.create_default_context().get_ca_certs())
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        assert subjects(result[variable]) == usual + 1
        assert ours.strip() in Path(result[variable]).read_text()


def test_a_variable_that_adds_authorities_contains_only_the_proxys(tmp_path):
    ours = authority()
    assert Path(build_trust_variables(ours, {}, tmp_path)["NODE_EXTRA_CA_CERTS"]).read_text() == ours.strip() + "\n"


@pytest.mark.parametrize(
    ("set_before", "expected_names"),
    [
        ("SSL_CERT_FILE", {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}),
        ("CURL_CA_BUNDLE", {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}),
        ("REQUESTS_CA_BUNDLE", {"REQUESTS_CA_BUNDLE"}),
        ("NODE_EXTRA_CA_CERTS", {"NODE_EXTRA_CA_CERTS"}),
    ],
)
def test_what_a_user_trusted_by_a_variable_is_trusted_still_by_its_readers(set_before, expected_names, tmp_path):
    theirs = tmp_path / "theirs.pem"
    theirs.write_text(authority())
    (tmp_path / "made").mkdir()
    result = build_trust_variables(authority(), {set_before: str(theirs)}, tmp_path / "made")
    assert {
        name for name, file in result.items() if theirs.read_text().strip() in Path(file).read_text()
    } == expected_names
    assert subjects(result[set_before]) == 2


def test_a_folder_of_authorities_is_read_whole(tmp_path):
    folder = tmp_path / "authorities"
    folder.mkdir()
    for name in ("one.pem", "two.pem"):
        (folder / name).write_text(authority())
    (tmp_path / "made").mkdir()
    result = build_trust_variables(authority(), {"REQUESTS_CA_BUNDLE": str(folder)}, tmp_path / "made")
    assert subjects(result["REQUESTS_CA_BUNDLE"]) == 3


def test_unreadable_authorities_are_reported(tmp_path):
    with pytest.raises(CertificateError, match=r"cannot read .*missing, which SSL_CERT_FILE points to"):
        build_trust_variables(authority(), {"SSL_CERT_FILE": str(tmp_path / "missing")}, tmp_path)


def test_only_the_proxy_for_tls_and_its_exceptions_are_set():
    result, taken = build_proxy_variables("http://dragoman:p@127.0.0.1:9", {"HTTP_PROXY": "http://other"}, GOOGLE)
    assert result == {
        "HTTPS_PROXY": "http://dragoman:p@127.0.0.1:9",
        "https_proxy": "http://dragoman:p@127.0.0.1:9",
        "NO_PROXY": "localhost,127.0.0.1,::1",
        "no_proxy": "localhost,127.0.0.1,::1",
        "NODE_USE_ENV_PROXY": "1",
    }
    assert taken == []


@pytest.mark.parametrize(
    ("output", "kept", "taken"),
    [
        ("corp.example, .internal", "corp.example,.internal", []),
        ("*", "", ["*"]),
        (".googleapis.com,corp.example", "corp.example", [".googleapis.com"]),
        ("*.googleapis.com", "", ["*.googleapis.com"]),
        ("GenerativeLanguage.googleapis.com:443", "", ["GenerativeLanguage.googleapis.com:443"]),
        ("otherlanguage.googleapis.com", "otherlanguage.googleapis.com", []),
        ("language.googleapis.com", "language.googleapis.com", []),
        ("", "", []),
    ],
)
def test_exceptions_that_would_lead_past_the_proxy_are_taken_out(output, kept, taken):
    assert drop_bypassed_hosts(output, GOOGLE) == (kept, taken)


@pytest.mark.parametrize(
    ("environment", "before"),
    [
        ({}, UserProxy()),
        ({"HTTPS_PROXY": "http://proxy.example:3128"}, UserProxy("upstream:http://proxy.example:3128")),
        ({"https_proxy": "proxy.example"}, UserProxy("upstream:http://proxy.example:80")),
        ({"ALL_PROXY": "https://u%40x:p%3A1@[::1]"}, UserProxy("upstream:https://[::1]:443", "u@x:p:1")),
    ],
)
def test_the_users_own_proxy_is_used_as_the_next_proxy(environment, before):
    assert find_user_proxy(environment) == before


def test_a_proxy_that_mitmproxy_does_not_support_is_reported():
    with pytest.raises(UserProxyError, match="socks5"):
        find_user_proxy({"ALL_PROXY": "socks5://127.0.0.1:1080"})


@pytest.mark.parametrize(
    ("output", "good"),
    [
        ("generativelanguage.googleapis.com", True),
        ("*-aiplatform.googleapis.com", True),
        ("*.googleapis.com", True),
        ("*", False),
        ("*.com", False),
        ("*.*", False),
        ("host", False),
        ("a.example:443", False),
        ("https://a.example", False),
        ("a..example", False),
        ("", False),
    ],
)
def test_only_names_of_hosts_can_be_listed(output, good):
    assert is_host(output) is good


def test_a_wildcard_matches_part_of_one_label():
    import re

    found = re.compile(host_expression("*-aiplatform.googleapis.com"))
    assert found.fullmatch("europe-west1-aiplatform.googleapis.com:443")
    for other in (
        "-aiplatform.googleapis.com:443",
        "a.b-aiplatform.googleapis.com:443",
        "x-aiplatformxgoogleapis.com:1",
    ):
        assert not found.fullmatch(other)
