"""The agent loop: call the model, run its tool calls, send the results, and call the model again.

Rules of this package: it knows only the core types and the tools. A model is a function, and an agent is a function of
the same type.
"""

from dragoman.agent.artifacts import Artifacts
from dragoman.agent.config import ApprovalRequest, Approvals, Approve, Decision
from dragoman.agent.config import ApprovalRequest as Wish
from dragoman.agent.conversation import AgentConversation
from dragoman.agent.history import Compaction, closed, summary_by, unfold_turns
from dragoman.agent.history import unfold_turns as unfolded
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import Control, Limits, Statistics, StopReason
from dragoman.agent.loop import Agent
from dragoman.agent.model import Model
from dragoman.agent.output import RunResult
from dragoman.agent.runtime import InProcess, Job, JobRunner, RunState, Runtime, Status, WatchedRuntime, Within, Work
from dragoman.agent.runtime import Job as Order
from dragoman.agent.runtime import JobRunner as Carrier
from dragoman.agent.runtime import RunState as State
from dragoman.agent.sources import ModelClient, ModelEndpoint, NamedModel, ToolSource
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
from dragoman.former_names import keep_attributes, keep_parameters

keep_attributes(Agent, carry="run_on")
keep_attributes(ApprovalRequest, egress="egress_reason")
keep_attributes(Control, limited="enforce_deadline")
keep_attributes(Job, told="first_output")
keep_attributes(RunState, told="last_output")
keep_parameters(Artifacts, "__init__", most="max_size")
keep_parameters(InProcess, "__init__", room="max_pending")

__all__ = [  # noqa: RUF022  grouped by purpose
    "Agent",
    "AgentConversation",
    "RunResult",
    "Hooks",
    "Model",
    "ModelClient",
    "ModelEndpoint",
    "NamedModel",
    "ToolSource",
    "Limits",
    "Statistics",
    "StopReason",
    "Approve",
    "Approvals",
    "ApprovalRequest",
    "Wish",
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
    "Order",
    "RunState",
    "State",
    "Status",
    "Work",
    "Recorder",
    "Control",
    "closed",
    "unfold_turns",
    "unfolded",
]
