"""Run a chat from start-up to shutdown: interactively, from a pipe, or with one prompt."""

import argparse
import logging
import os
import sys
from functools import partial
from io import TextIOWrapper

from msgspec import structs

from dragoman.cli.chat.commands import ChatEnded, Commands, warn_if_simulated
from dragoman.cli.chat.session import ChatOptions, ChatSession, open_session
from dragoman.cli.chat.terminal import EventLoopThread, Interrupts, KeyboardReader, PipeReader, Screen, Terminal
from dragoman.cli.chat.turns import ChatTurns
from dragoman.config import Config, load
from dragoman.core.problems import Problem
from dragoman.sessions.store import state_folder

_CLOSE_SECONDS = 5.0
"""Seconds that servers and connections have to close."""
_INTERRUPTED = 130


def run_chat(options: argparse.Namespace) -> int:
    """Run the chat and return the exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    pretty = options.once is None and not options.json and sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(sys.stdout, sys.stderr, pretty=pretty)
    chat_options = ChatOptions(
        model=options.model,
        tools=options.tools,
        yes=options.yes,
        session=options.session,
        can_ask=pretty or (sys.stdin.isatty() and sys.stderr.isatty()),
    )
    loop_thread: EventLoopThread[ChatSession] = EventLoopThread(
        partial(open_session, _silence_log(load(options.config)), chat_options)
    )
    try:
        code = _run_session(options, loop_thread, screen)
    except (KeyboardInterrupt, SystemExit) as error:
        screen.end_line()
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else _INTERRUPTED
    finally:
        closed = _close(loop_thread)
    if not closed:
        # Something still runs, perhaps a tool in a thread, which cannot be cancelled.
        sys.stdout.flush()
        os._exit(code)
    return code


def _close(loop_thread: EventLoopThread[ChatSession]) -> bool:
    """Close servers and connections; return whether they closed before the timeout or a further Ctrl-C."""
    try:
        return loop_thread.close(_CLOSE_SECONDS)
    except KeyboardInterrupt:
        return False


def _run_session(options: argparse.Namespace, loop_thread: EventLoopThread[ChatSession], screen: Screen) -> int:
    history = state_folder() / "chat_history" if options.history else None
    terminal = Terminal(screen, KeyboardReader(screen, history) if screen.pretty else PipeReader(), Interrupts())
    with terminal.interrupts.handle_signals():
        prompt = sys.stdin.read().strip() if options.once == "-" else options.once
        if prompt is not None and not prompt.strip():
            # Some vendors reject an empty text, others invent an answer to it.
            raise Problem("invalid_request", "--once: the prompt is empty")
        session = loop_thread.open()
        style = "json" if options.json else "stream" if prompt is None else "answer"
        turns = ChatTurns(loop_thread, session, terminal, style, verbose=options.verbose)
        _print_welcome(session, screen)
        if prompt is None:
            commands = Commands(loop_thread, session, screen, turns.calls)
            succeeded = _run_turns(turns, commands, terminal) and not commands.failed
            return 0 if succeeded or screen.pretty else 1
        return 0 if turns.run(prompt) else _INTERRUPTED if terminal.interrupts.is_armed else 1


def _run_turns(turns: ChatTurns, commands: Commands, terminal: Terminal) -> bool:
    """Run turns until the input ends or the user leaves; return whether all turns succeeded."""
    screen, interrupts, succeeded = terminal.screen, terminal.interrupts, True
    is_empty = not screen.pretty
    while True:
        try:
            line = terminal.lines.read_line()
        except KeyboardInterrupt:
            if interrupts.is_armed or not screen.pretty:
                raise
            interrupts.is_armed = True
            screen.write_note("\n(press Ctrl-C again to leave)")
            continue
        if line is None:
            if is_empty:
                raise Problem("invalid_request", "standard input is empty; write one prompt a line, or use --once")
            return succeeded
        is_empty = is_empty and not line.strip()
        interrupts.is_armed = False
        try:
            if line.strip() and not commands.run(line):
                succeeded = turns.run(line) and succeeded
        except ChatEnded:
            return succeeded


def _print_welcome(session: ChatSession, screen: Screen) -> None:
    """Print the model, the number of tools and warnings about servers that are not available."""
    if screen.pretty:
        count = len(session.registry)
        screen.write_note(f"{session.assistant.name}, {count} tools. /help lists the commands.", "bold")
        if session.history:
            screen.write_note(f"(continuing a conversation of {len(session.history)} messages)")
    warn_if_simulated(session, screen)
    for status in session.services.tool_services.list_statuses():
        if not status.connected:
            screen.write_note(f"tool server {status.name} is not available: {status.error}", "yellow")


def _silence_log(config: Config) -> Config:
    """Return a configuration whose log does not write to the terminal."""
    logging.getLogger().addHandler(logging.NullHandler())
    if config.server.log != "stderr":
        return config
    return structs.replace(config, server=structs.replace(config.server, log="off"))
