"""Where processes that tests start keep what they compile: to compile everything for each would take longer than the tests."""

import atexit
from tempfile import TemporaryDirectory

_FOLDER = TemporaryDirectory(prefix="dragoman-compiled-")
atexit.register(_FOLDER.cleanup)
VARIABLES = {"PYTHONPYCACHEPREFIX": _FOLDER.name, "PYTHONDONTWRITEBYTECODE": ""}
"""What such a process finds in its environment."""
