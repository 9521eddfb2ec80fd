"""SDKs run the tools that a vendor defines and a client runs, on models of every vendor.

The Agents SDK has OpenAI's shell, local shell and patches; Anthropic's tool runner has its memory, and here bash and the
text editor. The model's answers are scripted; what the tools did is seen on disk.
"""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    LocalShellTool,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    apply_diff,
)
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from anthropic.lib.tools._beta_functions import BetaBuiltinFunctionTool

from dragoman.simulator import Answer, Call, Received
from real_clients import runs

MODELS = {"gemini": "gem", "anthropic": "claude", "chat": "gpt", "responses": "resp"}
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
NOTE = "The word is lighthouse.\n"


class Steps:
    """A script of one step after another; it keeps the results that the model got for each."""

    def __init__(self, *steps: dict[str, dict[str, Any]]) -> None:
        self._steps = steps
        self.results: list[dict[str, tuple[str, bool]]] = []

    def __call__(self, received: Received) -> Answer:
        turns = received.request.turns
        done = [turn for turn in turns if turn.results]
        self.results = [{one.name: (one.text, one.failed) for one in turn.results} for turn in done]
        calls = {call.id: call.name for turn in turns for call in turn.calls}
        assert [call for turn in done for call in (one.call_id for one in turn.results)] == list(calls)
        if len(done) == len(self._steps):
            return Answer(text="All is done.")
        step = self._steps[len(done)]
        made = (
            Call(id=f"{len(done)}{at}".zfill(24), name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(step.items())
        )
        return Answer(calls=tuple(made), end="calls")


def assert_accepted(gateway: Any) -> list[Any]:
    """Return what the upstream received, all of which it accepted."""
    seen = list(gateway.simulator.requests)
    assert {one.status for one in seen} == {200}, [one.rule for one in seen]
    return [json.loads(one.body) for one in seen]


# OpenAI's, in the Agents SDK


class Editor:
    """Applies patches to the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        text = apply_diff("", operation.diff or "", "create")
        (self._folder / operation.path).write_text(text, encoding="utf-8")
        return ApplyPatchResult(output=f"created {operation.path}")

    def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = self._folder / operation.path
        path.write_text(apply_diff(path.read_text(encoding="utf-8"), operation.diff or ""), encoding="utf-8")
        return ApplyPatchResult(output=f"updated {operation.path}")

    def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = self._folder / operation.path
        if not path.exists():
            return ApplyPatchResult(status="failed", output=f"there is no {operation.path}")
        path.unlink()
        return ApplyPatchResult(output=f"deleted {operation.path}")


def run_in(folder: Path, command: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  the script's commands
        command, cwd=folder, shell=isinstance(command, str), capture_output=True, text=True, check=False, timeout=30
    )


def build_tools(folder: Path) -> list[Any]:
    def run_commands(request: Any) -> ShellResult:
        done = [run_in(folder, command) for command in request.data.action.commands]
        return ShellResult(
            output=[
                ShellCommandOutput(
                    stdout=one.stdout,
                    stderr=one.stderr,
                    outcome=ShellCallOutcome(type="exit", exit_code=one.returncode),
                )
                for one in done
            ]
        )

    def run_locally(request: Any) -> str:
        assert request.data.action.env == {}
        done = run_in(folder, request.data.action.command)
        return done.stdout + done.stderr

    return [
        ShellTool(executor=run_commands),
        LocalShellTool(executor=run_locally),
        ApplyPatchTool(editor=Editor(folder)),
    ]


AGENT_STEPS: tuple[dict[str, dict[str, Any]], ...] = (
    {"shell": {"commands": ["cat note.txt", "ls nowhere"]}, "local_shell": {"command": ["cat", "note.txt"]}},
    {"apply_patch": {"type": "create_file", "path": "made.txt", "diff": "+one\n+two\n"}},
    {"apply_patch": {"type": "update_file", "path": "made.txt", "diff": "@@\n one\n-two\n+three\n"}},
    {"apply_patch": {"type": "delete_file", "path": "missing.txt"}},
    {"apply_patch": {"type": "delete_file", "path": "note.txt"}},
)


@whole_and_streamed
@pytest.mark.parametrize("upstream", MODELS)
def test_an_agent_runs_openais_shell_local_shell_and_patches(serve, tmp_path, upstream, streamed):
    (tmp_path / "note.txt").write_text(NOTE, encoding="utf-8")
    script = Steps(*AGENT_STEPS)
    gateway = serve(simulate={"script": script})

    async def run() -> str:
        url, quiet = f"{gateway.base_url}/v1", RunConfig(tracing_disabled=True)
        async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
            agent = Agent(
                name="Worker",
                instructions="Use your tools.",
                tools=build_tools(tmp_path),
                model=OpenAIResponsesModel(MODELS[upstream], client),
                model_settings=ModelSettings(store=False),
            )
            if not streamed:
                return (await Runner.run(agent, "Work.", run_config=quiet)).final_output
            running = Runner.run_streamed(agent, "Work.", run_config=quiet)
            assert [event async for event in running.stream_events()]
            return running.final_output

    assert asyncio.run(run()) == "All is done."
    assert len(assert_accepted(gateway)) == len(AGENT_STEPS) + 1
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"made.txt": "one\nthree"}
    first, made, changed, missing, gone = script.results
    shell, local = first["shell"][0], first["local_shell"][0]
    assert NOTE.strip() in shell
    assert "No such file" in shell
    assert "exit code 0" in shell
    assert "exit code 2" in shell
    assert local == NOTE
    assert [turn["apply_patch"][0] for turn in (made, changed)] == ["created made.txt", "updated made.txt"]
    assert "there is no missing.txt" in missing["apply_patch"][0]
    assert missing["apply_patch"][1] is (upstream != "chat"), "Chat has no member for a failure"
    assert gone["apply_patch"] == ("deleted note.txt", False)


# Anthropic's, in its tool runner


class Bash(BetaBuiltinFunctionTool):
    """Runs the commands of `bash`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def to_dict(self) -> Any:
        return {"type": "bash_20250124", "name": "bash"}

    def call(self, input: Any) -> str:  # noqa: A002  the SDK's name
        if input.get("restart"):
            return "restarted"
        done = run_in(self._folder, input["command"])
        return done.stdout + done.stderr


class TextEditor(BetaBuiltinFunctionTool):
    """Carries out the commands of the text editor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def to_dict(self) -> Any:
        return {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 1000}

    def call(self, input: Any) -> str:  # noqa: A002  the SDK's name
        path = self._folder / input["path"]
        match input["command"]:
            case "create":
                path.write_text(input["file_text"], encoding="utf-8")
            case "str_replace":
                text = path.read_text(encoding="utf-8")
                assert text.count(input["old_str"]) == 1
                path.write_text(text.replace(input["old_str"], input["new_str"]), encoding="utf-8")
            case "insert":
                lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
                lines.insert(input["insert_line"], input["insert_text"])
                path.write_text("".join(lines), encoding="utf-8")
            case command:
                assert command == "view"
                first, last = input["view_range"]
                return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 : last])
        return f"{input['command']}: done"


EDITOR = "str_replace_based_edit_tool"
RUNNER_STEPS: tuple[dict[str, dict[str, Any]], ...] = (
    {"bash": {"command": "cat note.txt; ls nowhere"}, "memory": {"command": "view", "path": "/memories"}},
    {EDITOR: {"command": "create", "path": "made.txt", "file_text": "one\ntwo\n"}},
    {EDITOR: {"command": "str_replace", "path": "made.txt", "old_str": "two", "new_str": "three"}},
    {EDITOR: {"command": "insert", "path": "made.txt", "insert_line": 0, "insert_text": "zero\n"}},
    {EDITOR: {"command": "view", "path": "made.txt", "view_range": [1, 2]}, "bash": {"restart": True}},
    {"memory": {"command": "create", "path": "/memories/plan.md", "file_text": "Step 1\n"}},
    {"memory": {"command": "rename", "old_path": "/memories/plan.md", "new_path": "/memories/done.md"}},
    {"memory": {"command": "delete", "path": "/memories/nothing.md"}},
)


@whole_and_streamed
@pytest.mark.parametrize("upstream", runs.RUNS["anthropic SDK, tool runner"])
def test_anthropics_tool_runner_runs_its_bash_text_editor_and_memory(serve, tmp_path, upstream, streamed):
    (tmp_path / "note.txt").write_text(NOTE, encoding="utf-8")
    script = Steps(*RUNNER_STEPS)
    gateway = serve(simulate={"script": script})
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    runner = client.beta.messages.tool_runner(
        model=MODELS[upstream],
        max_tokens=2048,
        tools=[Bash(tmp_path), TextEditor(tmp_path), BetaLocalFilesystemMemoryTool(str(tmp_path / "memory"))],
        messages=[{"role": "user", "content": "Work."}],
        stream=streamed,
    )
    messages: list[Any] = [turn.get_final_message() if streamed else turn for turn in runner]
    assert [block.text for block in messages[-1].content] == ["All is done."]
    assert len(assert_accepted(gateway)) == len(RUNNER_STEPS) + 1
    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "zero\none\nthree\n"
    assert (tmp_path / "memory/memories/done.md").read_text(encoding="utf-8") == "Step 1\n"
    first, *_, shown, _, _, missing = script.results
    assert NOTE.strip() in first["bash"][0]
    assert "No such file" in first["bash"][0]
    assert "/memories" in first["memory"][0]
    assert shown[EDITOR][0] == "zero\none\n"
    assert shown["bash"][0] == "restarted"
    assert "nothing.md" in missing["memory"][0]


# Stored responses


STORED_STEPS: tuple[dict[str, dict[str, Any]], ...] = (
    {"shell": {"commands": ["ls"]}},
    {"apply_patch": {"type": "delete_file", "path": "a.txt"}},
    {"local_shell": {"type": "exec", "command": ["ls"], "env": {}}},
)
OUTPUTS: dict[str, dict[str, Any]] = {
    "shell_call": {"output": [{"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    "apply_patch_call": {"status": "completed", "output": "deleted"},
    "local_shell_call": {"output": "nothing"},
}


@whole_and_streamed
@pytest.mark.parametrize("upstream", MODELS)
def test_a_stored_response_with_openais_own_calls_is_continued_by_its_id(serve, upstream, streamed):
    script = Steps(*STORED_STEPS)
    gateway = serve(simulate={"script": script})
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
    asked: dict[str, Any] = {"input": "Work."}
    for _ in (*STORED_STEPS, None):
        tools: Any = [{"type": name} for step in STORED_STEPS for name in step]
        reply = client.responses.create(model=MODELS[upstream], tools=tools, stream=streamed, **asked)
        response: Any = [*reply][-1].response if streamed else reply
        calls = [item for item in response.output if item.type in OUTPUTS]
        results = [{"type": f"{call.type}_output", "call_id": call.call_id, **OUTPUTS[call.type]} for call in calls]
        asked = {"input": results, "previous_response_id": response.id}
    assert response.output_text == "All is done."
    assert len(assert_accepted(gateway)) == len(STORED_STEPS) + 1
    shell, patch, local = (turn for turn in script.results)
    assert "a.txt" in shell["shell"][0]
    assert patch["apply_patch"][0] == "deleted"
    assert local["local_shell"][0] == "nothing"
