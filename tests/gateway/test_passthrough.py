"""Which headers of a client are forwarded to an upstream's other endpoints."""

from dialects.toy import DIALECT
from dragoman.dialects import registry
from dragoman.gateway.passthrough import filter_headers


def forward(*names: str) -> list[str]:
    return [name for name, _ in filter_headers([(name, "v") for name in names])]


def test_headers_that_select_a_vendors_account_are_not_forward():
    account = ("openai-organization", "openai-project", "x-goog-user-project")
    assert forward("openai-beta", *account, "x-goog-upload-protocol") == ["openai-beta", "x-goog-upload-protocol"]


def test_a_dialect_of_another_package_names_its_own_account_headers():
    assert forward("x-toy-account") == ["x-toy-account"]
    registry.register(DIALECT)
    try:
        assert forward("x-toy-account") == []
    finally:
        registry.unregister(DIALECT.name)


def test_credentials_and_headers_of_the_connection_are_not_forward():
    kept = forward("authorization", "x-session", "idempotency-key", "connection", "te", "x-forwarded-for", "accept")
    assert kept == ["idempotency-key", "accept"]
