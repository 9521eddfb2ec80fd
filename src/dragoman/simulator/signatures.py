"""Signatures the simulator issues: opaque to clients, and bound to what they sign.

A token holds a mark, a number that makes it the only one of its kind, and a digest over both and the content it signs.
On return it is genuine, altered, moved (genuine, but for other content) or foreign (not one of ours).
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import Literal

Verdict = Literal["genuine", "altered", "moved", "foreign"]
_MARK = b"dragoman-sim/1"
_NUMBER = 8
_DIGEST = 16


class Signer:
    """Issues and judges; two simulators with the same seed know each other's signatures."""

    def __init__(self, seed: int = 0) -> None:
        self._key = hashlib.sha256(_MARK + str(seed).encode()).digest()

    def issue(self, content: str, occasion: str) -> str:
        """Sign `content`; the same content on another `occasion` (a reply's id and place) gets another token."""
        number = hashlib.sha256(occasion.encode()).digest()[:_NUMBER]
        token = _MARK + number + self._digest(number, b"") + self._digest(number, content.encode())
        return b64encode(token).decode()

    def judge(self, token: str, content: str) -> Verdict:
        """Tell what became of a token."""
        try:
            raw = b64decode(token, validate=True)
        except (Error, ValueError):
            return "altered" if b64encode(_MARK).decode()[:-4] in token else "foreign"
        if not raw.startswith(_MARK):
            return "foreign"
        number = raw[len(_MARK) :][:_NUMBER]
        rest = raw[len(_MARK) + _NUMBER :]
        own, signed = rest[:_DIGEST], rest[_DIGEST:]
        if len(signed) != _DIGEST or not hmac.compare_digest(own, self._digest(number, b"")):
            return "altered"
        return "genuine" if hmac.compare_digest(signed, self._digest(number, content.encode())) else "moved"

    def _digest(self, number: bytes, content: bytes) -> bytes:
        return hmac.new(self._key, number + content, hashlib.sha256).digest()[:_DIGEST]
