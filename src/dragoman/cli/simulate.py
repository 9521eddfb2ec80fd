"""`dragoman simulate`: serve strict stand-ins for the vendors' APIs on loopback, until interrupted."""

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]

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
    parser.add_argument("--script", type=Path, help="a TOML file with the answers to give")
    parser.add_argument("--recording", type=Path, help="a file of recorded exchanges to serve")
    for name, words in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from dragoman.simulator.faults import NAMES, UnknownFault, read_fault  # noqa: PLC0415  only for this verb

    if options.fault == "list":
        sys.stdout.writelines(f"{name}: {words}\n" for name, words in NAMES.items())
        return 0
    try:
        if options.fault:
            read_fault(options.fault)
        settings = _settings(options)
    except (UnknownFault, ValueError, OSError) as error:
        sys.stderr.write(f"dragoman: {error}\n")
        return 2
    with contextlib.suppress(KeyboardInterrupt):
        _loop_runner()(_serve(options, settings))
    return 0


def _settings(options: argparse.Namespace) -> Any:
    from dragoman.simulator.recordings import Recordings  # noqa: PLC0415  only for this verb
    from dragoman.simulator.script import TomlScript  # noqa: PLC0415
    from dragoman.simulator.settings import Settings  # noqa: PLC0415

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
        script=TomlScript.read(options.script) if options.script else None,
        recordings=Recordings.read(options.recording) if options.recording else None,
    )


def _loop_runner() -> Any:
    """Return what runs a coroutine, on uvloop where that is installed."""
    try:
        import uvloop  # noqa: PLC0415  an extra
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _serve(options: argparse.Namespace, settings: Any) -> None:
    from dragoman.simulator.serving import running  # noqa: PLC0415  only for this verb

    async with running(settings, host=options.host, port=options.port) as simulator:
        sys.stdout.write(f"dragoman simulator on {simulator.base_url} (not a model: it says so in every answer)\n")
        sys.stdout.flush()
        stopped = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stopped.set)
        await stopped.wait()
