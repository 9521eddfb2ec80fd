"""A request to translate, and the translated request."""

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.request import Request
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adaptation import Links
from dragoman.interpreter.signatures import Signer
from dragoman.interpreter.tools_cache import ToolSet
from dragoman.interpreter.undo import NO_UNDO, Undo


class Translation(Struct, frozen=True, kw_only=True):
    """A translated request and what is needed to translate its reply back."""

    call: Call
    losses: tuple[Loss, ...] = ()
    undo: Undo = NO_UNDO
    request: Request | None = None
    """The caller's request in the core; None when its bytes were passed on unread."""
    tool_set: ToolSet | None = None
    """Its tools as the cache has them; None for those that did not come as one array."""


class TranslationTask(Struct, frozen=True):
    """A request to translate, its two dialects and the options; see `translate_request`."""

    call: Call
    here: Dialect
    there: Dialect
    model: str = ""
    form: str = ""
    strict: bool = False
    signer: Signer | None = None
    links: Links | None = None
    text_calls: TextCalls = ""
