"""The shared state of one request while it is handled."""

from msgspec import Struct

from dragoman.agent import Runtime
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversation_recorder import ConversationRecorder
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange


class RequestContext(Struct):
    """One request and everything that handling it needs."""

    request: ClientRequest
    exchange: Exchange
    """Writes the response."""
    record: Record
    recorder: ConversationRecorder | None = None
    """Saves the reply in its conversation, if it belongs to one."""
    runtime: Runtime | None = None
    """Runs the steps of a request that is handled in the background."""
    heartbeat: Heartbeat | None = None
    """Starts the stream and keeps it alive; None for a whole reply."""
