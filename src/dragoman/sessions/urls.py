"""Open the store that a URL names."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dragoman.sessions.store import Store


def usual_url() -> str:
    """Return where sessions are kept if nobody says where: with the state of the user's other programs."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return f"sqlite:///{state}/dragoman/sessions.sqlite3"  # an absolute path, so four slashes in all


def open_store(url: str) -> Store:
    """Open a store; ValueError for a URL that names none, `Unavailable` for a file that cannot be written."""
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from dragoman.sessions.sqlite import Sqlite  # noqa: PLC0415  only who uses it

            path = unquote(parts.path).removeprefix("/")
            if parts.netloc or not path:
                raise ValueError("a file is named like sqlite:///relative.db or sqlite:////absolute.db")
            return Store(Sqlite(Path(path)))
        case "postgresql" | "postgres":
            try:
                from dragoman.sessions.postgres import Postgres  # noqa: PLC0415  an extra
            except ImportError:
                raise ValueError("PostgreSQL needs an extra: pip install 'dragoman[postgres]'") from None
            return Store(Postgres(url))
        case _:
            raise ValueError("must begin with sqlite:/// or postgresql://")
