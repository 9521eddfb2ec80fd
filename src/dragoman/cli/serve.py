"""`dragoman serve`: run the gateway."""

import argparse
import contextlib
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.configuration import report_error

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.config import Config


def add_to(verbs: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser("serve", help="run the gateway")
    parser.add_argument("--config", type=Path, help="configuration file (default: $DRAGOMAN_CONFIG, ./dragoman.toml)")
    parser.add_argument("--listen", default="", help="HOST:PORT to listen on; overrides `listen` in [server]")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="number of worker processes (default 1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from dragoman.config import ConfigError, load  # noqa: PLC0415  only for this verb

    listen = options.listen
    try:
        config = load(options.config, listen=listen)
        listen = config.server.listen
        if options.workers > 1:
            return _serve_workers(config, options.workers)
        from dragoman.http.server import choose_runner  # noqa: PLC0415  only for this verb
        from dragoman.server.runner import serve  # noqa: PLC0415

        with contextlib.suppress(KeyboardInterrupt):
            choose_runner()(serve(config, on_start=lambda gateway: _print_address(config, gateway.base_url)))
    except (ConfigError, OSError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        message = f"another process already listens on {listen}: stop it, or use another address with --listen"
        return report_error(message if in_use else str(error))
    return 0


def _serve_workers(config: "Config", count: int) -> int:
    from dragoman.http.server import choose_runner  # noqa: PLC0415  only for this verb
    from dragoman.server.workers import Workers  # noqa: PLC0415  not for one process

    workers = Workers(config, count, choose_runner())
    return workers.serve(lambda: _print_address(config, workers.base_url))


def _print_address(config: "Config", base_url: str) -> None:
    sys.stdout.write(f"dragoman listening on {base_url}\n")
    for name, table in config.upstreams.items():
        if table.kind == "simulator":
            sys.stdout.write(
                f"upstream {name!r} is the simulator, which is not a model: set GEMINI_API_KEY or another key\n"
            )
    sys.stdout.flush()
