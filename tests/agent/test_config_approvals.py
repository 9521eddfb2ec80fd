"""Allow, deny, ask."""

import asyncio

import pytest

from agent.scripted import Scripted, agent, call, results_of, steps, text_of, user_request, whole
from dragoman.agent import ApprovalAsked, CallEnded, CallStarted, InProcess, Limits
from dragoman.agent.config import Approvals
from dragoman.core.parts import Text
from dragoman.tools import tool


class Safe:
    """A tool that remembers what it did."""

    def __init__(self):
        self.opened = []

        @tool(side_effects=True)
        def open_safe(number: int) -> str:
            """Open a safe."""
            self.opened.append(number)
            return f"safe {number} is open"

        self.tool = open_safe


def open_session(*numbers):
    return Scripted([call("open_safe", {"number": n}, f"call_{n}") for n in numbers], [Text(text="Done.")])


def answer_questions(made, *answers):
    """Run, answering the questions in the given order of calls."""

    async def read():
        result, questions = [], []
        async for step in made.steps(user_request(), run="r"):
            result.append(step)
            if isinstance(step, ApprovalAsked):
                questions.append(step)
            if len(questions) == len(answers):
                for topic, answer in zip([question.topic for question in questions], answers, strict=True):
                    assert made.answer("r", topic, answer)
                questions.clear()
        return result

    return asyncio.run(read())


def test_a_denied_call_is_not_run_and_the_model_gets_an_error():
    safe, model = Safe(), open_session(1)
    steps(agent(model, safe.tool, approve=lambda requested: "deny"))
    assert safe.opened == []
    assert "not approved" in text_of(results_of(model.requests[1])[0])


def test_a_call_that_needs_approval_waits_for_it():
    safe, model = Safe(), open_session(1, 2, 3)

    async def approve(requested):
        return "allow" if requested.call.id == "call_2" else "ask"

    output = answer_questions(agent(model, safe.tool, approve=approve), "allow", "deny")
    assert sorted(safe.opened) == [1, 2]
    assert [step.call.id for step in output if isinstance(step, ApprovalAsked)] == ["call_1", "call_3"]
    assert [result.failed for result in results_of(model.requests[1])] == [False, False, True]
    order = [type(step) for step in output if isinstance(step, ApprovalAsked | CallStarted)]
    assert order == [ApprovalAsked, ApprovalAsked, CallStarted, CallStarted], "all are asked before anything is run"


@pytest.mark.parametrize("answer", ["deny", False, None, "yes please", {"allow": True}, 1])
def test_everything_but_a_clear_yes_is_a_no(answer):
    safe = Safe()
    answer_questions(agent(open_session(1), safe.tool, approve=lambda requested: "ask"), answer)
    assert safe.opened == []


@pytest.mark.parametrize("yes", ["allow", True])
def test_true_counts_as_approval(yes):
    safe = Safe()
    answer_questions(agent(open_session(1), safe.tool, approve=lambda requested: "ask"), yes)
    assert safe.opened == [1]


def test_no_answer_is_a_no():
    safe, model = Safe(), open_session(1)
    steps(agent(model, safe.tool, approve=lambda requested: "ask", limits=Limits(approval=0.05)))
    assert safe.opened == []
    assert "nobody answered within 0.05 seconds" in text_of(results_of(model.requests[1])[0])


def test_without_steps_no_approval_is_possible_so_the_call_is_refused_at_once():
    safe, model = Safe(), open_session(1)
    whole(agent(model, safe.tool, approve=lambda requested: "ask"))
    assert safe.opened == []
    assert "there is nobody to ask" in text_of(results_of(model.requests[1])[0])


def test_no_approval_is_requested_for_a_call_that_cannot_run():
    safe = Safe()
    model = Scripted([call("open_safe", {"number": "one"}), call("open_saf", {}, "two")], [Text(text="Done.")])
    result = steps(agent(model, safe.tool, approve=lambda requested: "ask", limits=Limits(approval=0.05)))
    assert not any(isinstance(step, ApprovalAsked) for step in result)
    assert [step.execution.outcome for step in result if isinstance(step, CallEnded)] == ["invalid", "unknown"]


def test_a_policy_is_called_once_as_a_separate_step():
    keys = []

    class Listening(InProcess):
        async def step(self, key, work):
            keys.append(key)
            return await super().step(key, work)

    steps(agent(open_session(1), Safe().tool, approve=lambda requested: "allow", runtime=Listening))
    assert keys == ["model:1", "approve:call_1", "tool:call_1", "model:2"]


def test_a_policy_by_names():
    @tool
    def read() -> str:
        """Read."""
        return ""

    safe = Safe()
    policy = Approvals({"open_*": "deny"}, others="allow")
    model = Scripted([call("open_safe", {"number": 1}, "a"), call("read", {}, "b")], [Text(text="Done.")])
    output = steps(agent(model, safe.tool, read, approve=policy))
    assert {step.call.id: step.execution.outcome for step in output if isinstance(step, CallEnded)} == {
        "a": "denied",
        "b": "succeeded",
    }
    assert [result.call_id for result in results_of(model.requests[1])] == ["a", "b"]


def test_a_policy_can_require_approval_for_tools_with_side_effects():
    safe = Safe()
    answer_questions(agent(open_session(1), safe.tool, approve=Approvals(side_effects="ask")), "allow")
    assert safe.opened == [1]


def test_an_approval_for_a_finished_run_has_no_effect():
    made = agent(open_session(1), Safe().tool)
    steps(made)
    assert not made.answer("r", "approval:call_1", "allow")


def test_the_time_of_a_run_ends_a_wait_too():
    safe = Safe()
    last = steps(agent(open_session(1), safe.tool, approve=lambda requested: "ask", limits=Limits(seconds=0.5)))[-1]
    assert (last.stop, safe.opened) == ("seconds", [])
    assert last.history[-1].parts[0].failed
