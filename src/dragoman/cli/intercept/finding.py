"""Find mitmproxy, or install it into an environment of its own once the user has agreed.

Its requirements do not fit ours, so it never comes into our environment. What is found on the PATH is the user's own
choice and goes first; what we install lies among the user's data and is used by nothing else.
"""

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from dragoman.cli.intercept.folders import home, private

REQUIREMENT = "mitmproxy>=11.0.2,<13"
_PROGRAM = "mitmdump"
_READY = "ready"
_REMEDY = "dragoman intercept --install"
_LAST_WORDS = 2000


class MissingError(Exception):
    """There is no mitmproxy; the words say what to do."""


def mitmdump(agreed: Callable[[str], bool]) -> Path:
    """Return the program; `agreed` is asked, with a question, before anything is installed."""
    found = _found()
    if found is not None:
        return found
    folder = home() / "mitmproxy"
    if not agreed(f"mitmproxy is needed and not here. Install it ({REQUIREMENT}) with pip into {folder}?"):
        raise MissingError(f"mitmproxy is not installed: `{_REMEDY}` installs it, or put mitmdump on the PATH")
    return _installed(folder)


def _found() -> Path | None:
    on_path = shutil.which(_PROGRAM)
    if on_path is not None:
        return Path(on_path)
    own = home() / "mitmproxy"
    return own / "bin" / _PROGRAM if (own / _READY).is_file() else None


def _installed(folder: Path) -> Path:
    private(home())
    sys.stderr.write(f"dragoman: installing {REQUIREMENT} into {folder}\n")
    venv.create(folder, clear=True, with_pip=True)
    words = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*words, REQUIREMENT], capture_output=True, text=True, check=False)  # noqa: S603  # no shell
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise MissingError(f"pip could not install {REQUIREMENT}:\n{done.stderr.strip()[-_LAST_WORDS:]}")
    (folder / _READY).touch()
    return folder / "bin" / _PROGRAM
