"""Show one turn of a chat: stream the text, print calls and results, and ask for approvals."""

from concurrent.futures import CancelledError
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Literal

from dragoman.agent import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    RunEnded,
    Step,
    TurnEnded,
)
from dragoman.cli.chat.format import (
    CallList,
    NumberedCall,
    describe_end,
    format_call,
    format_details,
    format_json_turn,
    format_question,
    format_result,
    has_answer,
    suggest_remedy,
)
from dragoman.cli.chat.session import ChatSession
from dragoman.cli.chat.terminal import EventLoopThread, Terminal
from dragoman.core.events import PartDelta, PartStarted, Started
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.tools import Progress

_SILENT_SECONDS = 10.0
"""Seconds without a step after which the running calls are shown."""
_PROGRESS_SECONDS = 1.0
"""Minimum seconds between two progress lines."""
_ANSWERS = {word[:length]: word for word in ("yes", "no", "always", "show") for length in (1, len(word))} | {"": "no"}
"""Accepted answers and their meaning; after any other answer the question is repeated."""


def _pluralise(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


Style = Literal["stream", "answer", "json"]
"""What is written of a turn: its text as it arrives, only the final answer, or a JSON object."""


class ChatTurns:
    """Runs turns and shows them."""

    def __init__(
        self,
        loop_thread: EventLoopThread[ChatSession],
        session: ChatSession,
        terminal: Terminal,
        style: Style = "stream",
        *,
        verbose: bool = False,
    ) -> None:
        self._loop_thread, self._session = loop_thread, session
        self._screen, self._lines, self._interrupts = terminal.screen, terminal.lines, terminal.interrupts
        self._streams_text, self._as_json, self._verbose = style == "stream", style == "json", verbose
        self.calls = CallList()
        self._parts: dict[int, AnyPart] = {}
        self._unshown_text = ""
        """Text since the last call; it becomes a note if a call follows, because only the final text is the answer."""
        self._last_progress = 0.0
        self._running: dict[str, float] = {}
        """When each running call has started, by call id."""
        self._first_call = 0
        """The index of the first call of this turn in the list of all calls."""
        self._stopping = False
        """Whether the turn is being cancelled; pending approval questions are then not shown."""

    def run(self, prompt: str) -> bool:
        """Send a prompt, show the steps of the turn and return whether it ended with an answer."""
        steps: SimpleQueue[Step | None] = SimpleQueue()
        turn = self._loop_thread.start(self._session.run_turn(prompt, steps.put))
        turn.add_done_callback(lambda _: steps.put(None))
        self._stopping, self._unshown_text, self._first_call = False, "", len(self.calls.all)
        self._running.clear()
        with self._interrupts.call_on_interrupt(self._stop):
            while (step := self._wait_for_step(steps)) is not None:
                self._show_step(step)
            self._screen.end_line()
        error = CancelledError() if turn.cancelled() else turn.exception()
        if error is None:
            return self._show_end(turn.result())
        if not isinstance(error, Exception):
            raise error
        # A bug ends only the turn, not the chat, so that the conversation is not lost.
        internal = Problem("internal", f"internal error ({type(error).__name__}: {error})")
        problem = error if isinstance(error, Problem) else internal
        self._write_json(problem)
        self._show_problem(problem)
        return False

    def _wait_for_step(self, steps: "SimpleQueue[Step | None]") -> Step | None:
        """Return the next step; while there is none, show now and then which calls are running."""
        while True:
            try:
                return steps.get(timeout=_SILENT_SECONDS)
            except Empty:
                for shown in self.calls.all[self._first_call :]:
                    if shown.call.id in self._running and not self._stopping:
                        seconds = monotonic() - self._running[shown.call.id]
                        self._screen.write_note(f"… [{shown.number}] {shown.call.name}: running for {seconds:.0f} s")

    def _stop(self) -> None:
        self._stopping = True
        self._screen.mark_line_open()
        self._loop_thread.call_soon(self._session.stop)

    def _show_problem(self, problem: Problem) -> None:
        self._screen.write_note(f"error: {problem.message}", "red")
        if remedy := suggest_remedy(problem):
            self._screen.write_note(f"what to do: {remedy}")

    def _write_json(self, ended: RunEnded | Problem) -> None:
        if self._as_json:
            self._screen.write_answer(format_json_turn(ended, self.calls.all[self._first_call :]))

    def _show_end(self, ended: RunEnded | None) -> bool:
        if ended is None:
            self._screen.write_note("stopped", "yellow")
            return False
        self._write_json(ended)
        if ended.problem is not None and ended.stop == "failed":
            self._show_problem(ended.problem)
            return False
        if not self._streams_text and not self._as_json and ended.text:
            self._screen.write_answer(ended.text.removesuffix("\n") + "\n")
        if note := describe_end(ended):
            self._screen.write_note(note, "yellow")
        statistics = ended.statistics
        if self._screen.pretty:
            turns, made = _pluralise(statistics.turns, "turn"), _pluralise(statistics.calls, "call")
            cost = f"cost {statistics.cost:.4f}, " if statistics.cost is not None else ""
            counted = f"{turns}, {made}, " if statistics.calls else ""
            self._screen.write_note(f"{counted}{statistics.tokens:,} tokens, {cost}{statistics.seconds:.1f} s")
        return has_answer(ended)

    def _show_step(self, step: Step) -> None:
        match step:
            case Started():
                self._parts.clear()
                self._flush_text()
            case PartStarted(index, part):
                self._screen.end_line()
                self._parts[index] = part
            case PartDelta(index, text):
                self._show_text(self._parts.get(index), text)
            case ApprovalAsked():
                self._ask_approval(step)
            case CallStarted(call):
                self._show_call_start(call)
            case CallProgressed(progress):
                self._show_progress(progress)
            case CallEnded():
                self._show_call_end(step)
            case TurnEnded():
                self._show_turn_end(step)
            case Compacted(before=before, after=after):
                self._screen.write_note(f"(the conversation was too long: compacted from {before} messages to {after})")
            case _:
                pass

    def _show_text(self, part: AnyPart | None, text: str) -> None:
        match part:
            case Text(unread=True):
                pass
            case Text() | Refusal() if self._streams_text:
                self._screen.write_answer(text)
            case Text():
                self._unshown_text += text
            case Reasoning():
                self._screen.write_thought(text)
            case _:
                pass

    def _flush_text(self) -> None:
        """Write the text before a call as a note, because only the final text is the answer."""
        if text := self._unshown_text.strip():
            self._screen.write_note(text)
        self._unshown_text = ""

    def _show_turn_end(self, turn: TurnEnded) -> None:
        if turn.response.finish.reason == "malformed_call":
            self._screen.write_note("(the model made a call that could not be parsed)", "yellow")

    def _show_call_start(self, call: ToolCall) -> None:
        self._running[call.id] = monotonic()
        self._flush_text()
        shown, new = self.calls.number_call(call)
        if not self._verbose:
            # An approval question has already shown the arguments: only the name is repeated.
            text = format_call(shown, self._screen.width - 2) if new else f"[{shown.number}] {call.name}"
            self._screen.write_note(f"→ {text}", "cyan")

    def _show_progress(self, progress: Progress) -> None:
        if monotonic() - self._last_progress < _PROGRESS_SECONDS:
            return
        self._last_progress = monotonic()
        shown, _ = self.calls.number_call(progress.call)
        done = f"{progress.done:g}" + (f" of {progress.total:g}" if progress.total else "")
        self._screen.write_note(f"… [{shown.number}] {done} {progress.message}".rstrip())

    def _show_call_end(self, ended: CallEnded) -> None:
        self._running.pop(ended.call.id, None)
        self._flush_text()
        _, new = self.calls.number_call(ended.call)
        shown = self.calls.end_call(ended.call, ended.execution)
        style = "red" if ended.execution.result.failed else "green"
        if self._verbose:
            self._screen.write_note(format_details(shown), style)
            return
        if new:
            self._screen.write_note(f"→ {format_call(shown, self._screen.width - 2)}", "cyan")
        self._screen.write_note(f"← {format_result(shown, self._screen.width - 2)}", style)
        if ended.execution.outcome == "denied" and not self._screen.pretty:
            self._screen.write_note("  (to run a tool with side effects without approval, use --yes NAME)")

    def _ask_approval(self, event: ApprovalAsked) -> None:
        call, consent = event.call, self._session.consent
        if self._stopping:
            return
        if consent.is_granted(call):
            self._send_answer(event, yes=True)
            return
        self._flush_text()
        shown, _ = self.calls.number_call(call)
        self._screen.write_note(f"? {format_question(shown)}", "yellow")
        scope = consent.describe_scope(call)
        self._screen.write_note(f"  {event.reason}" + (f"; `always` allows {scope}" if scope else ""))
        question = f"  run it? [y]es, [n]o{', [a]lways' if scope else ''}, [s]how all: "
        try:
            with self._interrupts.call_on_interrupt(None):
                word = self._read_answer(question, shown)
        except KeyboardInterrupt:
            if self._interrupts.is_armed:
                raise
            self._interrupts.is_armed = True
            self._screen.write_output("")
            self._stop()
            return
        self._interrupts.is_armed = False
        if word == "always" and scope:
            consent.grant_always(call)
        self._send_answer(event, yes=word in ("yes", "always"))

    def _read_answer(self, question: str, numbered: NumberedCall) -> str:
        """Ask until the answer is valid; an empty answer means no."""
        while True:
            word = _ANSWERS.get(self._lines.ask_question(question).strip().lower(), "")
            if word == "show":
                self._screen.write_note(format_details(numbered))
            elif word:
                return word

    def _send_answer(self, event: ApprovalAsked, *, yes: bool) -> None:
        self._loop_thread.call_soon(partial(self._session.answer, event.topic, yes=yes))
