"""The vendors' APIs by name. Each is imported on first use, so that a simulator starts quickly.

Chat-compatible servers are found by name too, but are not listed among the vendors.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from dragoman.simulator.apis.api import Api
from dragoman.simulator.apis.routes import SERVERS

NAMES = ("chat", "responses", "messages", "gemini")


class _Apis(Mapping[str, Api]):
    def __init__(self) -> None:
        self._loaded: dict[str, Api] = {}

    def __getitem__(self, name: str) -> Api:
        if name in SERVERS:
            return import_module(f"{__name__}.servers").SERVERS[name]
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = import_module(f"{__name__}.{name}").API
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


APIS: Mapping[str, Api] = _Apis()
