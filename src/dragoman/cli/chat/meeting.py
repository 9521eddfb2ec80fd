"""The whole conversation: opened, talked, and closed, on a terminal, in a pipe, or once."""

import argparse
import logging
import os
import sys
from functools import partial
from io import TextIOWrapper

from msgspec import structs

from dragoman.cli.chat.commands import Commands, Done, warn_of_simulator
from dragoman.cli.chat.session import Talk, Wants, open_talk
from dragoman.cli.chat.terminal import Interrupts, Keyboard, Pipe, Screen, Stage, Terminal
from dragoman.cli.chat.turns import ChatTurns
from dragoman.config import Config, load
from dragoman.core.problems import Problem

_PATIENCE = 5.0
"""Seconds that servers and connections have to end."""
_INTERRUPTED = 130


def meet(options: argparse.Namespace) -> int:
    """Talk until there is nothing more to say; return the exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    pretty = options.once is None and sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(sys.stdout, sys.stderr, pretty=pretty)
    wants = Wants(
        model=options.model,
        tools=options.tools,
        yes=options.yes,
        session=options.session,
        can_ask=pretty or (sys.stdin.isatty() and sys.stderr.isatty()),
    )
    stage: Stage[Talk] = Stage(partial(open_talk, _quiet(load(options.config)), wants))
    try:
        code = _talked(options, stage, screen)
    except (KeyboardInterrupt, SystemExit) as error:
        screen.end_line()
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else _INTERRUPTED
    finally:
        closed = _closed(stage)
    if not closed:
        # Something does not end, maybe a tool in a thread, and nothing can make it.
        sys.stdout.flush()
        os._exit(code)
    return code


def _closed(stage: Stage[Talk]) -> bool:
    """Let servers and connections end; tell whether they did, before the user would wait no longer."""
    try:
        return stage.close(_PATIENCE)
    except KeyboardInterrupt:
        return False


def _talked(options: argparse.Namespace, stage: Stage[Talk], screen: Screen) -> int:
    terminal = Terminal(screen, Keyboard(screen) if screen.pretty else Pipe(), Interrupts())
    with terminal.interrupts.heard():
        prompt = sys.stdin.read().strip() if options.once == "-" else options.once
        if prompt is not None and not prompt.strip():
            # Some vendors refuse an empty text, others make something up.
            raise Problem("invalid_request", "--once: there is nothing to ask")
        talk = stage.open()
        turns = ChatTurns(stage, talk, terminal, aloud=prompt is None, verbose=options.verbose)
        _welcome(talk, screen)
        if prompt is None:
            commands = Commands(stage, talk, screen, turns.calls)
            well = _converse(turns, commands, terminal) and not commands.failed
            return 0 if well or screen.pretty else 1
        return 0 if turns.take(prompt) else _INTERRUPTED if terminal.interrupts.armed else 1


def _converse(turns: ChatTurns, commands: Commands, terminal: Terminal) -> bool:
    """Take turns until the user has no more to say; tell whether all of them brought an answer."""
    screen, interrupts, well = terminal.screen, terminal.interrupts, True
    while True:
        try:
            line = terminal.lines.line()
        except KeyboardInterrupt:
            if interrupts.armed or not screen.pretty:
                raise
            interrupts.armed = True
            screen.note("\n(Ctrl-C once more leaves)")
            continue
        if line is None:
            return well
        interrupts.armed = False
        try:
            if line.strip() and not commands.run(line):
                well = turns.take(line) and well
        except Done:
            return well


def _welcome(talk: Talk, screen: Screen) -> None:
    """Say who is there, and who is not."""
    if screen.pretty:
        count = len(talk.registry)
        screen.note(f"{talk.role.name}, {count} tools. /help tells what can be said beside.", "bold")
        if talk.history:
            screen.note(f"(going on after {len(talk.history)} messages)")
    warn_of_simulator(talk, screen)
    for status in talk.bench.toolbox.status():
        if not status.connected:
            screen.note(f"the server {status.name} is not there: {status.error}", "yellow")


def _quiet(config: Config) -> Config:
    """Return a configuration whose log does not write between the lines."""
    logging.getLogger().addHandler(logging.NullHandler())
    if config.server.log != "stderr":
        return config
    return structs.replace(config, server=structs.replace(config.server, log="off"))
