"""What cannot be done is said in words, with exit code 2."""

import errno
import sys
from collections.abc import Callable

from dragoman.cli.intercept.finding import MissingError
from dragoman.cli.intercept.folders import FolderError
from dragoman.cli.intercept.mitmdump import ProxyFailedError
from dragoman.cli.intercept.roots import RootsError
from dragoman.cli.intercept.variables import ProxyError
from dragoman.config import ConfigError

_ERRORS = (ConfigError, FolderError, MissingError, OSError, ProxyError, ProxyFailedError, RootsError)
_TAKEN = "the gateway's address is taken: name the one that listens there with --gateway, or another with --listen"


def told(work: Callable[[], int]) -> int:
    """Do it, and return its exit code."""
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except _ERRORS as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        sys.stderr.write(f"dragoman: {_TAKEN if taken else error}\n")
        return 2
