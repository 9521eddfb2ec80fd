"""A streamed Messages reply: `decoder` reads one, `encoder` writes one."""

from dragoman.dialects.messages.stream.decoder import MessagesDecoder
from dragoman.dialects.messages.stream.encoder import MessagesEncoder

__all__ = ["MessagesDecoder", "MessagesEncoder"]
