"""`dragoman config`: show the effective configuration, check it, print an example, hash a key.

Exit code 0 means that the configuration is valid, 2 that it is not.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.parser import Parser, add_config_option, paint

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "config",
        help="write, show or check the configuration, print an example, hash a key",
        examples=("dragoman config init", "dragoman config check", "dragoman config hash-key --new"),
    )
    file = Parser(add_help=False)
    # SUPPRESS: without a default here, `dragoman config --config FILE show` keeps FILE.
    add_config_option(file, default=argparse.SUPPRESS)
    add_config_option(parser)
    parser.set_defaults(run=show, parser=parser)
    parts = parser.add_subparsers(metavar="PART")
    starting = parts.add_parser(
        "init",
        help="write a small configuration file that works at once",
        examples=("dragoman config init", "dragoman config init ~/.config/dragoman/dragoman.toml"),
    )
    starting.add_argument("file", nargs="?", type=Path, default=Path("dragoman.toml"), help="default: dragoman.toml")
    starting.set_defaults(run=init, parser=starting)
    showing = parts.add_parser(
        "show",
        parents=[file],
        help="print the effective values and where each comes from",
        examples=("dragoman config show", "dragoman config show --config prod.toml"),
    )
    showing.set_defaults(run=show, parser=showing)
    checking = parts.add_parser(
        "check",
        parents=[file],
        help="check whether the configuration is valid",
        examples=("dragoman config check --config prod.toml",),
    )
    checking.set_defaults(run=check, parser=checking)
    printing = parts.add_parser(
        "example", help="print a commented example file", examples=("dragoman config example | less",)
    )
    printing.set_defaults(run=example, parser=printing)
    hashing = parts.add_parser(
        "hash-key",
        help="read a client key from standard input and print its hash",
        examples=("dragoman config hash-key --new", "dragoman config hash-key < key.txt"),
    )
    hashing.add_argument("--new", action="store_true", help="generate a key and print it before its hash")
    hashing.set_defaults(run=hash_key, parser=hashing)


def init(options: argparse.Namespace) -> int:
    """Write a configuration for the keys in the environment, or for the simulator."""
    import os  # noqa: PLC0415  only for this verb

    from dragoman.cli.provenance import write_first_config  # noqa: PLC0415

    try:
        with options.file.open("x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in write_first_config(os.environ))
    except FileExistsError:
        return report_error(f"{options.file} exists already; edit it, remove it, or name another file")
    except OSError as error:
        return report_error(f"{options.file}: cannot write the file: {error.strerror}")
    sys.stdout.write(f"wrote {options.file}; check it with `dragoman doctor`, start it with `dragoman serve`\n")
    return 0


def show(options: argparse.Namespace) -> int:
    """Print the effective configuration."""
    from dragoman.cli.provenance import format_config  # noqa: PLC0415  only for this verb
    from dragoman.config import ConfigError  # noqa: PLC0415

    try:
        sys.stdout.writelines(f"{line}\n" for line in format_config(options.config))
    except ConfigError as error:
        return report_error(str(error))
    return 0


def check(options: argparse.Namespace) -> int:
    """Check the configuration and print the result."""
    from dragoman.config import ConfigError, load  # noqa: PLC0415  only for this verb
    from dragoman.gateway.agents.toolset import find_unknown_tools  # noqa: PLC0415
    from dragoman.server.runner import listen_address, require_extras  # noqa: PLC0415

    try:
        config = load(options.config)
        listen_address(config)
        require_extras(config)
    except ConfigError as error:
        return report_error(str(error))
    for key, message in find_unknown_tools(config.agents, config.tools):
        sys.stderr.write(f"dragoman: {config.source}: {key}: {message}\n")
    sys.stdout.write(f"{config.source}: the configuration is valid; to test the upstreams, run `dragoman doctor`\n")
    return 0


def example(_: argparse.Namespace) -> int:
    """Print the example configuration file."""
    from importlib.resources import files  # noqa: PLC0415  only for this verb

    sys.stdout.write(files("dragoman").joinpath("example.toml").read_text(encoding="utf-8"))
    return 0


def hash_key(options: argparse.Namespace) -> int:
    """Print the hash that `[server] keys` accepts instead of a client key."""
    import secrets  # noqa: PLC0415  only for this verb
    from getpass import getpass  # noqa: PLC0415

    from dragoman.server.auth import hash_secret  # noqa: PLC0415

    if options.new:
        key = f"dm-{secrets.token_urlsafe(32)}"
        sys.stdout.write(f"{key}\n")
    else:
        try:
            key = getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
            key.encode()
        except UnicodeError:
            return report_error("the key is not UTF-8 text; pass one that is, or use --new")
    if not key:
        return report_error("the key is empty; pass a key on standard input, or use --new")
    sys.stdout.write(f"sha256:{hash_secret(key)}\n")
    return 0


def report_error(error: str | OSError) -> int:
    """Print an error and return the exit code."""
    sys.stderr.write(f"{paint('dragoman:', 'red', sys.stderr)} {describe_error(error)}\n")
    return 2


def describe_error(error: str | OSError) -> str:
    """Return the message of an error of the system without its number."""
    if isinstance(error, str) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
