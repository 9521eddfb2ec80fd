"""Define tools (from typed functions or from schemas) and execute the calls of a model concurrently.

This package depends only on the core types. A tool is an immutable value, and every failure of a tool becomes a failed
result.
"""

from dragoman.former_names import keep_attributes, keep_parameters
from dragoman.tools.context import RunContext
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

keep_attributes(Executor, fits="can_run", stretches="group_calls")
keep_attributes(Registry, only="subset")
keep_attributes(Handler, renamed="with_name")
keep_attributes(Invocation, unswayed="untainted")
keep_attributes(Execution, ran="has_run")
keep_parameters(Executor, "__init__", remembered="max_cached_results", absent="explain_missing")
keep_parameters(Executor, "perform", unswayed="untainted")

__all__ = [  # noqa: RUF022  grouped by what they are for
    "tool",
    "FunctionTool",
    "Handler",
    "Flags",
    "ToolDefinitionError",
    "ToolFailure",
    "Invocation",
    "RunContext",
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
