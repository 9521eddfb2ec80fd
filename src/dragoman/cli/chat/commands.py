"""Commands of the user: lines that begin with a slash and a word; and a conversation as a file.

What a command lists is written where answers are; messages go beside it. A conversation is saved as Markdown for people
or as JSON in the form of Chat Completions for programs.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from msgspec import Struct

from dragoman.cli.chat.format import CallList, format_content, format_details, format_json
from dragoman.cli.chat.session import ChatSession
from dragoman.cli.chat.terminal import EventLoopThread, Screen
from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Tool
from dragoman.interpreter.core_request import messages_to, tools_to
from dragoman.tools import Handler
from dragoman.wire import json

_TITLES = {"system": "Instructions", "user": "You", "assistant": "Model"}
_FENCES = re.compile(r"`{3,}")
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


def save(path: Path, history: Sequence[Message], tools: Sequence[Tool], model: str, *, overwrite: bool) -> int:
    """Write a conversation, to a file that must not be there unless `anew`; return what could not be said in it."""
    text, losses = (
        _render_json(history, tools, model) if path.suffix == ".json" else (_render_markdown(history, model), 0)
    )
    with path.open("w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text)
    return losses


_SAVED_IN = "chat"
"""The dialect of a saved conversation: the one that most programs read."""


def _render_json(history: Sequence[Message], tools: Sequence[Tool], model: str) -> tuple[str, int]:
    messages, losses = messages_to(_SAVED_IN, history)
    told, more = tools_to(_SAVED_IN, tools)
    members = [b'"model":' + json.encode(model), b'"messages":' + messages]
    members += [b'"tools":' + told] if tools else []
    body = (b"{" + b",".join(members) + b"}").decode()
    return format_json(body) + "\n", len(losses) + len(more)


def _render_markdown(history: Sequence[Message], model: str) -> str:
    blocks = [f"# A conversation with {model}"]
    title = ""
    for message in history:
        results = all(isinstance(part, ToolResult) for part in message.parts)
        if not results and title != _TITLES[message.role]:
            title = _TITLES[message.role]
            blocks.append(f"## {title}")
        blocks += [block for part in message.parts for block in _render_part(part)]
    return "\n\n".join(blocks) + "\n"


def _render_part(part: AnyPart) -> Iterator[str]:
    match part:
        case Text(unread=True, text=text):
            yield "A call that nobody could read:"
            yield _fence(text.strip())
        case Text(text=text) | Refusal(text=text):
            yield text
        case Reasoning(texts=texts):
            yield from (f"> {text}".replace("\n", "\n> ") for text in texts if text)
        case ToolCall(name=name, arguments=arguments):
            yield f"Call of `{name}`:"
            yield _fence(format_json(arguments), "json")
        case ToolResult(name=name, content=content, failed=failed):
            yield f"{'Failed result' if failed else 'Result'} of `{name}`:"
            yield _fence(format_content(content))
        case Data() | Media() | Opaque():
            yield format_content((part,))
        case _:
            assert_never(part)


def _fence(text: str, language: str = "") -> str:
    """Return a block that what stands in it cannot end."""
    fence = "`" * (max((len(found) for found in _FENCES.findall(text)), default=2) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


class ChatEnded(Exception):  # noqa: N818  not an error: the user has had enough
    """The conversation is over."""


class Command(Struct, frozen=True):
    """A command and what is said of it."""

    run: Callable[[str], None]
    argument: str
    help_text: str


class Commands:
    """Does what the user says to the program."""

    def __init__(
        self, loop_thread: EventLoopThread[ChatSession], session: ChatSession, screen: Screen, calls: CallList
    ) -> None:
        self._loop_thread, self._session, self._screen, self._calls = loop_thread, session, screen, calls
        self.failed = False
        """Something could not be done."""
        self._saved: set[Path] = set()
        self._commands: Mapping[str, Command] = {
            "tools": Command(self._list_tools, "", "which tools there are, and how they are run"),
            "model": Command(self._choose_model, "[NAME]", "talk to another model or agent; without a name, list them"),
            "show": Command(
                self._show_call, "[N]", "all of a call and its result, the last one or the one with that number"
            ),
            "save": Command(self._save, "FILE", "keep the conversation: as JSON in FILE.json, else as Markdown"),
            "new": Command(self._start_over, "", "begin anew"),
            "help": Command(self._show_help, "", "this"),
            "quit": Command(self._quit, "", "leave, like Ctrl-D"),
        }

    def run(self, line: str) -> bool:
        """Run a command; tell whether the line was one."""
        found = _COMMAND.fullmatch(line.strip())
        if found is None:
            return False
        command = self._commands.get(found[1])
        if command is None:
            self._report_error(f"there is no /{found[1]}: /help lists the commands")
        else:
            command.run((found[2] or "").strip())
        return True

    def _report_error(self, words: str) -> None:
        self.failed = True
        self._screen.write_note(f"error: {words}", "red")

    def _show_help(self, _: str) -> None:
        lines = [
            f"/{name} {command.argument}".ljust(15) + command.help_text for name, command in self._commands.items()
        ]
        lines.append("Anything else goes to the model. A line that ends with \\ goes on. Ctrl-C stops a turn.")
        self._screen.write_output("\n".join(lines))

    def _quit(self, _: str) -> None:
        raise ChatEnded

    def _start_over(self, _: str) -> None:
        self._session.start_over()
        self._screen.write_note("nothing was said so far")

    def _list_tools(self, _: str) -> None:
        lines = [_describe_tool(handler) for handler in self._session.registry]
        for status in self._session.services.tool_services.list_statuses():
            if not status.connected:
                lines.append(f"the server {status.name} is not there: {status.error}")
            lines += [f"{each.name} is blocked: its server has changed it" for each in status.blocked]
            lines += [f"{status.name}: {tool} cannot be used: {why}" for tool, why in status.unusable.items()]
        self._screen.write_output("\n".join(lines) or "there are no tools")

    def _choose_model(self, name: str) -> None:
        if not name:
            known = self._loop_thread.start(self._session.list_models()).result()
            self._screen.write_output(
                "\n".join(f"{'*' if each == self._session.assistant.name else ' '} {each}" for each in known)
            )
            if self._session.assistant.name not in known:
                self._screen.write_output(f"* {self._session.assistant.name}")
            return
        try:
            self._session.switch_model(name)
        except Problem as problem:
            self._report_error(problem.message)
            return
        self._screen.write_note(f"{name} answers from now on")
        warn_if_simulated(self._session, self._screen)

    def _show_call(self, number: str) -> None:
        shown = self._calls.all
        if not shown:
            self._report_error("nothing was called so far")
        elif number and (not number.isdecimal() or not 0 < int(number) <= len(shown)):
            self._report_error(f"calls are numbered from 1 to {len(shown)}")
        else:
            self._screen.write_output(format_details(shown[int(number) - 1 if number else -1]))

    def _save(self, name: str) -> None:
        if not name:
            self._report_error("say where: /save FILE")
            return
        path = Path(name).expanduser()
        talk, anew = self._session, path.resolve() in self._saved
        try:
            lost = save(path, talk.history, talk.registry.definitions, talk.assistant.model, overwrite=anew)
        except FileExistsError:
            self._report_error(f"{name} is there already: name another file")
            return
        except OSError as error:
            self._report_error(f"{name} cannot be written ({error.strerror}): name another file")
            return
        self._saved.add(path.resolve())
        losses = f"; {lost} things could not be said in it" if lost else ""
        self._screen.write_note(f"{len(talk.history)} messages are in {name}{losses}")


def _describe_tool(handler: Handler) -> str:
    marks = {
        "changes things, so you are asked": handler.side_effects,
        "reads what others wrote": handler.untrusted,
        "can send data out": handler.sends_out,
    }
    told = "; ".join(words for words, holds in marks.items() if holds)
    first = handler.definition.description.strip().partition("\n")[0]
    return f"{handler.name}{f' ({told})' if told else ''}\n    {textwrap.shorten(first, 110, placeholder='…')}"


def warn_if_simulated(session: ChatSession, screen: Screen) -> None:
    """Say so where no model answers."""
    if session.assistant.is_simulated:
        words = "the simulator answers, which is no model: set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY"
        screen.write_note(f"{session.assistant.name}: {words}", "yellow")
