"""`dragoman simulate`: serve strict stand-ins for the vendors' APIs on loopback, until interrupted."""

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.loop import choose_runner

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.simulator.state import Settings

PORT = 8742
_SWITCHES = {
    "recorded": "let well-formed signatures of the real vendors through",
    "interleaved": "let parallel calls grow in turns, where the API can say that",
    "partial-args": "send arguments in pieces on Vertex paths",
}


def add_to(verbs: "_SubParsersAction[ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser("simulate", help="serve strict offline stand-ins for the vendors' APIs")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=PORT, help=f"where to listen (default {PORT}; 0 is any free one)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same answers")
    parser.add_argument("--chunk", type=int, default=24, help="characters in a delta of a stream; 0 for all at once")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between the frames of a stream")
    parser.add_argument("--split", type=int, default=0, help="send frames in pieces of at most so many bytes")
    parser.add_argument("--fault", default="", help="how every request goes wrong; `--fault list` lists the ways")
    parser.add_argument("--key", default="", help="the one key that is accepted (default: any)")
    parser.add_argument("--script", type=Path, help="a file in TOML or Python with the answers to give")
    parser.add_argument("--recording", type=Path, help="a file of recorded exchanges to serve")
    for name, words in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if options.fault == "list":
        from dragoman.simulator.faults import NAMES  # noqa: PLC0415  only for this verb

        sys.stdout.writelines(f"{name}: {words}\n" for name, words in NAMES.items())
        return 0
    try:
        settings = _build_settings(options)
        with contextlib.suppress(KeyboardInterrupt):
            choose_runner()(_serve(options, settings))
    except (ValueError, OSError) as error:
        return _report_error(str(error))
    return 0


def _report_error(message: str) -> int:
    sys.stderr.write(f"dragoman: {message}\n")
    return 2


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

    from dragoman.simulator.serving import running  # noqa: PLC0415  only for this verb

    stopped = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # where a loop knows no signals, an interrupt is an exception
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with running(settings, host=options.host, port=options.port) as simulator:
        sys.stdout.write(f"dragoman simulator on {simulator.base_url} (not a model: it says so in every answer)\n")
        sys.stdout.flush()
        await stopped.wait()
