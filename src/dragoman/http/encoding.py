"""Decompress gzip and deflate bodies, with a limit against decompression bombs.

A few bytes can decompress to gigabytes. A body that grows more than a hundredfold, and beyond 1 MiB, is rejected while
it is being read.
"""

import zlib
from collections.abc import Mapping

ACCEPTED_ENCODINGS = "gzip, deflate"
ENTITY_HEADERS = frozenset({"expect", "content-length", "transfer-encoding", "content-encoding"})
"""Headers that describe the body as sent, and are wrong after decoding."""
_GZIP = frozenset({"gzip", "x-gzip"})
_KNOWN_ENCODINGS = _GZIP | {"deflate"}
_MAX_GROWTH = 100
_MIN_LIMIT = 1 << 20
_AUTO_DETECT = 32 + zlib.MAX_WBITS
"""zlib window bits that detect a gzip or zlib header."""


class BadEncoding(ValueError):  # noqa: N818  the name states the fault
    """The body is not valid in its content-encoding."""

    status = 400


class BodyTooLarge(ValueError):  # noqa: N818  the name states the fault
    """The body is larger than the limit."""

    status = 413


def is_identity(encoding: str) -> bool:
    """Return whether a content-encoding means that the body is not compressed."""
    return encoding.strip().lower() in {"", "identity"}


def encoding_error(headers: Mapping[str, str], version: str) -> int | None:
    """Return the status that rejects a body with unsupported encodings; None for a body that can be decoded.

    A transfer-encoding other than `chunked`, or any in HTTP/1.0, is rejected: a proxy may see the end of such a body
    at another place (request smuggling).
    """
    coding = headers.get("transfer-encoding")
    if coding is not None and (coding.strip().lower() != "chunked" or version == "1.0"):
        return 400
    encoding = headers.get("content-encoding", "")
    return None if is_identity(encoding) or encoding.strip().lower() in _KNOWN_ENCODINGS else 415


class Inflater:
    """Decompresses a body incrementally."""

    def __init__(self, encoding: str, max_bytes: int | None = None) -> None:
        self._is_gzip = encoding.strip().lower() in _GZIP
        self._max_bytes = max_bytes
        self._decompressor = zlib.decompressobj(_AUTO_DETECT)
        self._has_begun = False
        self._bytes_in = 0
        self._bytes_out = 0

    def feed(self, data: bytes) -> bytes:
        """Return the decompressed form of the next bytes."""
        if not data:
            return b""
        self._bytes_in += len(data)
        chunks: list[bytes] = []
        while data:
            chunk = self._decompress(data)
            self._bytes_out += len(chunk)
            chunks.append(chunk)
            if self._decompressor.unconsumed_tail:
                raise BodyTooLarge("the decompressed body is too large")
            data = self._decompressor.unused_data
            if self._decompressor.eof and data:
                # A gzip file may consist of several members.
                if not self._is_gzip:
                    raise BadEncoding("the body has extra bytes after its end")
                self._decompressor = zlib.decompressobj(_AUTO_DETECT)
        return b"".join(chunks)

    def close(self) -> None:
        """End the body; raises `BadEncoding` if it is incomplete."""
        if self._bytes_in and not self._decompressor.eof:
            raise BadEncoding("the compressed body is incomplete")

    def _decompress(self, data: bytes) -> bytes:
        limit = max(_MIN_LIMIT, self._bytes_in * _MAX_GROWTH)
        left = (limit if self._max_bytes is None else min(limit, self._max_bytes)) - self._bytes_out
        try:
            # One byte more than the limit, to distinguish a body that is too large from one that fits exactly.
            return self._decompressor.decompress(data, left + 1)
        except zlib.error as error:
            if self._has_begun or self._is_gzip:
                raise BadEncoding(f"the body cannot be decompressed: {error}") from None
        finally:
            self._has_begun = True
        # Some senders omit the zlib header that deflate requires.
        self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._decompress(data)


def decode_body(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a complete body decompressed; raises `BodyTooLarge` beyond `max_bytes`."""
    if not is_identity(encoding):
        inflater = Inflater(encoding, max_bytes)
        body = inflater.feed(body)
        inflater.close()
    if len(body) > max_bytes:
        raise BodyTooLarge("the body is too large")
    return body
