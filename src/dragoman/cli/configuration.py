"""`dragoman config`: show the configuration that holds, check it, print an example, hash a key.

Exit code 0 means that it can be used, 2 that it cannot.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]


def add_to(verbs: "_SubParsersAction[ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser("config", help="show, check or begin a configuration")
    file = argparse.ArgumentParser(add_help=False)
    # What was said before the part must not be forgotten because the part says nothing.
    file.add_argument("--config", type=Path, default=argparse.SUPPRESS, help="the configuration, as for serve")
    parser.add_argument("--config", type=Path, help="the configuration (default: $DRAGOMAN_CONFIG, ./dragoman.toml)")
    parser.set_defaults(run=show)
    parts = parser.add_subparsers(metavar="PART")
    parts.add_parser("show", parents=[file], help="what holds, and where each value comes from").set_defaults(run=show)
    parts.add_parser("check", parents=[file], help="whether it can be used").set_defaults(run=check)
    parts.add_parser("example", help="a commented example of the file").set_defaults(run=example)
    hashing = parts.add_parser("hash-key", help="a hashed key for the file, of the key on standard input")
    hashing.add_argument("--new", action="store_true", help="make a key and print it too")
    hashing.set_defaults(run=hash_key)


def show(options: argparse.Namespace) -> int:
    """Print the configuration that holds."""
    from dragoman.cli.provenance import format_config  # noqa: PLC0415  only for this verb
    from dragoman.config import ConfigError  # noqa: PLC0415

    try:
        sys.stdout.writelines(f"{line}\n" for line in format_config(options.config))
    except ConfigError as error:
        return _report_error(str(error))
    return 0


def check(options: argparse.Namespace) -> int:
    """Say whether the configuration can be used."""
    from dragoman.config import ConfigError, load  # noqa: PLC0415  only for this verb
    from dragoman.gateway.agents.toolset import find_unknown_tools  # noqa: PLC0415
    from dragoman.server.serving import listen_address  # noqa: PLC0415

    try:
        config = load(options.config)
        listen_address(config)
    except ConfigError as error:
        return _report_error(str(error))
    for key, words in find_unknown_tools(config.agents, config.tools):
        sys.stderr.write(f"dragoman: {config.source}: {key}: {words}\n")
    sys.stdout.write(f"{config.source}: it can be used; `dragoman doctor` tries the upstreams\n")
    return 0


def example(_: argparse.Namespace) -> int:
    """Print an example of the file."""
    from importlib.resources import files  # noqa: PLC0415  only for this verb

    sys.stdout.write(files("dragoman").joinpath("example.toml").read_text(encoding="utf-8"))
    return 0


def hash_key(options: argparse.Namespace) -> int:
    """Print what the file may hold instead of a key."""
    import secrets  # noqa: PLC0415  only for this verb
    from getpass import getpass  # noqa: PLC0415

    from dragoman.server.auth import hash_secret  # noqa: PLC0415

    if options.new:
        key = f"dm-{secrets.token_urlsafe(32)}"
        sys.stdout.write(f"{key}\n")
    else:
        key = getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    if not key:
        return _report_error("an empty key would let everybody in")
    sys.stdout.write(f"sha256:{hash_secret(key)}\n")
    return 0


def _report_error(message: str) -> int:
    sys.stderr.write(f"dragoman: {message}\n")
    return 2
