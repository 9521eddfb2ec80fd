"""The one place from which others look on: metrics, the log, and whatever wants to see exchanges come and go.

An observer is told at once and must not take long. One that fails is reported to the loop; the request goes on.
"""

import asyncio
from collections.abc import Callable, Iterable

from dragoman.gateway.record import Record

Observer = Callable[[Record], None]
"""Is told of an exchange. The record is the same object from beginning to end, and filled in as it goes on."""


class Observers:
    """Everybody who looks on."""

    def __init__(self, *, begun: Iterable[Observer] = (), ended: Iterable[Observer] = ()) -> None:
        self._begun = tuple(begun)
        self._ended = tuple(ended)

    def begin(self, record: Record) -> None:
        """An exchange has come in; nothing is known of it yet but its dialect and what it asks for."""
        _tell(self._begun, record)

    def end(self, record: Record) -> None:
        """An exchange is over; whoever keeps its record keeps no error that was raised."""
        _tell(self._ended, record)
        record.settle()


def _tell(observers: Iterable[Observer], record: Record) -> None:
    for observer in observers:
        try:
            observer(record)
        except Exception as error:  # noqa: BLE001  whoever looks on must not be able to do harm
            report = {"message": f"an observer failed on {record.id}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(report)
