"""The agent: runs a model with tools until the model is done; itself a function with the type of a model.

Between runs an agent keeps only its configuration, and the active runs by id. A model by name and the tools of servers
are opened for each run, or once for all runs inside `async with agent`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Generic, Self, Unpack, cast, overload
from uuid import uuid4

from msgspec import Struct, structs

from dragoman.agent.config import AgentConfig, AgentSettings
from dragoman.agent.conversation import AgentConversation, TurnSettings
from dragoman.agent.hooks import hook_model
from dragoman.agent.limits import CancelMode, Control, Limits
from dragoman.agent.model import Model
from dragoman.agent.options import RunOptions, run_blocking, visible_text
from dragoman.agent.output import OutputType, RunResult, RunStep
from dragoman.agent.reply_merger import ReplyMerger
from dragoman.agent.request_tools import find_client_tools
from dragoman.agent.run import Run, RunInput, build_request
from dragoman.agent.runtime import InProcess, Runtime, WatchedRuntime
from dragoman.agent.sources import ModelClient, NamedModel, OpenedModel, ToolSource
from dragoman.agent.steps import RunEnded, Step
from dragoman.agent.type_variables import OutputT, TypeForm
from dragoman.core import events
from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart
from dragoman.core.request import Message, Request, Sampling, ToolChoice
from dragoman.http.addresses import parse_destination
from dragoman.tasks import start_task, stop_tasks
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.context import check_dependencies
from dragoman.tools.handler import qualify_name

AnyTool = Handler | Callable[..., Any] | ToolSource
Prompt = str | Sequence[AnyPart]


class _Opened(Struct):
    """An agent with its model and its tools open."""

    config: AgentConfig
    new_model: OpenedModel | None
    """Returns a model for one run, if the model is one by name."""
    loop: asyncio.AbstractEventLoop


class _RunSettings(Struct, frozen=True, kw_only=True):
    """How one run is made."""

    turn: TurnSettings = TurnSettings()
    deps: tuple[Any, ...] = ()
    on_losses: Callable[[tuple[Loss, ...]], None] | None = None


class Agent(Generic[OutputT]):
    """A model that uses tools."""

    @overload
    def __init__(
        self: "Agent[str]",
        model: Model | str | ModelClient = "",
        executor: Executor | None = None,
        *,
        tools: Sequence[AnyTool] = (),
        system: str = "",
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: Model | str | ModelClient = "",
        executor: Executor | None = None,
        *,
        output_type: TypeForm[OutputT],
        tools: Sequence[AnyTool] = (),
        system: str = "",
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    def __init__(
        self,
        model: Model | str | ModelClient = "",
        executor: Executor | None = None,
        *,
        output_type: Any = str,
        tools: Sequence[AnyTool] = (),
        system: str = "",
        **settings: Unpack[AgentSettings],
    ) -> None:
        """Make an agent; `tools` are functions, handlers and servers, `executor` sets limits for calls.

        A model is a function, a name of the configuration, `upstream/model`, a `ModelEndpoint`, or another object with
        `base_url` and `api_key`; "" is the default.
        """
        if not isinstance(model, str | ModelClient) and not callable(model):
            expected = "a name, an object with base_url and api_key, or a function"
            raise TypeError(f"the model of an agent is {expected}, not {model!r}")
        self._named = NamedModel(model) if isinstance(model, str | ModelClient) else None
        self._sources = tuple(each for each in tools if isinstance(each, ToolSource))
        handlers = [each for each in tools if not isinstance(each, ToolSource)]
        if executor is None:
            executor = Executor(Registry(*handlers))
        elif handlers:
            executor = executor.of(Registry(*executor.registry, *handlers))
        self._system = system
        self._output: OutputType[OutputT] = OutputType(output_type)
        self._runtime: Callable[[str], WatchedRuntime] = settings.get("runtime", InProcess)
        self._config = AgentConfig(
            model=model if not isinstance(model, str | ModelClient) else NamedModel(model),
            executor=executor,
            limits=settings.get("limits") or Limits(),
            approve=settings.get("approve"),
            destinations=tuple(map(parse_destination, settings.get("destinations", ()))),
            price=settings.get("price"),
            compaction=settings.get("compaction"),
            recorder=settings.get("recorder"),
            hooks=settings.get("hooks"),
            output_format=self._output.format,
            find_correction=None if self._output.format is None else self._output.find_correction,
        )
        self._opened: _Opened | None = None
        self._stack = AsyncExitStack()
        self._runs: dict[str, tuple[WatchedRuntime, Control]] = {}

    def __repr__(self) -> str:
        name = f" {self._named.name or 'with the default model'}," if self._named is not None else ""
        return f"<Agent{name} with {self._config.executor!r}>"

    async def __aenter__(self) -> Self:
        """Open the model and the tools for all runs until the end of the block."""
        self._opened = await self._stack.enter_async_context(self._open_anew())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._opened = None
        await self._stack.aclose()

    async def run(self, prompt: Prompt, **options: Unpack[RunOptions]) -> RunResult[OutputT]:
        """Run to the end and return it; `history` is the history of an earlier run."""
        async with aclosing(self._stream(prompt, options, TurnSettings(can_ask=False))) as steps:
            ended = [step async for step in steps if isinstance(step, RunResult)]
        return ended[-1]

    def run_sync(self, prompt: Prompt, **options: Unpack[RunOptions]) -> RunResult[OutputT]:
        """Run to the end, from a program without an event loop or from a notebook."""
        return run_blocking(lambda: self.run(prompt, **options))

    def stream(self, prompt: Prompt, **options: Unpack[RunOptions]) -> AsyncGenerator[RunStep[OutputT]]:
        """Run, and yield every step as it happens; the last one is the result."""
        return self._stream(prompt, options, TurnSettings())

    def stream_text(self, prompt: Prompt, **options: Unpack[RunOptions]) -> AsyncGenerator[str]:
        """Run, and yield the text of the replies as it arrives; raises the `Problem` of a failed run."""
        return visible_text(self._stream(prompt, options, TurnSettings(can_ask=False)))

    def conversation(
        self, name: str = "", *, model: str = "", history: Sequence[Message] = ()
    ) -> AgentConversation[OutputT]:
        """Return a conversation with this agent; with a name it is kept in the session store."""
        return AgentConversation(self._stream, name=name, model=model, history=history)

    async def _stream(
        self, prompt: Prompt, options: RunOptions, turn: TurnSettings
    ) -> AsyncGenerator[RunStep[OutputT]]:
        system, model = options.get("system") or self._system, options.get("model", "")
        request = build_request(prompt, options.get("history", ()), system, model)
        choice = ToolChoice(mode="required") if options.get("first_call") == "required" else None
        request = structs.replace(request, sampling=options.get("sampling") or Sampling(), tool_choice=choice)
        losses: list[Loss] = []
        settings = _RunSettings(
            turn=turn,
            deps=_list_dependencies(options.get("deps")),
            on_losses=losses.extend,
        )
        async with aclosing(self._run_steps(request, settings)) as steps:
            async for step in steps:
                yield self._output.build_result(step, tuple(losses)) if isinstance(step, RunEnded) else step

    async def __call__(self, request: Request) -> AsyncGenerator[events.Event]:
        """Run, and stream all turns as one reply."""
        client_tools = find_client_tools(request, self._config.executor.registry)
        merger = ReplyMerger(lambda call: qualify_name(call.namespace, call.name) not in client_tools)
        # The reader of a single reply does not see approval requests, so it cannot answer them.
        async with aclosing(self._run_steps(request, _RunSettings(turn=TurnSettings(can_ask=False)))) as steps:
            async for step in steps:
                for event in merger.feed(step):
                    yield event

    def steps(self, request: Request, *, run: str = "", untrusted: bool = False) -> AsyncGenerator[Step]:
        """Run, and yield every step as it happens; closing the iterator stops the run.

        Set `untrusted` if untrusted content was read earlier that is no longer in the history.
        """
        return self._run_steps(request, _RunSettings(turn=TurnSettings(run=run, untrusted=untrusted)))

    async def _run_steps(self, request: Request, settings: _RunSettings) -> AsyncGenerator[Step]:
        turn = settings.turn
        run = turn.run or f"run_{uuid4().hex}"
        if run in self._runs:
            raise ValueError(f"the run {run!r} is already active; use another id")
        runtime, control = self._runtime(run), Control()
        self._runs[run] = (runtime, control)
        try:
            async with self._open() as opened:
                config, report = _configure(opened, settings)
                active = Run(config, RunInput(run, self._name_model(request), turn.untrusted), runtime, control)
                task = start_task(_run_to_end(active, runtime), f"agent run {run}")
                try:
                    async with aclosing(runtime.watch()) as steps:
                        async for step in steps:
                            if isinstance(step, RunEnded):
                                report()
                            yield step
                    await task
                finally:
                    runtime.close()
                    await stop_tasks(task)
        finally:
            del self._runs[run]
            runtime.close()

    def _name_model(self, request: Request) -> Request:
        """Return the request with the agent's model if it names none."""
        if self._named is None or request.model:
            return request
        return structs.replace(request, model=self._named.name)

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[_Opened]:
        """Yield the agent that `async with` has opened on this event loop, or open it while the block runs."""
        opened = self._opened
        if opened is not None and opened.loop is asyncio.get_running_loop():
            yield opened
            return
        async with self._open_anew() as opened:
            yield opened

    @asynccontextmanager
    async def _open_anew(self) -> AsyncGenerator[_Opened]:
        config, new_model = self._config, None
        async with AsyncExitStack() as stack:
            if self._named is not None:
                new_model = await stack.enter_async_context(self._named.open())
            if self._sources:
                registry = Registry(*config.executor.registry)
                for source in self._sources:
                    await stack.enter_async_context(source.open_tools(registry))
                config = structs.replace(config, executor=config.executor.of(registry))
            yield _Opened(config, new_model, asyncio.get_running_loop())

    async def run_on(
        self, request: Request, runtime: Runtime, *, run: str, control: Control | None = None, untrusted: bool = False
    ) -> RunEnded:
        """Run on the caller's runtime, for example on a durable engine that outlives the process."""
        async with self._open() as opened:
            config, _ = _configure(opened, _RunSettings())
            run_input = RunInput(run, self._name_model(request), untrusted)
            return await Run(config, run_input, runtime, control or Control()).execute()

    def cancel(self, run: str, when: CancelMode = "now") -> bool:
        """Cancel an active run; return False if there is none with this id."""
        if run not in self._runs:
            return False
        self._runs[run][1].cancel(when)
        return True

    def answer(self, run: str, topic: str, value: Any) -> bool:
        """Answer a question of an active run; return False if there is none with this id."""
        if run not in self._runs:
            return False
        self._runs[run][0].tell(topic, value)
        return True


def _list_dependencies(deps: object) -> tuple[Any, ...]:
    if isinstance(deps, tuple):
        return cast("tuple[Any, ...]", deps)
    return () if deps is None else (deps,)


def _configure(opened: _Opened, settings: _RunSettings) -> tuple[AgentConfig, Callable[[], None]]:
    """Return the configuration of one run, and a function that reports the losses of its model."""
    config, on_losses = opened.config, settings.on_losses
    check_dependencies(config.executor.registry, settings.deps)
    if settings.deps:
        config = structs.replace(config, executor=config.executor.of(deps=settings.deps))
    if not settings.turn.can_ask:
        config = structs.replace(config, limits=structs.replace(config.limits, approval=0.0))
    if settings.turn.recorder is not None:
        config = structs.replace(config, recorder=settings.turn.recorder)
    reporting = None if opened.new_model is None else opened.new_model()
    model: Model = config.model if reporting is None else reporting

    def report() -> None:
        if on_losses is not None and reporting is not None:
            on_losses(reporting.losses)

    return structs.replace(config, model=hook_model(model, config.hooks)), report


async def _run_to_end(run: Run, runtime: WatchedRuntime) -> None:
    try:
        await run.execute()
    finally:
        runtime.close()
