"""The table `[search]` of the configuration: who searches the web for targets that cannot."""

from typing import Annotated

from msgspec import Meta, Struct

from dragoman.http.addresses import LinkRefused, parse_location

MODEL_BACKEND = "model"


class SearchTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The search backend, and its limits."""

    backend: str = ""
    """"model", or the URL of a SearXNG server's search; empty for none."""
    model: str = ""
    """The model that searches, for the backend "model"."""
    key: str = ""
    """Sent to the URL as a bearer token."""
    seconds: Annotated[float, Meta(gt=0)] = 20.0
    """Timeout of a search."""
    max_bytes: Annotated[int, Meta(ge=1)] = 2 << 20
    """Maximum bytes of the server's answer."""
    max_results: Annotated[int, Meta(ge=1)] = 10
    """Pages of a search that the model and the client get."""
    max_uses: Annotated[int, Meta(ge=1)] = 8
    """Searches in one reply, for a request that sets no limit of its own."""

    def __post_init__(self) -> None:
        if self.backend == MODEL_BACKEND:
            if not self.model:
                raise ValueError('the backend "model" needs `model`: the name of a model that can search the web')
            if self.key:
                raise ValueError('`key` is only for a URL; the backend "model" uses the key of its upstream')
            return
        if self.model:
            raise ValueError('`model` is only for backend = "model"')
        if self.key and not self.backend:
            raise ValueError("`key` needs a `backend`: the URL that it is sent to")
        if self.backend:
            try:
                parse_location(self.backend)
            except LinkRefused as refusal:
                raise ValueError(
                    f'backend {self.backend!r} is neither "model" nor a URL ({refusal}); write, for example, '
                    '"http://127.0.0.1:8080/search"'
                ) from None
