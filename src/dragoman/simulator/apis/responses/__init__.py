"""OpenAI Responses: `POST /v1/responses`."""

from dragoman.simulator.api import Api
from dragoman.simulator.apis.responses.accept import ALL_NOTES, accept
from dragoman.simulator.apis.responses.errors import BAD_KEY, fail, refuse
from dragoman.simulator.apis.responses.shape import NAME
from dragoman.simulator.apis.responses.stream import stream
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
    silenced=silenced,
    remembers=True,
)

__all__ = ["API"]
