"""`dragoman intercept`: intercept the requests of a program to the Gemini API.

With a command after `--`, its requests to the listed hosts go through the gateway. `--print-env` prints variables that
do the same without a proxy, `--log` shows the exchanges, and `replay` sends a saved one again. An error is one line on
standard error, with exit code 2.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.config import Config

_USAGE = """dragoman intercept [options] -- COMMAND [ARGUMENT ...]
       dragoman intercept [options] --print-env | --log | --install
       dragoman intercept replay [options] FILE"""


def add_to(verbs: "_SubParsersAction[Any]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "intercept",
        help="intercept the requests of a program to the Gemini API",
        usage=_USAGE,
        examples=("dragoman intercept -- python program.py", 'eval "$(dragoman intercept --print-env)"'),
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration file (default: $DRAGOMAN_CONFIG, ./dragoman.toml, ~/.config/dragoman/dragoman.toml)",
    )
    parser.add_argument("--name", default="", help="an entry [intercept.NAME] or an upstream (default: all entries)")
    parser.add_argument(
        "--session", default="", metavar="ID", help="session of the program, if several use one entry (default: none)"
    )
    parser.add_argument(
        "--listen", default="", metavar="HOST:PORT", help="address of the gateway; overrides `listen` in [server]"
    )
    parser.add_argument("--gateway", default="", metavar="URL", help="use the running gateway at this URL")
    parser.add_argument("--install", action="store_true", help="install mitmproxy if it is missing, without asking")
    parser.add_argument(
        "--print-env", action="store_true", help="print the variables that send a program's requests to the gateway"
    )
    parser.add_argument("--log", action="store_true", help="show each exchange")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="with --log: save each exchange as a file in this folder"
    )
    parser.set_defaults(run=run, takes_command=True, parser=parser)
    parts = parser.add_subparsers(metavar="PART")
    again = parts.add_parser(
        "replay", help="send a saved exchange again", examples=("dragoman intercept replay exchanges/0001.json --show",)
    )
    again.add_argument("file", type=Path, help="a file written by --save")
    again.add_argument("--config", type=Path, default=argparse.SUPPRESS, help="configuration file, as for serve")
    again.add_argument(
        "--came", action="store_true", help="send the program's original request, and apply the current rules to it"
    )
    again.add_argument("--show", action="store_true", help="only show the exchange, as --log does")
    again.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="a header to send; write env:VARIABLE to take its value from the environment",
    )
    again.set_defaults(run=run_replay, takes_command=False, parser=again)


def run(options: argparse.Namespace) -> int:
    """Run a command, print variables or show exchanges, by the options; return the exit code."""
    from dragoman.cli.intercept.command import report_errors  # noqa: PLC0415  only for this verb

    return report_errors(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    if options.log and not options.command:
        from dragoman.cli.intercept.show import follow_exchanges  # noqa: PLC0415  only for this

        return follow_exchanges(options.name, options.save)
    from dragoman.cli.intercept.hosts import build_variables  # noqa: PLC0415
    from dragoman.config import load  # noqa: PLC0415

    if options.install and not options.command:
        sys.stdout.write(f"{_find_program(options)}\n")
        return 0
    from dragoman.server.runner import listen_address  # noqa: PLC0415

    config = load(options.config, listen=options.listen)
    if options.listen:
        listen_address(config)  # raises an error if it is not one
    if options.print_env:
        base_url = options.gateway.rstrip("/") or f"http://{config.server.listen}"
        _print_variables(build_variables(config, base_url, options.name, options.session))
        return 0
    if not options.command:
        sys.stderr.write(f"usage: {_USAGE}\n")
        return 2
    return _run_command(options, config)


def _print_variables(rows: list[tuple[str, str, str]]) -> None:
    """Print variables for a shell to evaluate; one that an earlier entry has is a comment."""
    printed: set[str] = set()
    for entry, variable, value in rows:
        note = f"   # or only this entry, with --name {entry}" if variable in printed else ""
        sys.stdout.write(f"{'#' if note else ''}export {variable}={value}{note}\n")
        printed.add(variable)


def _run_command(options: argparse.Namespace, config: "Config") -> int:
    from contextlib import nullcontext  # noqa: PLC0415  only for this

    from dragoman.cli.intercept.command import InterceptionPlan, run_intercepted  # noqa: PLC0415
    from dragoman.cli.intercept.hosts import build_routes  # noqa: PLC0415
    from dragoman.cli.intercept.show import follow_in_thread  # noqa: PLC0415
    from dragoman.http.server import choose_runner  # noqa: PLC0415

    plan = InterceptionPlan(
        config=config,
        routes=build_routes(config, options.name, options.session),
        program=_find_program(options),
        command=options.command,
        gateway=options.gateway,
    )
    with follow_in_thread(sys.stderr, options.name, options.save) if options.log else nullcontext():
        return choose_runner()(run_intercepted(plan))


def _find_program(options: argparse.Namespace) -> Path:
    from dragoman.cli.chat.terminal import discard_typed_input  # noqa: PLC0415  only for this
    from dragoman.cli.intercept.mitmproxy import find_mitmdump  # noqa: PLC0415

    def confirm(question: str) -> bool:
        if options.install:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        discard_typed_input()
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    return find_mitmdump(confirm)


def run_replay(options: argparse.Namespace) -> int:
    """Send a saved exchange again."""
    from dragoman.cli.intercept.command import report_errors  # noqa: PLC0415  only for this verb

    return report_errors(lambda: _replay(options))


def _replay(options: argparse.Namespace) -> int:
    from dragoman.cli.intercept.replay import ReplayRequest, parse_headers, read_saved, replay_exchange, show_saved  # noqa: PLC0415  only for this
    from dragoman.config import load  # noqa: PLC0415
    from dragoman.http.server import choose_runner  # noqa: PLC0415

    exchange = read_saved(options.file)
    if options.show:
        show_saved(exchange)
        return 0
    again = ReplayRequest(exchange=exchange, use_original=options.came, headers=parse_headers(options.header))
    return choose_runner()(replay_exchange(again, load(options.config)))
