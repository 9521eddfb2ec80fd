"""The calls of a streamed reply, told apart.

Rules: a non-empty id names its call; without one the index does; without either, the most recent call goes on. A new id
at a known index is a new call, and so is a name that comes after whole arguments. Some servers use one id for several
calls: a name with a known id is a new call at a new index, or with arguments after whole ones.
"""

from typing import TYPE_CHECKING

from dragoman.core.problems import Problem
from dragoman.wire.json import is_object

if TYPE_CHECKING:
    from dragoman.core.parts import CallForm, Signature


class StreamedCall:
    """A call while it arrives; its part index is -1 until it can be told."""

    __slots__ = ("ended", "fields", "form", "id", "index", "is_legacy", "name", "pieces", "signature")

    def __init__(self, call_id: str, name: str) -> None:
        self.id = call_id
        self.name = name
        self.form: CallForm = "json"
        self.index = -1
        self.pieces: list[str] = []
        self.ended = False
        self.is_legacy = False
        self.signature: Signature | None = None
        self.fields: dict[str, bytes] = {}

    def is_whole(self) -> bool:
        """Tell whether nothing can follow: the arguments are one complete object."""
        return bool(self.pieces) and self.form == "json" and is_object("".join(self.pieces))

    def check_repeat(self, text: str) -> None:
        """Let a server repeat itself after a call is over; anything new would be lost, so it fails the reply."""
        if text.strip() and text != "".join(self.pieces):
            raise Problem("malformed_reply", "arguments arrived for a tool call that was over")


class CallTable:
    """All calls of one reply, in the order they came."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}
        self._legacy: StreamedCall | None = None

    def find(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall:
        """Return the call a piece belongs to, a new one if it begins one."""
        call = self._known(call_id, index, name, text)
        if call is None:
            call = StreamedCall(call_id, name)
            self.calls.append(call)
        elif call.index < 0:
            call.id = call.id or call_id
            call.name = call.name or name
        if call_id:
            self._by_id[call_id] = call
        if index is not None:
            self._by_index[index] = call
        return call

    def _known(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        if call_id in self._by_id:
            return self._of_id(call_id, index, name, text)
        recent = self.calls[-1] if self.calls else None
        known = recent if index is None else self._by_index.get(index)
        if known is None:
            return None
        if call_id:
            # An id that comes late belongs to the call that still has none.
            return known if not known.id and known.index < 0 else None
        if not name or not known.name:
            return known
        if name != known.name and index is None:
            return None
        return None if text and known.is_whole() else known

    def _of_id(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        """Return the call of a known id, of several the one at `index`; None for a new call of that id."""
        there = None if index is None else self._by_index.get(index)
        known = there if there is not None and there.id == call_id else self._by_id[call_id]
        if not name or not known.name:
            return known
        if index is not None and there is None and known in self._by_index.values():
            return None
        # Whole arguments are looked for only where others begin: some servers repeat id and name with every piece.
        begins = text.lstrip().startswith("{")
        return None if begins and text != "".join(known.pieces) and known.is_whole() else known

    def legacy(self, name: str) -> StreamedCall:
        """Return the one call of the legacy field."""
        if self._legacy is None:
            self._legacy = StreamedCall("", name)
            self._legacy.is_legacy = True
            self.calls.append(self._legacy)
        self._legacy.name = self._legacy.name or name
        return self._legacy

    def whole(self) -> list[StreamedCall]:
        """Return the calls that were told and to which nothing can be added."""
        return [call for call in self.calls if call.index >= 0 and not call.ended and call.is_whole()]

    def all_whole(self) -> bool:
        """Tell whether nothing is missing from any call."""
        return all(call.ended or call.is_whole() for call in self.calls)
