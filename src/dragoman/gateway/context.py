"""What the steps of one request share, so that nothing else has to be passed from step to step."""

from msgspec import Struct

from dragoman.agent import Runtime
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversations.recorder import ConversationRecorder
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange


class RequestContext(Struct):
    """One request that is being answered."""

    request: ClientRequest
    exchange: Exchange
    """Where the response is written."""
    record: Record
    recorder: ConversationRecorder | None = None
    """Saves the answer in its conversation, if it belongs to one."""
    runtime: Runtime | None = None
    """Runs the steps of a request that is answered in the background."""
    heartbeat: Heartbeat | None = None
    """Starts the stream and keeps it alive; None for a whole response."""
