"""The agent loop: call the model, run its tool calls, send the results, and call the model again.

Rules of this package: it knows only the core types and the tools. A model is a function, and an agent is a function of
the same type.
"""

from dragoman.agent.artifacts import Artifacts
from dragoman.agent.config import ApprovalRequest, Approvals, Approve, Decision
from dragoman.agent.history import Compaction, closed, summary_by, unfold_turns
from dragoman.agent.limits import Control, Limits, Statistics, StopReason
from dragoman.agent.loop import Agent
from dragoman.agent.model import Model
from dragoman.agent.runtime import InProcess, Job, JobRunner, RunState, Runtime, Status, WatchedRuntime, Within, Work
from dragoman.agent.runtime import JobRunner as Carrier  # its documented name in earlier versions
from dragoman.agent.steps import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    Recorder,
    RunEnded,
    Step,
    TurnEnded,
)

__all__ = [  # noqa: RUF022  grouped by purpose
    "Agent",
    "Model",
    "Limits",
    "Statistics",
    "StopReason",
    "Approve",
    "Approvals",
    "ApprovalRequest",
    "Decision",
    "Artifacts",
    "Compaction",
    "summary_by",
    "Step",
    "CallStarted",
    "CallProgressed",
    "CallEnded",
    "ApprovalAsked",
    "TurnEnded",
    "Compacted",
    "RunEnded",
    "Runtime",
    "WatchedRuntime",
    "InProcess",
    "Within",
    "JobRunner",
    "Carrier",
    "Job",
    "RunState",
    "Status",
    "Work",
    "Recorder",
    "Control",
    "closed",
    "unfold_turns",
]
