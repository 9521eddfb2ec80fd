"""Toy: a dialect that no vendor has, added from outside the package."""

from dialects.toy.compat import IMPLIED, TURNS
from dialects.toy.decoder import ToyDecoder
from dialects.toy.encoder import ToyEncoder
from dialects.toy.errors import MAPPED_ERROR_TYPES, build_error, parse_error
from dialects.toy.fields import POINTERS
from dialects.toy.renderer import render_request, write_tools
from dialects.toy.request import parse_request, read_tools
from dialects.toy.response import ENDS, build_response, parse_response
from dialects.toy.traits import ROWS
from dialects.toy.wire import ISSUER, NAME
from dragoman.dialects.api import READ_METHODS, Api, Endpoint, ModelEntry, ModelFormat, ModelRow, Query, ServedPath
from dragoman.dialects.record import Dialect, ReplyCapabilities


def _build_model_row(entry: ModelEntry) -> ModelRow:
    return {"toy": entry.name, "reads": entry.listed.input_limit, "made_by": entry.issuer}


def _build_model_page(rows: list[ModelRow], _query: Query) -> ModelRow:
    return {"toys": rows}


API = Api(
    paths=(
        ServedPath("/toy/talk", Endpoint(operation="generate")),
        ServedPath("/toy/toys", Endpoint(operation="models"), READ_METHODS),
    ),
    own_headers=frozenset({"x-toy"}),
    account_headers=frozenset({"x-toy-account"}),
    own_paths=r"^/toy/",
    model_names=r"toy-",
    default_model="toy-1",
    models=ModelFormat(member="toy", build_row=_build_model_row, build_page=_build_model_page),
)

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="call_",
    reply_prefix="toy_",
    history="lines",
    turns=TURNS,
    traits=ROWS,
    api=API,
    capabilities=ReplyCapabilities(reasoning=False, finishes=frozenset({"stop", "length", "tool_calls"})),
    pointers=POINTERS,
    reply_pointers={"call.id": ("/id",), "finish.reason": ("/end",), "usage": ("/tokens",)},
    mapped_finishes=ENDS,
    mapped_error_types=MAPPED_ERROR_TYPES,
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=ToyDecoder,
    encoder=ToyEncoder,
    parse_error=parse_error,
    build_error=build_error,
    implied=IMPLIED,
)
