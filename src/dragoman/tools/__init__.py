"""Define tools (from typed functions or from schemas) and execute the calls of a model concurrently.

This package depends only on the core types. A tool is an immutable value, and every failure of a tool becomes a failed
result.
"""

from dragoman.tools.executor import Executor, Spill
from dragoman.tools.handler import (
    Flags,
    Handler,
    Invocation,
    Progress,
    ToolDefinitionError,
    ToolFailure,
    invocation,
    progress_to,
    reporter,
)
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
