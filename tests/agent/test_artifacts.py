"""Outputs that are too large for a model: kept whole, read piece by piece."""

import asyncio
import re

from agent.scripted import Scripted, call, results_of, text_of, user_request
from dragoman.agent import Agent
from dragoman.agent.artifacts import Artifacts
from dragoman.core.parts import Inline, Media, Text
from dragoman.tools import Executor, Registry, tool

LOG = "".join(f"line {n}\n" for n in range(20_000))


@tool
def read_log() -> str:
    """Read the log."""
    return LOG


def test_a_model_reads_the_rest_of_what_was_cut():
    artifacts = Artifacts()
    executor = Executor(Registry(read_log, artifacts.tool), max_output=1000, spill=artifacts.spill)

    def read_on(request):
        note = text_of(results_of(request)[-1])
        found = re.search(r"read_artifact\(id='(\w+)'", note)
        return [call("read_artifact", {"id": found[1], "start": 100_000, "length": 50}, "second")]

    model = Scripted([call("read_log")], read_on, [Text(text="Read.")])
    ended = asyncio.run(Agent(model, executor).run("Read the log."))
    first, second = (text_of(result) for result in results_of(model.requests[-1]))
    assert len(first) < 1200
    assert second == f"[characters 100,000 to 100,050 of {len(LOG):,}]\n{LOG[100_000:100_050]}"
    assert not any(result.failed for result in results_of(model.requests[-1]))
    assert ended.untrusted, "nobody knows who wrote an artifact"


def test_a_piece_is_bounded_and_a_place_beyond_the_end_is_empty():
    artifacts = Artifacts()
    name = re.search(r"'(\w+)'", artifacts.spill(call("x"), (Text(text=LOG),)))[1]
    assert len(artifacts.read(name, 0, 10**9)) < 70_000
    assert artifacts.read(name, 10**9).endswith("]\n")
    assert artifacts.read(name, -5, 4).endswith("\nline")


def test_an_artifact_that_is_not_there_is_a_failure_with_advice():
    artifacts = Artifacts()
    result = asyncio.run(Executor(Registry(artifacts.tool)).execute(call("read_artifact", {"id": "artifact_1"})))
    assert result.failed
    assert "Run the tool again" in text_of(result)


def test_the_oldest_is_forgotten_when_the_shelf_is_full():
    artifacts = Artifacts(max_size=250)
    names = [re.search(r"'(\w+)'", artifacts.spill(call("x"), (Text(text="x" * 100),)))[1] for _ in range(3)]
    assert list(artifacts._entries) == names[1:]
    assert artifacts._sizes.total() == 200


def read_spilled(executor: Executor) -> str:
    result = asyncio.run(executor.execute(call("read_log")))
    return re.search(r"read_artifact\(id='(\w+)'", text_of(result))[1]


def test_an_artifact_is_read_only_by_whom_it_was_kept_for():
    artifacts = Artifacts()
    executor = Executor(Registry(read_log, artifacts.tool), max_output=1000, spill=artifacts.spill)
    ann, bob = executor.of(owner="ann"), executor.of(owner="bob")
    reading = call("read_artifact", {"id": read_spilled(ann), "length": 4})
    assert text_of(asyncio.run(ann.execute(reading))).endswith("\nline")
    for other in (bob, executor):
        result = asyncio.run(other.execute(reading))
        assert result.failed
        assert "there is no artifact" in text_of(result)


def test_an_owner_with_many_artifacts_evicts_only_its_own():
    artifacts = Artifacts(max_size=5 * len(LOG) // 2)
    executor = Executor(Registry(read_log, artifacts.tool), max_output=1000, spill=artifacts.spill)
    ann, bob = executor.of(owner="ann"), executor.of(owner="bob")
    kept = read_spilled(ann)
    older, newer = read_spilled(bob), read_spilled(bob)
    assert not asyncio.run(ann.execute(call("read_artifact", {"id": kept}))).failed
    assert asyncio.run(bob.execute(call("read_artifact", {"id": older}))).failed
    assert not asyncio.run(bob.execute(call("read_artifact", {"id": newer}))).failed


def test_what_cannot_be_kept_is_not_promised():
    assert Artifacts(max_size=10).spill(call("x"), (Text(text="x" * 11),)) == ""
    assert Artifacts().spill(call("x"), (Media(kind="image", media_type="image/png", source=Inline("AA==")),)) == ""


def test_names_cannot_be_guessed():
    artifacts = Artifacts()
    names = {artifacts.spill(call("x"), (Text(text="x"),)) for _ in range(100)}
    assert len(names) == 100
    assert all(len(re.search(r"artifact_(\w+)", name)[1]) == 32 for name in names)


def test_asking_is_made_short():
    model = Scripted([Text(text="Hi.")], [Text(text="Still here.")])
    agent = Agent(model, Executor(Registry(read_log)))

    async def talk():
        first = await agent.run("Hello.", system="Be brief.", model="m")
        return await agent.run("And now?", history=first.history, system="Be long.", first_call="required")

    second = asyncio.run(talk())
    assert second.text == "Still here."
    request = model.requests[1]
    assert [message.parts[0].text for message in request.messages] == ["Be long.", "Hello.", "Hi.", "And now?"]
    assert (model.requests[0].model, request.tool_choice.mode) == ("m", "required")
    assert user_request().messages[0].role == "user"
