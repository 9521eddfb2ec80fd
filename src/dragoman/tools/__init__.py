"""Tools that Dragoman runs itself: made of typed functions or of definitions, called safely, many at once.

Rules of this room: it knows the neutral language and nothing else of ours. A tool is a value; what goes wrong with one
is a result.
"""

from dragoman.tools.executor import Executor, Spill
from dragoman.tools.handler import Flags, Handler, Invocation, ToolDefinitionError, ToolFailure, invocation
from dragoman.tools.progress import Progress, progress_to, reporter
from dragoman.tools.registry import Registry
from dragoman.tools.results import Execution, Outcome
from dragoman.tools.signature import FunctionTool, tool

__all__ = [  # noqa: RUF022  grouped by what they are for
    "tool",
    "FunctionTool",
    "Handler",
    "Flags",
    "ToolDefinitionError",
    "ToolFailure",
    "Invocation",
    "invocation",
    "Registry",
    "Executor",
    "Execution",
    "Outcome",
    "Spill",
    "Progress",
    "progress_to",
    "reporter",
]
