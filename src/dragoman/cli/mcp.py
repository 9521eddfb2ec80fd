"""`dragoman mcp`: run an MCP server on standard input and output, or sign in to an external one."""

import argparse
import contextlib
import gc
import sys
from typing import TYPE_CHECKING

from dragoman.cli.configuration import report_error
from dragoman.cli.parser import add_config_option, read_seconds

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.cli.parser import Parser
    from dragoman.mcp.settings import ToolServer


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand and its own."""
    parser = verbs.add_parser(
        "mcp",
        help="run an MCP server on standard input and output, or sign in to one",
        examples=("dragoman mcp --config tools.toml", "dragoman mcp login NAME"),
    )
    # Without a default of its own, so that the option may also be before the action.
    add_config_option(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=serve, parser=parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    login = actions.add_parser("login", help="sign in to an external server", examples=("dragoman mcp login tracker",))
    logout = actions.add_parser(
        "logout", help="delete the tokens of an external server", examples=("dragoman mcp logout tracker",)
    )
    for each in (login, logout):
        each.add_argument("name", help="NAME of the [tools.NAME] table")
        add_config_option(each, default=argparse.SUPPRESS)
    login.add_argument("--no-browser", action="store_true", help="only print the address to open")
    login.add_argument("--timeout", type=read_seconds, default=300.0, help="seconds to wait for the user (default 300)")
    login.set_defaults(run=run_login, parser=login)
    logout.set_defaults(run=run_logout, parser=logout)


def serve(options: argparse.Namespace) -> int:
    """Serve MCP until the input ends and all requests are answered."""
    # Importing makes many objects and no garbage: collecting while the SDK loads takes a fifth of the start.
    gc.disable()
    import asyncio  # noqa: PLC0415  only for this verb

    from dragoman.config import ConfigError, load  # noqa: PLC0415
    from dragoman.core.problems import Problem  # noqa: PLC0415

    try:
        config = load(getattr(options, "config", None))
        from dragoman.server.mcp_stdio import serve_mcp  # noqa: PLC0415  only for this verb

        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve_mcp(config))
    except (ConfigError, Problem) as error:
        return report_error(str(error))
    finally:
        gc.enable()
    return 0


def _find_server(options: argparse.Namespace) -> "ToolServer":
    """Return the server that the command names; raises `ConfigError` if a user cannot sign in to it."""
    import dragoman.mcp.sdk  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  says which extra is missing
    from dragoman.config import ConfigError, load  # noqa: PLC0415  only for this verb

    config = load(getattr(options, "config", None))
    server = config.tools.get(options.name)
    if server is None:
        raise ConfigError(config.source, f"tools.{options.name}", f"there is no [tools.{options.name}]")
    if not server.sign_in:
        raise ConfigError(config.source, f"tools.{options.name}.sign_in", "set it to true to sign in to this server")
    return server


def run_login(options: argparse.Namespace) -> int:
    """Sign in to a server, and keep the tokens."""
    import asyncio  # noqa: PLC0415  only for this verb
    import webbrowser  # noqa: PLC0415

    from dragoman.config import ConfigError  # noqa: PLC0415
    from dragoman.guard import start_thread  # noqa: PLC0415

    def show(url: str) -> None:
        sys.stdout.write(f"open this address to sign in:\n{url}\n")
        sys.stdout.flush()
        if not options.no_browser:
            # A browser in the terminal runs until it is closed, and the redirect must be answered meanwhile.
            start_thread(lambda: webbrowser.open(url), "browser")

    try:
        server = _find_server(options)
        from dragoman.mcp.client.sign_in import SignIn, SignInError, find_token_file  # noqa: PLC0415  the SDK is an extra

        file = find_token_file(options.name, server.url)
        try:
            tools = asyncio.run(SignIn(server=server, file=file, show_url=show, seconds=options.timeout).run())
        except SignInError as error:
            return report_error(str(error))
    except ConfigError as error:
        return report_error(str(error))
    listed = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}" + (f" ({', '.join(tools)})" if tools else "")
    sys.stdout.write(f"signed in to {options.name}: {listed}\n")
    return 0


def run_logout(options: argparse.Namespace) -> int:
    """Delete the tokens of a server."""
    from dragoman.config import ConfigError  # noqa: PLC0415  only for this verb

    try:
        server = _find_server(options)
        from dragoman.mcp.client.sign_in import find_token_file  # noqa: PLC0415  the SDK is an extra

        was_signed_in = find_token_file(options.name, server.url).delete()
    except ConfigError as error:
        return report_error(str(error))
    sys.stdout.write(f"{'signed out of' if was_signed_in else 'not signed in to'} {options.name}\n")
    return 0
