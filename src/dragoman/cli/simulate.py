"""`dragoman simulate`: run a simulator of the vendors' APIs, by default on loopback, until interrupted."""

import argparse
import contextlib
import errno
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.configuration import report_error

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.cli.parser import Parser
    from dragoman.simulator.state import Settings

PORT = 8742
_SWITCHES = {
    "recorded": "accept well-formed signatures that the real vendors issued",
    "interleaved": "stream parallel calls interleaved, where the API allows it",
    "partial-args": "stream partial arguments of calls on Vertex paths",
}


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "simulate",
        help="run an offline simulator that validates requests as the vendors' APIs do",
        examples=("dragoman simulate --seed 7 --delay 0.02", "dragoman simulate --fault 429,retry-after=2"),
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"port to listen on (default {PORT}; 0 chooses a free one)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed; the same seed gives the same responses")
    parser.add_argument(
        "--chunk", type=int, default=24, help="characters in each delta of a stream; 0 for one delta (default 24)"
    )
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between the events of a stream")
    parser.add_argument(
        "--split", type=int, default=0, help="send events in TCP chunks of at most this many bytes (default: whole)"
    )
    parser.add_argument(
        "--fault", default="", help="fail every request with this fault; `--fault list` lists the faults"
    )
    parser.add_argument("--key", default="", help="the only API key to accept (default: any key)")
    parser.add_argument("--script", type=Path, help="TOML or Python file with scripted responses")
    parser.add_argument("--recording", type=Path, help="file of recorded exchanges to replay")
    for name, text in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if options.fault == "list":
        from dragoman.simulator.faults import NAMES  # noqa: PLC0415  only for this verb

        sys.stdout.writelines(f"{name}: {text}\n" for name, text in NAMES.items())
        return 0
    from dragoman.http.server import choose_runner  # noqa: PLC0415  only for this verb

    try:
        settings = _build_settings(options)
        with contextlib.suppress(KeyboardInterrupt):
            choose_runner()(_serve(options, settings))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return report_error(f"port {options.port} is in use; choose another with --port")
        return report_error(f"{error.filename}: cannot read the file: {error.strerror}" if error.filename else error)
    except ValueError as error:
        return report_error(str(error))
    return 0


def _build_settings(options: argparse.Namespace) -> "Settings":
    from dragoman.simulator.recordings import Recordings  # noqa: PLC0415  only for this verb
    from dragoman.simulator.script import read_script  # noqa: PLC0415
    from dragoman.simulator.state import Settings  # noqa: PLC0415

    return Settings(
        seed=options.seed,
        recorded=options.recorded,
        chunk=options.chunk,
        delay=options.delay,
        split=options.split,
        interleaved=options.interleaved,
        partial_args=options.partial_args,
        fault=options.fault,
        key=options.key,
        script=read_script(options.script) if options.script else None,
        recordings=Recordings.read(options.recording) if options.recording else None,
    )


async def _serve(options: argparse.Namespace, settings: "Settings") -> None:
    import asyncio  # noqa: PLC0415  not for other verbs

    from dragoman.simulator.runner import running  # noqa: PLC0415  only for this verb

    stopped = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # Windows loops have no signal handlers: Ctrl-C raises there
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with running(settings, host=options.host, port=options.port) as simulator:
        sys.stdout.write(
            f"dragoman simulator listening on {simulator.base_url} (every answer says that it is not from a model)\n"
        )
        sys.stdout.flush()
        await stopped.wait()
