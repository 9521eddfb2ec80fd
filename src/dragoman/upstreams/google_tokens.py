"""Access tokens for Google Cloud through google-auth, from application default credentials or a credentials file.

A refresh does network I/O and signs with a key, so it runs in a thread, one at a time, and well before the token
expires. If a refresh fails, the old token is used until it expires. Clients see these error messages, so the messages
name no file.
"""

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.upstreams.kind import UpstreamTable
from dragoman.wire import json

_GRANTS = "https://oauth2.googleapis.com/token"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_REFRESH_EARLY = 300.0
"""Seconds before expiry at which a token is refreshed; google-auth itself calls it expired some minutes early."""
_DEFAULT_LIFETIME = 600.0
_EXPIRY_MARGIN = 10.0
"""Seconds before expiry from which a token is not used."""
_RETRY_SECONDS = 30.0
"""Seconds between refresh attempts while the old token is still valid."""


class TokenSource(Protocol):
    """Provides a valid access token."""

    async def token(self) -> str:
        """Return the current token."""
        ...


class GoogleAccount(Struct, frozen=True):
    """A Google Cloud project and the access tokens for it."""

    project: str
    tokens: TokenSource
    location: str = ""

    async def bearer(self) -> tuple[str, str]:
        """Return the header with the current token."""
        return "authorization", f"Bearer {await self.tokens.token()}"


class FixedToken:
    """A token from the configuration, which the user keeps fresh."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class GoogleTokenSource:
    """Access tokens of one account, refreshed before they expire."""

    def __init__(self, load: Callable[[], Any], name: str) -> None:
        self._load = load
        self._name = name
        self._credentials: Any = None
        self._token = ""
        self._refresh_at = 0.0
        """When to refresh the token, in monotonic seconds."""
        self._expires_at = 0.0
        self._lock = asyncio.Lock()

    async def token(self) -> str:
        now = time.monotonic()
        if now < self._refresh_at or (now < self._expires_at and self._lock.locked()):
            return self._token
        async with self._lock:
            if time.monotonic() >= self._refresh_at:
                await self._renew()
        return self._token

    async def _renew(self) -> None:
        try:
            self._token, life = await asyncio.to_thread(self._refresh)
        except Problem:
            now = time.monotonic()
            if now >= self._expires_at:
                raise
            self._refresh_at = min(now + _RETRY_SECONDS, self._expires_at)
        else:
            now = time.monotonic()
            self._refresh_at, self._expires_at = now + max(life - _REFRESH_EARLY, 1.0), now + life - _EXPIRY_MARGIN

    def _refresh(self) -> tuple[str, float]:
        try:
            from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415  optional dependency
        except ImportError:
            raise self._build_error('google-auth is not installed; run: pip install "dragoman[google]"') from None
        try:
            if self._credentials is None:
                self._credentials = self._load()
        except GoogleAuthError:
            raise self._build_error("no default credentials found; set `credentials` or `access_token`") from None
        except (json.Malformed, UnicodeDecodeError):
            raise self._build_error("the credentials file is not JSON") from None
        except OSError as error:
            raise self._build_error(f"the credentials file cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise self._build_error(str(error)) from None
        try:
            self._credentials.refresh(_send_request)
        except (GoogleAuthError, ValueError, OSError) as error:
            raise self._build_error(str(error)) from None
        return self._credentials.token, _seconds_left(self._credentials.expiry)

    def _build_error(self, reason: str) -> Problem:
        message = f"upstream {self._name!r} has no usable Google credentials: {reason}"
        return Problem("internal", message, status=502, code="credentials")


def build_google_account(name: str, table: UpstreamTable) -> GoogleAccount:
    """Return an upstream's project and tokens: from `access_token`, `credentials` or the default credentials."""
    if table.access_token:
        tokens: TokenSource = FixedToken(table.access_token)
    elif table.credentials:
        load = partial(load_credentials_file, table.credentials, table.client_id, table.client_secret)
        tokens = GoogleTokenSource(load, name)
    else:
        tokens = GoogleTokenSource(load_default_credentials, name)
    return GoogleAccount(table.project, tokens, table.location)


def describe_credentials(table: UpstreamTable) -> str:
    """Say where the credentials of an upstream come from, and what is missing to read them."""
    source = "Google's application default credentials"
    if table.credentials:
        source = f"credentials file {table.credentials}"
    # `find_spec` fails if even the namespace is missing, which other packages share.
    is_installed = find_spec("google") is not None and find_spec("google.auth") is not None
    return source if is_installed else f'{source}, which need: pip install "dragoman[google]"'


def _seconds_left(expiry: datetime | None) -> float:
    """Return the seconds until a time. google-auth gives times in UTC without a time zone."""
    if expiry is None:
        return _DEFAULT_LIFETIME
    return (expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)).timestamp() - time.time()


def load_default_credentials() -> Any:
    """Find the application default credentials, as Google's own tools do."""
    google_auth: Any = import_module("google.auth")  # optional dependency, untyped
    return google_auth.default(scopes=SCOPES)[0]


def load_credentials_file(path: str, client_id: str = "", client_secret: str = "") -> Any:
    """Load a service account key or a user's refresh token from a file.

    If a refresh token comes without an OAuth client, as command-line tools store it, the configured client is used.
    """
    document: dict[str, Any] = json.decode(Path(path).read_bytes())
    match document:
        case {"type": "service_account"}:
            service_account: Any = import_module("google.oauth2.service_account")  # optional dependency, untyped
            return service_account.Credentials.from_service_account_info(document, scopes=SCOPES)
        case {"refresh_token": str(refresh_token)}:
            oauth: Any = import_module("google.oauth2.credentials")
            return oauth.Credentials(
                None,
                refresh_token=refresh_token,
                token_uri=document.get("token_uri") or _GRANTS,
                client_id=document.get("client_id") or client_id,
                client_secret=document.get("client_secret") or client_secret,
            )
        case _:
            raise ValueError("the credentials file has neither a service account key nor a refresh token")


class _TransportResponse:
    """A response as google-auth expects it."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


def _send_request(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: Any,
) -> _TransportResponse:
    """Send an HTTP request for google-auth, so that it needs no HTTP library of its own."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url!r} is not an http(s) URL")
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310  checked above
    try:
        with urllib.request.urlopen(request, timeout=timeout or 30) as response:  # noqa: S310
            return _TransportResponse(response.status, dict(response.headers), response.read())
    except urllib.error.HTTPError as error:
        return _TransportResponse(error.code, dict(error.headers), error.read())
    except urllib.error.URLError as error:
        from google.auth.exceptions import TransportError  # noqa: PLC0415  optional dependency

        raise TransportError(str(error.reason)) from None
