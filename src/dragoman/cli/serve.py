"""`dragoman serve`: run the gateway until interrupted."""

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.loop import runner

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.config import Config
    from dragoman.server.serving import Running


def add_to(verbs: "_SubParsersAction[ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser("serve", help="run the gateway")
    parser.add_argument("--config", type=Path, help="the configuration (default: $DRAGOMAN_CONFIG, ./dragoman.toml)")
    parser.add_argument("--listen", default="", help="host:port, instead of the configured one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from msgspec.structs import replace  # noqa: PLC0415  only for this verb

    from dragoman.config import ConfigError, load  # noqa: PLC0415

    try:
        config = load(options.config)
        if options.listen:
            config = replace(config, server=replace(config.server, listen=options.listen))
        with contextlib.suppress(KeyboardInterrupt):
            runner()(_serve(config))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"dragoman: {error}\n")
        return 2
    return 0


async def _serve(config: "Config") -> None:
    import asyncio  # noqa: PLC0415  not for other verbs

    from dragoman.server import log  # noqa: PLC0415  only for this verb
    from dragoman.server.serving import running  # noqa: PLC0415

    with log.opened(config) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.loop_failed)
        async with running(config, observers=[lines.ended]) as gateway:
            await _until_told(gateway)


async def _until_told(gateway: "Running") -> None:
    import asyncio  # noqa: PLC0415  not for other verbs

    sys.stdout.write(f"dragoman on {gateway.base_url}\n")
    for name in gateway.simulated:
        sys.stdout.write(f"upstream {name!r} is the simulator, not a model: set GEMINI_API_KEY or another key\n")
    sys.stdout.flush()
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    await stopped.wait()
