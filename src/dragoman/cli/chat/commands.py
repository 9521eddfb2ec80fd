"""The slash commands of `dragoman chat`, such as /tools and /save.

The output of a command goes to the stream of the answers; messages and errors go to the stream of the notes. /save
writes the conversation as Markdown, or as JSON in the format of Chat Completions.
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
    """Write a conversation to a file and return the number of losses; without `overwrite` the file must not exist."""
    text, losses = (
        _render_json(history, tools, model) if path.suffix == ".json" else (_render_markdown(history, model), 0)
    )
    with path.open("w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text)
    return losses


_SAVED_IN = "chat"
"""The dialect of conversations saved as JSON: the one that most programs can read."""


def _render_json(history: Sequence[Message], tools: Sequence[Tool], model: str) -> tuple[str, int]:
    messages, losses = messages_to(_SAVED_IN, history)
    definitions, more = tools_to(_SAVED_IN, tools)
    members = [b'"model":' + json.encode(model), b'"messages":' + messages]
    members += [b'"tools":' + definitions] if tools else []
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
            yield "A call that could not be parsed:"
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
    """Return a code block whose fence is longer than any run of backticks in the text."""
    fence = "`" * (max((len(found) for found in _FENCES.findall(text)), default=2) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


class ChatEnded(Exception):  # noqa: N818  not an error: the user has left the chat
    """Raised by /quit to end the chat."""


class Command(Struct, frozen=True):
    """A slash command and its help text."""

    run: Callable[[str], None]
    argument: str
    help_text: str


class Commands:
    """Runs the slash commands of the user."""

    def __init__(
        self, loop_thread: EventLoopThread[ChatSession], session: ChatSession, screen: Screen, calls: CallList
    ) -> None:
        self._loop_thread, self._session, self._screen, self._calls = loop_thread, session, screen, calls
        self.failed = False
        """Whether a command has failed."""
        self._saved: set[Path] = set()
        self._commands: Mapping[str, Command] = {
            "tools": Command(self._list_tools, "", "list the tools and how they are run"),
            "model": Command(
                self._choose_model, "[NAME]", "switch to another model or agent; without a name, list them"
            ),
            "show": Command(self._show_call, "[N]", "show a call and its result in full: the last one, or number N"),
            "save": Command(
                self._save, "FILE", "save the conversation, as JSON if FILE ends with .json, else as Markdown"
            ),
            "new": Command(self._start_over, "", "start a new conversation"),
            "help": Command(self._show_help, "", "show this help"),
            "quit": Command(self._quit, "", "leave the chat, like Ctrl-D"),
        }

    def run(self, line: str) -> bool:
        """Run the command in a line; return False if the line is not a command."""
        found = _COMMAND.fullmatch(line.strip())
        if found is None:
            return False
        command = self._commands.get(found[1])
        if command is None:
            self._report_error(f"unknown command /{found[1]}; /help lists the commands")
        else:
            command.run((found[2] or "").strip())
        return True

    def _report_error(self, message: str) -> None:
        self.failed = True
        self._screen.write_note(f"error: {message}", "red")

    def _show_help(self, _: str) -> None:
        lines = [
            f"/{name} {command.argument}".ljust(15) + command.help_text for name, command in self._commands.items()
        ]
        lines.append("Anything else is sent to the model. Ctrl-C stops a turn.")
        lines.append('End a line with \\ to continue it, or begin and end a message of several lines with """.')
        self._screen.write_output("\n".join(lines))

    def _quit(self, _: str) -> None:
        raise ChatEnded

    def _start_over(self, _: str) -> None:
        self._session.start_over()
        self._screen.write_note("started a new conversation")

    def _list_tools(self, _: str) -> None:
        lines = [_describe_tool(handler) for handler in self._session.registry]
        for status in self._session.services.tool_services.list_statuses():
            if not status.connected:
                lines.append(f"tool server {status.name} is not available: {status.error}")
            lines += [f"{each.name} is blocked: its server has changed its definition" for each in status.blocked]
            lines += [f"{status.name}: {tool} cannot be used: {why}" for tool, why in status.unusable.items()]
        self._screen.write_output("\n".join(lines) or "no tools")

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
        self._screen.write_note(f"switched to {name}")
        warn_if_simulated(self._session, self._screen)

    def _show_call(self, number: str) -> None:
        shown = self._calls.all
        if not shown:
            self._report_error("there are no calls yet")
        elif number and (not number.isdecimal() or not 0 < int(number) <= len(shown)):
            self._report_error(f"calls are numbered from 1 to {len(shown)}")
        else:
            self._screen.write_output(format_details(shown[int(number) - 1 if number else -1]))

    def _save(self, name: str) -> None:
        if not name:
            self._report_error("a file name is required: /save FILE")
            return
        path = Path(name).expanduser()
        session, overwrite = self._session, path.resolve() in self._saved
        try:
            lost = save(
                path, session.history, session.registry.definitions, session.assistant.model, overwrite=overwrite
            )
        except FileExistsError:
            self._report_error(f"{name} already exists: use another file name")
            return
        except OSError as error:
            self._report_error(f"cannot write {name} ({error.strerror}): use another file name")
            return
        self._saved.add(path.resolve())
        losses = f"; {lost} losses" if lost else ""
        self._screen.write_note(f"saved {len(session.history)} messages to {name}{losses}")


def _describe_tool(handler: Handler) -> str:
    marks = {
        "has side effects, needs approval": handler.side_effects,
        "returns untrusted text": handler.untrusted,
        "can send data out": handler.sends_out,
    }
    flags = "; ".join(label for label, is_set in marks.items() if is_set)
    first = handler.definition.description.strip().partition("\n")[0]
    return f"{handler.name}{f' ({flags})' if flags else ''}\n    {textwrap.shorten(first, 110, placeholder='…')}"


def warn_if_simulated(session: ChatSession, screen: Screen) -> None:
    """Warn the user if the simulator answers instead of a model."""
    if session.assistant.is_simulated:
        warning = "this is the simulator, not a model: set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY"
        screen.write_note(f"{session.assistant.name}: {warning}", "yellow")
