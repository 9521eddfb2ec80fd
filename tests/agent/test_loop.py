"""Model, calls, results, and the model again."""

import asyncio

import pytest

from agent.scripted import Scripted, agent, call, reply, results_of, run_to_end, steps, text_of, user_request, whole
from dragoman.agent import CallEnded, CallStarted, InProcess, Limits, RunEnded, TurnEnded
from dragoman.agent.loop import Agent
from dragoman.core.events import Finished, Started, UsageSeen
from dragoman.core.parts import Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Tool, ToolChoice
from dragoman.core.stream import replay
from dragoman.tools import Executor, Registry, tool

GOOGLE = Signature("google", "c2lnbmVk")


@tool
def add(one: int, other: int) -> int:
    """Add two numbers."""
    return one + other


@tool
async def slow(name: str, turns: int) -> str:
    """Take some turns of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return name


def test_a_call_is_run_and_the_model_continues_with_its_result():
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="It is 3.")])
    reached = run_to_end(agent(model, add))
    assert reached.stop == "finished"
    assert [text_of(result) for result in results_of(model.requests[1])] == ["3"]
    assert [message.role for message in reached.history] == ["user", "assistant", "user", "assistant"]
    assert reached.statistics.turns == 2
    assert reached.statistics.calls == 1
    assert (reached.statistics.usage.input, reached.statistics.usage.output) == (30, 3)


def test_the_model_is_offered_the_tools_of_the_agent_after_those_of_the_client():
    model = Scripted([Text(text="Hello.")])
    run_to_end(agent(model, add), user_request(tools=(Tool(name="theirs"), Tool(name="add", description="another"))))
    assert [offered.name for offered in model.requests[0].tools] == ["theirs", "add"]
    assert model.requests[0].tools[1] == add.definition


def test_the_models_reply_is_sent_back_unchanged():
    thought = Reasoning(texts=("Let me add.",), signature=GOOGLE)
    requested = ToolCall(id="c", name="add", arguments='{ "other":2 , "one":1}', signature=GOOGLE)
    model = Scripted([thought, Text(text="Adding."), requested], [Text(text="3")])
    run_to_end(agent(model, add))
    assert model.requests[1].messages[1].parts == (thought, Text(text="Adding."), requested)


def test_parallel_calls_are_answered_in_their_order_in_one_message():
    calls = [call("slow", {"name": str(n), "turns": 9 - n}, f"call_{n}") for n in range(9)]
    model = Scripted(calls, [Text(text="Done.")])
    output = steps(agent(model, slow))
    assert [result.call_id for result in results_of(model.requests[1])] == [f"call_{n}" for n in range(9)]
    assert len(model.requests[1].messages) == 3
    finished = [step.call.id for step in output if isinstance(step, CallEnded)]
    assert finished != sorted(finished), "they ran at once, so the shorter ones ended first"


def test_steps_report_everything_in_order():
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    result = [type(step).__name__ for step in steps(agent(model, add)) if not type(step).__name__.startswith("Part")]
    turn = ["Started", "UsageSeen", "Finished"]
    assert result == [*turn, "CallStarted", "CallEnded", "TurnEnded", *turn, "TurnEnded", "RunEnded"]


def test_all_turns_are_one_reply_with_results_after_their_calls():
    calls = [call("slow", {"name": "a", "turns": 5}, "one"), call("slow", {"name": "b", "turns": 0}, "two")]
    model = Scripted([Text(text="Looking."), *calls], [Text(text="Done.")])
    result = whole(agent(model, slow))
    kinds = [(type(part).__name__, getattr(part, "executor", "")) for part in result.parts]
    assert kinds == [
        ("Text", ""),
        ("ToolCall", "provider"),
        ("ToolCall", "provider"),
        ("ToolResult", "provider"),
        ("ToolResult", "provider"),
        ("Text", ""),
    ]
    assert [part.call_id for part in result.parts if isinstance(part, ToolResult)] == ["one", "two"]
    assert (result.id, result.finish.reason) == ("reply_1", "stop")
    assert result.usage is not None
    assert (result.usage.input, result.usage.output) == (30, 3)


def test_a_reply_without_calls_passes_unchanged():
    output = reply([Reasoning(texts=("Hm.",), signature=GOOGLE), Text(text="Hello.")])

    async def model(request):
        for event in replay(output):
            yield event

    assert whole(agent(model, add)) == output


def test_an_agent_is_a_model():
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    outer = Agent(agent(model, add), agent(model, add)._config.executor)
    # The inner agent's calls are the provider's: the outer one has nothing left to run.
    assert [type(part).__name__ for part in whole(outer).parts] == ["ToolCall", "ToolResult", "Text"]


def test_a_call_of_the_clients_ends_the_run_and_stays_open():
    calls = [call("theirs", {"x": 1}, "open"), call("add", {"one": 1, "other": 2}, "own")]
    model = Scripted(calls)
    request = user_request(tools=(Tool(name="theirs"),))
    reached = run_to_end(agent(model, add), request)
    assert reached.stop == "client_calls"
    assert [part.call_id for part in reached.history[-1].parts if isinstance(part, ToolResult)] == ["own"]
    result = whole(agent(Scripted(calls), add), request)
    assert result.finish.reason == "tool_calls"
    assert [getattr(part, "executor", "") for part in result.parts] == ["client", "provider", "provider"]


def test_a_run_continues_when_the_clients_result_is_in_the_history():
    calls = (call("theirs", {"x": 1}, "open"), call("add", {"one": 1, "other": 2}, "own"))
    answers = (
        ToolResult(call_id="own", content=(Text(text="3"),)),
        ToolResult(call_id="open", content=(Text(text="4"),)),
    )
    request = user_request(tools=(Tool(name="theirs"),))
    history = (*request.messages, Message(role="assistant", parts=calls), Message(role="user", parts=answers))
    model = Scripted([Text(text="7")])
    reached = run_to_end(agent(model, add), type(request)(model="scripted", messages=history, tools=request.tools))
    assert reached.stop == "finished"
    assert model.requests[0].messages == history


def test_a_reply_in_the_history_is_split_into_its_original_turns():
    first = [Text(text="Looking."), call("add", {"one": 1, "other": 2}, "own"), call("theirs", {}, "open")]
    request = user_request(tools=(Tool(name="theirs"),))
    output = whole(agent(Scripted(first), add), request)
    answer = Message(role="user", parts=(ToolResult(call_id="open", content=(Text(text="4"),)),))
    history = (*request.messages, Message(role="assistant", parts=output.parts), answer)
    model = Scripted([Text(text="7")])
    run_to_end(agent(model, add), type(request)(model="scripted", messages=history, tools=request.tools))
    asked_for = model.requests[0].messages
    assert [message.role for message in asked_for] == ["user", "assistant", "user", "user"]
    assert asked_for[1].parts == tuple(first)
    assert [result.call_id for result in results_of(model.requests[0])] == ["own", "open"]


def test_an_unknown_tool_is_answered_with_the_nearest_names():
    model = Scripted([call("ad", {})], [Text(text="Sorry.")])
    reached = run_to_end(agent(model, add))
    assert "Did you mean 'add'?" in text_of(results_of(model.requests[1])[0])
    assert reached.statistics.failed == 1


def test_after_the_turn_limit_the_model_is_called_once_more_without_tools():
    def endless(request):
        if request.tool_choice is not None and request.tool_choice.mode == "none":
            return [Text(text="What I have.")]
        return [call("add", {"one": len(request.messages), "other": 2})]

    model = Scripted(endless)
    reached = run_to_end(agent(model, add, limits=Limits(turns=3)))
    assert (reached.stop, reached.statistics.turns, len(model.requests)) == ("turns", 4, 4)
    assert reached.finish.reason == "stop"
    assert model.requests[-1].tools == (add.definition,), "the history has calls of it"


def test_a_model_that_calls_in_its_last_turn_gets_an_answer_and_nothing_is_run():
    ran = []

    @tool
    def count() -> int:
        """Count."""
        ran.append(1)
        return len(ran)

    model = Scripted([call("count")])
    reached = run_to_end(agent(model, count, limits=Limits(turns=2)))
    assert (reached.stop, len(ran), reached.finish.reason) == ("turns", 2, "length")
    assert isinstance(reached.history[-1].parts[0], ToolResult)
    result = whole(agent(Scripted([call("count")]), count, limits=Limits(turns=2)))
    assert [type(part).__name__ for part in result.parts] == ["ToolCall", "ToolResult"] * 4


def test_a_call_in_the_last_turn_is_refused_and_the_model_is_called_one_final_time():
    def deaf(request):
        is_informed = any("no more turns for tools" in text_of(result) for result in results_of(request))
        return [Text(text="So far.")] if is_informed else [call("add", {"one": len(request.messages), "other": 2})]

    model = Scripted(deaf)
    reached = run_to_end(agent(model, add, limits=Limits(turns=1)))
    assert (reached.stop, reached.text, reached.finish.reason) == ("turns", "So far.", "stop")
    assert [request.tool_choice and request.tool_choice.mode for request in model.requests] == [None, "none", "none"]


def test_where_no_tool_may_be_called_none_is_run_whatever_the_model_calls():
    ran = []

    @tool
    def count() -> int:
        """Count."""
        ran.append(1)
        return len(ran)

    def deaf(request):
        return [Text(text="Without.")] if results_of(request) else [call("count")]

    reached = run_to_end(agent(Scripted(deaf), count), user_request(tool_choice=ToolChoice(mode="none")))
    assert (ran, reached.text, reached.statistics.turns) == ([], "Without.", 2)


def test_the_default_limit_is_ten_turns():
    model = Scripted(lambda request: [call("add", {"one": len(request.messages), "other": 2})])
    assert run_to_end(agent(model, add)).statistics.turns == 12


def test_a_forced_first_call_is_free_after_the_first_result():
    choice = ToolChoice(mode="required", names=("add",), parallel=False)
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    run_to_end(agent(model, add), user_request(tool_choice=choice))
    assert model.requests[0].tool_choice == choice
    assert model.requests[1].tool_choice == ToolChoice(mode="auto", parallel=False)


def test_closing_the_steps_stops_the_run():
    story, begun = [], asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        story.append("began")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            story.append("stopped")
        return ""

    async def leave():
        made = agent(Scripted([call("hang")]), hang)
        result = made.steps(user_request())
        async for step in result:
            if isinstance(step, CallStarted):
                await begun.wait()
                break
        await result.aclose()
        assert made._runs == {}

    asyncio.run(leave())
    assert story == ["began", "stopped"]


def test_a_run_waits_for_the_reader_of_its_steps():
    collected = []

    async def talkative(request):
        for n in range(500):
            collected.append(n)
            yield UsageSeen(reply([]).usage) if n else Started("r", "m")

    async def read_little():
        watched = agent(talkative, add, runtime=lambda run: InProcess(run, max_pending=4)).steps(user_request())
        async for _ in watched:
            await asyncio.sleep(0.01)
            break
        assert len(collected) < 10
        await watched.aclose()

    asyncio.run(read_little())


def test_ids_that_come_again_are_calls_of_their_own():
    keys = []

    class Listening(InProcess):
        async def step(self, key, work):
            keys.append(key)
            return await super().step(key, work)

    ran = []

    @tool(side_effects=True)
    def charge(cents: int) -> str:
        """Charge."""
        ran.append(cents)
        return f"charged {cents}"

    model = Scripted([call("charge", {"cents": 1})], [call("charge", {"cents": 2})], [Text(text="Done.")])
    run_to_end(agent(model, charge, runtime=Listening))
    assert ran == [1, 2]
    assert keys == ["model:1", "tool:call_1", "model:2", "tool:call_1#2", "model:3"]


def test_turn_ended_contains_the_added_messages():
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    turns = [step for step in steps(agent(model, add)) if isinstance(step, TurnEnded)]
    assert [turn.number for turn in turns] == [1, 2]
    assert [len(turn.messages) for turn in turns] == [2, 1]
    assert isinstance(turns[0].messages[1].parts[0], ToolResult)


def test_a_second_run_with_the_same_id_is_refused_while_the_first_is_active():
    async def twice():
        made = agent(Scripted([Text(text="x")]), add)
        first = made.steps(user_request(), run="r")
        await anext(first)
        with pytest.raises(ValueError, match="already active"):
            await anext(made.steps(user_request(), run="r"))
        await first.aclose()
        assert isinstance([step async for step in made.steps(user_request(), run="r")][-1], RunEnded)

    asyncio.run(twice())


def test_finished_comes_once_and_last():
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])

    async def read():
        return [event async for event in agent(model, add)(user_request())]

    result = asyncio.run(read())
    assert [type(event) for event in result].count(Finished) == 1
    assert isinstance(result[-1], Finished)


def test_an_unparsable_call_is_shown_only_to_the_model():
    unread = Text(text="TOOL_CALL: add\nARGUMENTS: {,}", unread=True)
    model = Scripted([Text(text="I add."), unread, Text(text="Wait."), call("add", {"one": 1, "other": 2})], [unread])
    result = whole(agent(model, add))
    kinds = [part.text if isinstance(part, Text) else type(part).__name__ for part in result.parts]
    assert kinds == ["I add.", "Wait.", "ToolCall", "ToolResult"]
    assert unread in model.requests[1].messages[1].parts
    assert run_to_end(agent(Scripted([Text(text="I add."), unread]), add)).text == "I add."


def test_tools_that_come_during_a_run_are_offered_from_the_next_turn_on_behind_those_that_were():
    registry = Registry()

    @registry.register
    def grow() -> str:
        """Bring a tool, describe another otherwise, and take one away."""
        registry.exchange(("echo", "shrink"), (tool(echo), tool(name="later")(lambda: "came later")))
        return "grown"

    def echo(words: str) -> str:
        """Say it again, better."""
        return words

    registry.register(tool(name="echo", description="Say it.")(echo))
    registry.register(tool(name="shrink")(lambda: ""))
    model = Scripted([call("grow", {}, "1")], [call("later", {}, "2"), call("client", {}, "3")], [Text(text="Done.")])
    request = user_request(tools=(Tool(name="client"), Tool(name="own")))
    made = Agent(model, Executor(registry))
    steps(made, request)
    first, second = ([tool.name for tool in seen.tools] for seen in model.requests)
    assert first == ["client", "own", "grow", "echo", "shrink"]
    assert second == [*first, "later"]
    assert [seen.tools[3].description for seen in model.requests] == ["Say it.", "Say it again, better."]
