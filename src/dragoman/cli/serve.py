"""`dragoman serve`: run the gateway."""

import argparse
import contextlib
import errno
import sys
from typing import TYPE_CHECKING

from dragoman.cli.configuration import report_error
from dragoman.cli.parser import add_config_option, read_count, read_port

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.cli.parser import Parser
    from dragoman.config import Config


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "serve",
        help="run the gateway",
        examples=("dragoman serve", "dragoman serve --port 9000", "dragoman serve --config prod.toml --workers 2"),
    )
    add_config_option(parser)
    address = parser.add_mutually_exclusive_group()
    address.add_argument(
        "--listen", default="", metavar="HOST:PORT", help="address to listen on; overrides `listen` in [server]"
    )
    address.add_argument("--port", type=read_port, metavar="PORT", help="port to listen on, at the configured host")
    parser.add_argument("--workers", type=read_count, default=1, metavar="N", help="worker processes (default 1)")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from dragoman.config import ConfigError, load  # noqa: PLC0415
    from dragoman.server.runner import require_extras, serve  # noqa: PLC0415

    listen = options.listen
    try:
        config = load(options.config, listen=listen)
        if options.port is not None:
            config = load(options.config, listen=f"{config.server.listen.rpartition(':')[0]}:{options.port}")
        listen = config.server.listen
        require_extras(config)
        if options.workers > 1:
            return _serve_workers(config, options.workers)
        from dragoman.http.server import choose_runner  # noqa: PLC0415  only for this verb

        with contextlib.suppress(KeyboardInterrupt):
            choose_runner()(serve(config, on_start=lambda gateway: announce(config, gateway.base_url)))
    except ConfigError as error:
        return report_error(str(error))
    except OSError as error:
        message = f"another process already listens on {listen}: stop it, or use another address with --listen"
        return report_error(message if error.errno == errno.EADDRINUSE else error)
    return 0


def _serve_workers(config: "Config", count: int) -> int:
    from dragoman.http.server import choose_runner  # noqa: PLC0415  only for this verb
    from dragoman.server.workers import Workers  # noqa: PLC0415  not for one process

    workers = Workers(config, count, choose_runner())
    return workers.serve(lambda: announce(config, workers.base_url))


def announce(config: "Config", base_url: str) -> None:
    """Say what runs: in the form of the log on standard error, and the address on standard output, for scripts."""
    from dragoman.cli.provenance import describe_start  # noqa: PLC0415  only for this verb

    if config.server.log == "stderr":
        sys.stderr.write(describe_start(config, base_url, out=sys.stderr))
    sys.stdout.write(f"dragoman listening on {base_url}\n")
    sys.stdout.flush()
