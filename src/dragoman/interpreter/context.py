"""What a reply is an answer to, and what is needed to tell it."""

from msgspec import Struct, structs

from dragoman.core.request import Request
from dragoman.dialects.record import Dialect
from dragoman.interpreter.fitting import ENVELOPES, NO_UNDO, Undo
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.text_calls.hearing import Hearing


class Context(Struct, frozen=True):
    """What a reply is an answer to: the client's request in the core, the way back, the envelope it wants."""

    request: Request | None = None
    undo: Undo = NO_UNDO
    form: str = ""
    now: int | None = None
    """The time a reply is said to be made at that tells none itself, in seconds since 1970."""

    @property
    def salt(self) -> str:
        """Keep minted ids unique in a conversation even where the upstream names no reply."""
        return str(len(self.request.messages)) if self.request is not None else ""

    @property
    def passes(self) -> bool:
        """Tell whether a reply in the client's own dialect can pass as it is."""
        return self.undo is NO_UNDO and not self.form

    def reply_options(self) -> ReplyOptions:
        """Return how the reply is adapted to the client."""
        return ReplyOptions(self.salt, self.undo.single)

    def hearing(self, there: Dialect, ledger: Ledger) -> Hearing | None:
        """Return what hears calls in the text of a model that has no others."""
        spoken = self.undo.spoken
        return Hearing(spoken, there.call_prefix, self.salt, ledger) if spoken is not None else None

    def client_request(self) -> Request | None:
        """Return the request the reply's writer looks at for what it must echo and how it must wrap."""
        if not self.form:
            return self.request
        request = self.request or Request(model="", messages=())
        return structs.replace(request, spelling=request.spelling | {self.form})


NO_CONTEXT = Context()


def is_wrapped_otherwise(dialect: Dialect, head: bytes, context: Context) -> bool:
    """Tell whether a reply stands in an envelope that the client did not use itself, or in none where it did."""
    if dialect.is_wrapped is None:
        return False
    spoke = context.request is not None and bool(context.request.spelling & ENVELOPES)
    return dialect.is_wrapped(head) is not spoke
