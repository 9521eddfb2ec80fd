"""Bodies that were made smaller for the way: gzip and deflate, and no more of them than their size can be trusted with.

A few bytes can stand for gigabytes. What grows more than a hundredfold, beyond a size that hurts nobody, is refused
while it is being read.
"""

import zlib
from collections.abc import Mapping

ACCEPTED = "gzip, deflate"
ENTITY_HEADERS = frozenset({"expect", "content-length", "transfer-encoding", "content-encoding"})
"""Headers that describe a body as it was sent, not as it is after decoding."""
_GZIP = frozenset({"gzip", "x-gzip"})
_KNOWN = _GZIP | {"deflate"}
_GROWTH = 100
_HARMLESS = 1 << 20
_EITHER = 32 + zlib.MAX_WBITS
"""Reads what has a head of gzip's or zlib's."""


class BadEncoding(ValueError):  # noqa: N818  it says what the body is
    """The bytes are not what their encoding makes."""

    status = 400


class TooLarge(ValueError):  # noqa: N818  it says what the body is
    """The body is larger than its reader allows."""

    status = 413


def is_plain(encoding: str) -> bool:
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
    return None if is_plain(encoding) or encoding.strip().lower() in _KNOWN else 415


class Inflater:
    """Reads an encoded body piece by piece."""

    def __init__(self, encoding: str, most: int | None = None) -> None:
        self._gzip = encoding.strip().lower() in _GZIP
        self._most = most
        self._inflate = zlib.decompressobj(_EITHER)
        self._begun = False
        self._taken = 0
        self._given = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what they stand for."""
        if not data:
            return b""
        self._taken += len(data)
        pieces: list[bytes] = []
        while data:
            piece = self._inflated(data)
            self._given += len(piece)
            pieces.append(piece)
            if self._inflate.unconsumed_tail:
                raise TooLarge("the body is too large when it is unpacked")
            data = self._inflate.unused_data
            if self._inflate.eof and data:
                # A file of gzip's may be several, one after the other.
                if not self._gzip:
                    raise BadEncoding("there is more after the end of the body")
                self._inflate = zlib.decompressobj(_EITHER)
        return b"".join(pieces)

    def close(self) -> None:
        """No more comes: raise `BadEncoding` if the body breaks off."""
        if self._taken and not self._inflate.eof:
            raise BadEncoding("the body breaks off")

    def _inflated(self, data: bytes) -> bytes:
        most = max(_HARMLESS, self._taken * _GROWTH)
        left = (most if self._most is None else min(most, self._most)) - self._given
        try:
            # One more than is borne, so that what is too much can be told from what fits exactly.
            return self._inflate.decompress(data, left + 1)
        except zlib.error as error:
            if self._begun or self._gzip:
                raise BadEncoding(f"the body is not what its encoding makes: {error}") from None
        finally:
            self._begun = True
        # Some leave out the head that deflate should have.
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._inflated(data)


def decoded(body: bytes, encoding: str, most: int) -> bytes:
    """Return a whole body as it was; `TooLarge` if that is more than `most` bytes."""
    if not is_plain(encoding):
        inflater = Inflater(encoding, most)
        body = inflater.feed(body)
        inflater.close()
    if len(body) > most:
        raise TooLarge("the body is too large")
    return body
