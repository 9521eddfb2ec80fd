"""The whole conversation: opened, talked, and closed, on a terminal, in a pipe, or once."""

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

_CLOSE_SECONDS = 5.0
"""Seconds that servers and connections have to end."""
_INTERRUPTED = 130


def run_chat(options: argparse.Namespace) -> int:
    """Talk until there is nothing more to say; return the exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    pretty = options.once is None and sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(sys.stdout, sys.stderr, pretty=pretty)
    wants = ChatOptions(
        model=options.model,
        tools=options.tools,
        yes=options.yes,
        session=options.session,
        can_ask=pretty or (sys.stdin.isatty() and sys.stderr.isatty()),
    )
    stage: EventLoopThread[ChatSession] = EventLoopThread(
        partial(open_session, _silence_log(load(options.config)), wants)
    )
    try:
        code = _run_session(options, stage, screen)
    except (KeyboardInterrupt, SystemExit) as error:
        screen.end_line()
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else _INTERRUPTED
    finally:
        closed = _close(stage)
    if not closed:
        # Something does not end, maybe a tool in a thread, and nothing can make it.
        sys.stdout.flush()
        os._exit(code)
    return code


def _close(loop_thread: EventLoopThread[ChatSession]) -> bool:
    """Let servers and connections end; tell whether they did, before the user would wait no longer."""
    try:
        return loop_thread.close(_CLOSE_SECONDS)
    except KeyboardInterrupt:
        return False


def _run_session(options: argparse.Namespace, loop_thread: EventLoopThread[ChatSession], screen: Screen) -> int:
    terminal = Terminal(screen, KeyboardReader(screen) if screen.pretty else PipeReader(), Interrupts())
    with terminal.interrupts.handle_signals():
        prompt = sys.stdin.read().strip() if options.once == "-" else options.once
        if prompt is not None and not prompt.strip():
            # Some vendors refuse an empty text, others make something up.
            raise Problem("invalid_request", "--once: there is nothing to ask")
        talk = loop_thread.open()
        turns = ChatTurns(loop_thread, talk, terminal, streams_text=prompt is None, verbose=options.verbose)
        _print_welcome(talk, screen)
        if prompt is None:
            commands = Commands(loop_thread, talk, screen, turns.calls)
            well = _run_turns(turns, commands, terminal) and not commands.failed
            return 0 if well or screen.pretty else 1
        return 0 if turns.run(prompt) else _INTERRUPTED if terminal.interrupts.is_armed else 1


def _run_turns(turns: ChatTurns, commands: Commands, terminal: Terminal) -> bool:
    """Take turns until the user has no more to say; tell whether all of them brought an answer."""
    screen, interrupts, well = terminal.screen, terminal.interrupts, True
    while True:
        try:
            line = terminal.lines.read_line()
        except KeyboardInterrupt:
            if interrupts.is_armed or not screen.pretty:
                raise
            interrupts.is_armed = True
            screen.write_note("\n(Ctrl-C once more leaves)")
            continue
        if line is None:
            return well
        interrupts.is_armed = False
        try:
            if line.strip() and not commands.run(line):
                well = turns.run(line) and well
        except ChatEnded:
            return well


def _print_welcome(session: ChatSession, screen: Screen) -> None:
    """Say who is there, and who is not."""
    if screen.pretty:
        count = len(session.registry)
        screen.write_note(f"{session.assistant.name}, {count} tools. /help tells what can be said beside.", "bold")
        if session.history:
            screen.write_note(f"(going on after {len(session.history)} messages)")
    warn_if_simulated(session, screen)
    for status in session.services.tool_services.list_statuses():
        if not status.connected:
            screen.write_note(f"the server {status.name} is not there: {status.error}", "yellow")


def _silence_log(config: Config) -> Config:
    """Return a configuration whose log does not write between the lines."""
    logging.getLogger().addHandler(logging.NullHandler())
    if config.server.log != "stderr":
        return config
    return structs.replace(config, server=structs.replace(config.server, log="off"))
