"""Access tokens for Google's clouds, through google-auth: application default credentials, or a file.

Refreshing talks to a server and signs with a key, so it runs beside the loop, once at a time, and well before a token
ends. Where it fails the token is used to its end. Clients hear of failures, so no file is named in them.
"""

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.upstreams.kind import UpstreamTable
from dragoman.wire import json

_GRANTS = "https://oauth2.googleapis.com/token"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_REFRESH_EARLY = 300.0
"""Seconds before its end at which a token is replaced; google-auth itself calls it expired some minutes before."""
_DEFAULT_LIFETIME = 600.0
_EXPIRY_MARGIN = 10.0
"""Seconds before its end at which a token is no longer used."""
_RETRY_SECONDS = 30.0
"""Seconds until the next try where a token is still good."""


class TokenSource(Protocol):
    """Gives an access token that is good now."""

    async def token(self) -> str:
        """Return the token."""
        ...


class GoogleAccount(Struct, frozen=True):
    """A project at Google, and the access to it."""

    project: str
    tokens: TokenSource
    location: str = ""


class FixedToken:
    """A token that somebody else keeps fresh."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class GoogleTokenSource:
    """Tokens of one account."""

    def __init__(self, load: Callable[[], Any], name: str) -> None:
        self._load = load
        self._name = name
        self._credentials: Any = None
        self._token = ""
        self._refresh_at = 0.0
        """When it is to be replaced."""
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
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415  an extra

        try:
            if self._credentials is None:
                self._credentials = self._load()
        except GoogleAuthError:
            raise self._build_error("there are none where they usually are") from None
        except (json.Malformed, UnicodeDecodeError):
            raise self._build_error("their file is no JSON") from None
        except OSError as error:
            raise self._build_error(f"their file cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise self._build_error(str(error)) from None
        try:
            self._credentials.refresh(_send_request)
        except (GoogleAuthError, ValueError, OSError) as error:
            raise self._build_error(str(error)) from None
        return self._credentials.token, _seconds_left(self._credentials.expiry)

    def _build_error(self, reason: str) -> Problem:
        words = f"the upstream {self._name} has no usable Google credentials: {reason}"
        return Problem("internal", words, status=502, code="credentials")


def build_google_account(name: str, table: UpstreamTable) -> GoogleAccount:
    """Return the project of an upstream, with its token: a given one, one of a credentials file, or the default one."""
    if table.access_token:
        tokens: TokenSource = FixedToken(table.access_token)
    elif table.credentials:
        given = partial(load_credentials_file, table.credentials, table.client_id, table.client_secret)
        tokens = GoogleTokenSource(given, name)
    else:
        tokens = GoogleTokenSource(load_default_credentials, name)
    return GoogleAccount(table.project, tokens, table.location)


def _seconds_left(expiry: datetime | None) -> float:
    """Return the seconds until a time, which google-auth tells in UTC without saying so."""
    if expiry is None:
        return _DEFAULT_LIFETIME
    return (expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)).timestamp() - time.time()


def load_default_credentials() -> Any:
    """Find the credentials that Google's own tools would use here."""
    google_auth: Any = import_module("google.auth")  # an extra, and not typed
    return google_auth.default(scopes=SCOPES)[0]


def load_credentials_file(path: str, client_id: str = "", client_secret: str = "") -> Any:
    """Read a service account's key or a user's grant.

    A grant that names no OAuth client, such as a command line keeps, is used with the client of the configuration.
    """
    document: dict[str, Any] = json.decode(Path(path).read_bytes())
    match document:
        case {"type": "service_account"}:
            service_account: Any = import_module("google.oauth2.service_account")  # an extra, and not typed
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
            raise ValueError("their file is neither a service account's key nor a user's grant")


class _TransportResponse:
    """What google-auth wants of an answer."""

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
    """Ask for google-auth: it wants a library of its own for this otherwise."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url!r} is no http(s) address")
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310  checked above
    try:
        with urllib.request.urlopen(request, timeout=timeout or 30) as answer:  # noqa: S310
            return _TransportResponse(answer.status, dict(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        return _TransportResponse(error.code, dict(error.headers), error.read())
    except urllib.error.URLError as error:
        from google.auth.exceptions import TransportError  # noqa: PLC0415  an extra

        raise TransportError(str(error.reason)) from None
