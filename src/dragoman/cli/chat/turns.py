"""One turn as the user sees it: text as it comes, calls and results as they happen, and questions."""

from concurrent.futures import CancelledError
from functools import partial
from queue import SimpleQueue
from time import monotonic

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
    Shown,
    format_call,
    format_details,
    format_question,
    format_result,
    succeeded,
    suggest_remedy,
    worth_saying,
)
from dragoman.cli.chat.session import Talk
from dragoman.cli.chat.terminal import Stage, Terminal
from dragoman.core.events import PartDelta, PartStarted, Started
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.tools import Progress

_OFTEN = 1.0
"""Seconds between two lines of a call that says how far it is."""
_WORDS = {word[:length]: word for word in ("yes", "no", "always", "show") for length in (1, len(word))} | {"": "no"}
"""What an answer means; anything else is asked again."""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class ChatTurns:
    """Takes turns with a model; `aloud` if what it says is written as it comes, and not only its last words."""

    def __init__(
        self, stage: Stage[Talk], talk: Talk, terminal: Terminal, *, aloud: bool = True, verbose: bool = False
    ) -> None:
        self._stage, self._talk = stage, talk
        self._screen, self._lines, self._interrupts = terminal.screen, terminal.lines, terminal.interrupts
        self._aloud, self._verbose = aloud, verbose
        self.calls = CallList()
        self._parts: dict[int, AnyPart] = {}
        self._quiet = ""
        """What was said in this turn, where only the last words are the answer."""
        self._progressed = 0.0
        self._stopping = False
        """The turn was told to end: what it asked before is not asked any more."""

    def take(self, prompt: str) -> bool:
        """Say something, show what comes, and tell whether it is an answer."""
        told: SimpleQueue[Step | None] = SimpleQueue()
        turn = self._stage.start(self._talk.turn(prompt, told.put))
        turn.add_done_callback(lambda _: told.put(None))
        self._stopping, self._quiet = False, ""
        with self._interrupts.stopping(self._stop):
            while (step := told.get()) is not None:
                self._show(step)
            self._screen.end_line()
        error = CancelledError() if turn.cancelled() else turn.exception()
        if error is None:
            return self._over(turn.result())
        if not isinstance(error, Exception):
            raise error
        # What was said so far is worth more than the turn: the conversation goes on.
        broken = Problem("internal", f"something here is broken ({type(error).__name__}: {error})")
        self._fail(error if isinstance(error, Problem) else broken)
        return False

    def _stop(self) -> None:
        self._stopping = True
        self._screen.disturb()
        self._stage.soon(self._talk.stop)

    def _fail(self, problem: Problem) -> None:
        self._screen.note(f"error: {problem.message}", "red")
        if remedy := suggest_remedy(problem):
            self._screen.note(f"what to do: {remedy}")

    def _over(self, ended: RunEnded | None) -> bool:
        if ended is None:
            self._screen.note("stopped", "yellow")
            return False
        if ended.problem is not None and ended.stop == "failed":
            self._fail(ended.problem)
            return False
        if not self._aloud and ended.text:
            self._screen.answer(ended.text.removesuffix("\n") + "\n")
        if words := worth_saying(ended):
            self._screen.note(words, "yellow")
        statistics = ended.statistics
        if self._screen.pretty:
            turns, made = _counted(statistics.turns, "turn"), _counted(statistics.calls, "call")
            counted = f"{turns}, {made}, " if statistics.calls else ""
            self._screen.note(f"{counted}{statistics.tokens:,} tokens, {statistics.seconds:.1f} s")
        return succeeded(ended)

    def _show(self, step: Step) -> None:
        match step:
            case Started():
                self._parts.clear()
                self._aside()
            case PartStarted(index, part):
                self._screen.end_line()
                self._parts[index] = part
            case PartDelta(index, text):
                self._say(self._parts.get(index), text)
            case ApprovalAsked():
                self._ask(step)
            case CallStarted(call):
                self._begin(call)
            case CallProgressed(progress):
                self._progress(progress)
            case CallEnded():
                self._end(step)
            case TurnEnded():
                self._turned(step)
            case Compacted(before=before, after=after):
                self._screen.note(f"(the conversation was too long: {before} messages are {after} now)")
            case _:
                pass

    def _say(self, part: AnyPart | None, text: str) -> None:
        match part:
            case Text(unread=True):
                pass
            case Text() | Refusal() if self._aloud:
                self._screen.answer(text)
            case Text():
                self._quiet += text
            case Reasoning():
                self._screen.thought(text)
            case _:
                pass

    def _aside(self) -> None:
        """Tell what was said before calls, where only the last words are the answer."""
        if said := self._quiet.strip():
            self._screen.note(said)
        self._quiet = ""

    def _turned(self, turn: TurnEnded) -> None:
        if turn.response.finish.reason == "malformed_call":
            self._screen.note("(the model made a call that nobody can read)", "yellow")

    def _begin(self, call: ToolCall) -> None:
        self._aside()
        shown, new = self.calls.shown(call)
        if not self._verbose:
            # What was asked for was shown whole: that it runs now is told shortly.
            told = format_call(shown, self._screen.width - 2) if new else f"[{shown.number}] {call.name}"
            self._screen.note(f"→ {told}", "cyan")

    def _progress(self, progress: Progress) -> None:
        if monotonic() - self._progressed < _OFTEN:
            return
        self._progressed = monotonic()
        shown, _ = self.calls.shown(progress.call)
        far = f"{progress.done:g}" + (f" of {progress.total:g}" if progress.total else "")
        self._screen.note(f"… [{shown.number}] {far} {progress.message}".rstrip())

    def _end(self, ended: CallEnded) -> None:
        self._aside()
        _, new = self.calls.shown(ended.call)
        shown = self.calls.ended(ended.call, ended.execution)
        style = "red" if ended.execution.result.failed else "green"
        if self._verbose:
            self._screen.note(format_details(shown), style)
            return
        if new:
            self._screen.note(f"→ {format_call(shown, self._screen.width - 2)}", "cyan")
        self._screen.note(f"← {format_result(shown, self._screen.width - 2)}", style)
        if ended.execution.outcome == "denied" and not self._screen.pretty:
            self._screen.note("  (--yes NAME lets a tool that changes things run where nobody can be asked)")

    def _ask(self, asked: ApprovalAsked) -> None:
        call, consent = asked.call, self._talk.consent
        if self._stopping:
            return
        if consent.holds(call):
            self._answer(asked, yes=True)
            return
        self._aside()
        shown, _ = self.calls.shown(call)
        self._screen.note(f"? {format_question(shown)}", "yellow")
        scope = consent.scope(call)
        self._screen.note(f"  {asked.reason}" + (f"; always is for {scope}" if scope else ""))
        question = f"  run it? [y]es, [n]o{', [a]lways' if scope else ''}, [s]how all: "
        try:
            with self._interrupts.stopping(None):
                word = self._word(question, shown)
        except KeyboardInterrupt:
            if self._interrupts.armed:
                raise
            self._interrupts.armed = True
            self._screen.reply("")
            self._stop()
            return
        self._interrupts.armed = False
        if word == "always" and scope:
            consent.hold(call)
        self._answer(asked, yes=word in ("yes", "always"))

    def _word(self, question: str, shown: Shown) -> str:
        """Ask until the answer is one; none at all is a no."""
        while True:
            word = _WORDS.get(self._lines.word(question).strip().lower(), "")
            if word == "show":
                self._screen.note(format_details(shown))
            elif word:
                return word

    def _answer(self, asked: ApprovalAsked, *, yes: bool) -> None:
        self._stage.soon(partial(self._talk.answer, asked.topic, yes=yes))
