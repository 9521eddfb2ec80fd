"""OpenAI Responses: `POST /v1/responses`."""

from dragoman.simulator.api import Api
from dragoman.simulator.apis.openai.headers import BAD_KEY, NO_KEY, of_answer
from dragoman.simulator.apis.responses.accept import ALL_NOTES, accept
from dragoman.simulator.apis.responses.compaction import compact
from dragoman.simulator.apis.responses.errors import fail, refuse
from dragoman.simulator.apis.responses.shape import NAME
from dragoman.simulator.apis.responses.store import Store
from dragoman.simulator.apis.responses.stream import broken_off, stream
from dragoman.simulator.apis.responses.write import count, silenced, whole

API = Api(
    name=NAME,
    rules=ALL_NOTES,
    accept=accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    silenced=silenced,
    headers=of_answer,
    memory=Store,
    broken_off=broken_off,
    compact=compact,
)

__all__ = ["API"]
