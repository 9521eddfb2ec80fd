"""Bodies that were made smaller for the way: gzip and deflate, and no more of them than their size can be trusted with.

A few bytes can stand for gigabytes. What grows more than a hundredfold, beyond a size that hurts nobody, is refused
while it is being read.
"""

import zlib
from collections.abc import Mapping

ACCEPTED_ENCODINGS = "gzip, deflate"
ENTITY_HEADERS = frozenset({"expect", "content-length", "transfer-encoding", "content-encoding"})
"""Headers that describe a body as it was sent, not as it is after decoding."""
_GZIP = frozenset({"gzip", "x-gzip"})
_KNOWN_ENCODINGS = _GZIP | {"deflate"}
_MAX_GROWTH = 100
_MIN_LIMIT = 1 << 20
_AUTO_DETECT = 32 + zlib.MAX_WBITS
"""Reads what has a head of gzip's or zlib's."""


class BadEncoding(ValueError):  # noqa: N818  it says what the body is
    """The bytes are not what their encoding makes."""

    status = 400


class BodyTooLarge(ValueError):  # noqa: N818  it says what the body is
    """The body is larger than its reader allows."""

    status = 413


def is_identity(encoding: str) -> bool:
    """Tell whether a body stands as it is."""
    return encoding.strip().lower() in {"", "identity"}


def encoding_error(headers: Mapping[str, str], version: str) -> int | None:
    """Return the status that rejects a body in an unknown coding; None for a body that can be decoded.

    Others on the way may read a body in another transfer coding, or one of HTTP/1.0, as ending elsewhere.
    """
    coding = headers.get("transfer-encoding")
    if coding is not None and (coding.strip().lower() != "chunked" or version == "1.0"):
        return 400
    encoding = headers.get("content-encoding", "")
    return None if is_identity(encoding) or encoding.strip().lower() in _KNOWN_ENCODINGS else 415


class Inflater:
    """Reads an encoded body piece by piece."""

    def __init__(self, encoding: str, max_bytes: int | None = None) -> None:
        self._is_gzip = encoding.strip().lower() in _GZIP
        self._max_bytes = max_bytes
        self._decompressor = zlib.decompressobj(_AUTO_DETECT)
        self._has_begun = False
        self._bytes_in = 0
        self._bytes_out = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what they stand for."""
        if not data:
            return b""
        self._bytes_in += len(data)
        pieces: list[bytes] = []
        while data:
            piece = self._decompress(data)
            self._bytes_out += len(piece)
            pieces.append(piece)
            if self._decompressor.unconsumed_tail:
                raise BodyTooLarge("the body is too large when it is unpacked")
            data = self._decompressor.unused_data
            if self._decompressor.eof and data:
                # A file of gzip's may be several, one after the other.
                if not self._is_gzip:
                    raise BadEncoding("there is more after the end of the body")
                self._decompressor = zlib.decompressobj(_AUTO_DETECT)
        return b"".join(pieces)

    def close(self) -> None:
        """No more comes: raise `BadEncoding` if the body breaks off."""
        if self._bytes_in and not self._decompressor.eof:
            raise BadEncoding("the body breaks off")

    def _decompress(self, data: bytes) -> bytes:
        most = max(_MIN_LIMIT, self._bytes_in * _MAX_GROWTH)
        left = (most if self._max_bytes is None else min(most, self._max_bytes)) - self._bytes_out
        try:
            # One more than is borne, so that what is too much can be told from what fits exactly.
            return self._decompressor.decompress(data, left + 1)
        except zlib.error as error:
            if self._has_begun or self._is_gzip:
                raise BadEncoding(f"the body is not what its encoding makes: {error}") from None
        finally:
            self._has_begun = True
        # Some leave out the head that deflate should have.
        self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._decompress(data)


def decode_body(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a whole body as it was; `TooLarge` if that is more than `most` bytes."""
    if not is_identity(encoding):
        inflater = Inflater(encoding, max_bytes)
        body = inflater.feed(body)
        inflater.close()
    if len(body) > max_bytes:
        raise BodyTooLarge("the body is too large")
    return body
