"""Toy's HTTP API: one path, and its model names."""

from dragoman.dialects.api import Api, Endpoint, ServedPath

API = Api(
    paths=(ServedPath("/toy/talk", Endpoint(operation="generate")),),
    own_headers=frozenset({"x-toy"}),
    own_paths=r"^/toy/",
    model_names=r"toy-",
    default_model="toy-1",
)
