"""Load the dialects and upstream kinds that other installed packages declare as entry points.

The name of an entry point is the name of the dialect or kind; it loads a `Dialect` or an `UpstreamKind`. The command
and the gateway load them; a program that uses the library may also call `register` of the two registries itself.
"""

_DIALECTS = "dragoman.dialects"
_UPSTREAMS = "dragoman.upstreams"


def dialect_names() -> tuple[str, ...]:
    """Return the names of the dialects that other packages declare, without loading them."""
    from importlib.metadata import entry_points  # noqa: PLC0415  slow to import, and most commands do not need it

    return tuple(entry.name for entry in entry_points(group=_DIALECTS))


def load_plugins() -> None:
    """Register the dialects and upstream kinds of installed packages that are not registered yet."""
    from importlib.metadata import entry_points  # noqa: PLC0415  as above

    dialects, kinds = entry_points(group=_DIALECTS), entry_points(group=_UPSTREAMS)
    if dialects:
        from dragoman.dialects import registry  # noqa: PLC0415  loads every dialect

        for entry in dialects:
            if entry.name not in registry.DIALECTS:
                registry.register(entry.load())
    if kinds:
        from dragoman.upstreams import registry as upstreams  # noqa: PLC0415  loads every kind

        for entry in kinds:
            if entry.name not in upstreams.KINDS:
                upstreams.register(entry.load())
