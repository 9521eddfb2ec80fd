"""A part of a reply on its way to the client."""

from msgspec import structs

from dragoman.core.events import Event, PartDelta, PartSigned
from dragoman.core.parts import AnyPart, Reasoning, Signature, ToolCall


class ReplyPart:
    """A part on its way: its index at the client, and for a call that must be seen whole, its events so far."""

    __slots__ = (
        "begins",
        "citations",
        "fields",
        "held",
        "index",
        "item",
        "kind",
        "lost",
        "part",
        "signature",
        "signed",
        "texts",
        "where",
    )

    def __init__(self, index: int | None, part: AnyPart) -> None:
        self.index = index
        self.part = part
        self.kind = part.__class__
        self.where = part.where
        self.held: list[Event] | None = None
        self.begins: str | None = None
        self.signed = False
        self.signature: Signature | None = None
        """The signature of a part that is left out."""
        self.item = ""
        """The id of its item, if that travels with its signature."""
        self.fields: dict[str, bytes] = {}
        """What only its own dialect understands, until it is known what travels with the signature."""
        self.citations = 0
        self.lost = ""
        """Why it is left out, if that is booked when it is whole."""
        self.texts: list[str] | None = None
        """For a client that parses arguments, what it has been told of them; of a part that is left out, its text."""

    @property
    def arguments(self) -> str:
        """The arguments of a held call."""
        return "".join(event.text for event in self.held or () if isinstance(event, PartDelta))

    def whole(self) -> AnyPart:
        """Return a part that is left out as it has been told."""
        signed = (event.signature for event in self.held or () if isinstance(event, PartSigned))
        signature = next(signed, self.signature)
        text = self.arguments if self.texts is None else "".join(self.texts)
        match self.part:
            case ToolCall():
                return structs.replace(self.part, arguments=text or "{}", signature=signature)
            case Reasoning() if text:
                return structs.replace(self.part, texts=(text,), signature=signature)
            case _:
                return structs.replace(self.part, signature=signature)
