"""`dragoman doctor`: test the configuration, each upstream and each tool server.

Exit code 0 means that all checks passed, 1 that a check failed, 2 that the configuration is invalid.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from dragoman.cli.parser import add_config_option, paint, read_seconds

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]
    from collections.abc import Callable

    from dragoman.cli.parser import Parser
    from dragoman.config import Config
    from dragoman.doctor import Check


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "doctor",
        help="test the configuration, credentials, upstreams and tool servers",
        examples=("dragoman doctor", "dragoman doctor --model gemini/gemini-3-flash --json"),
    )
    add_config_option(parser)
    parser.add_argument(
        "--model", action="append", default=[], metavar="UPSTREAM/MODEL", help="test only this model; may be repeated"
    )
    parser.add_argument(
        "--timeout", type=read_seconds, default=60.0, help="seconds to wait for a response (default 60)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each check")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the checks, print each result and return the exit code."""
    import asyncio  # noqa: PLC0415  only for this verb

    from dragoman.config import ConfigError, load  # noqa: PLC0415
    from dragoman.doctor import Check  # noqa: PLC0415
    from dragoman.server.runner import listen_address, require_extras  # noqa: PLC0415

    report = _print_json if options.json else _print_line
    try:
        config = load(options.config)
        host, port = listen_address(config)
        require_extras(config)
        _check_models(config, options.model)
    except ConfigError as error:
        report(
            Check(check="configuration", ok=False, detail=str(error), remedy="correct the configuration as described")
        )
        return 2
    detail = f"{config.source}; {len(config.upstreams)} upstreams, {len(config.models)} models, {len(config.keys)} keys"
    detail += f", {len(config.tools)} tool servers" if config.tools else ""
    report(Check(check="configuration", ok=True, detail=f"{detail}, on {host}:{port}"))
    return 0 if asyncio.run(_run_checks(config, options, report)) else 1


def _check_models(config: "Config", models: "list[str]") -> None:
    from dragoman.config import ConfigError  # noqa: PLC0415  only for this verb

    for model in models:
        name, _, rest = model.partition("/")
        if name not in config.upstreams or not rest:
            known = ", ".join(config.upstreams)
            raise ConfigError(
                config.source, "--model", f"{model!r} must be UPSTREAM/MODEL; the configured upstreams are {known}"
            )


async def _run_checks(config: "Config", options: argparse.Namespace, report: "Callable[[Check], None]") -> bool:
    from dragoman.doctor import check_upstreams  # noqa: PLC0415  only for this verb

    passed = True
    async for check in check_upstreams(config, options.model, options.timeout):
        report(check)
        passed = passed and check.ok
    if (config.tools or config.agents) and not options.model:
        from dragoman.doctor import check_tools  # noqa: PLC0415  only if any are configured

        async for check in check_tools(config, options.timeout):
            report(check)
            passed = passed and check.ok
    return passed


def _print_line(check: "Check") -> None:
    place = " ".join(word for word in (check.upstream, check.server, check.check, check.model) if word)
    verdict = paint("ok  ", "green", sys.stdout) if check.ok else paint("FAIL", "red", sys.stdout)
    sys.stdout.write(f"{verdict}  {place}: {check.detail}\n")
    if check.remedy:
        sys.stdout.write(f"      what to do: {check.remedy}\n")
    sys.stdout.flush()


def _print_json(check: "Check") -> None:
    from dragoman.wire import json  # noqa: PLC0415  only for this verb

    sys.stdout.write(json.encode(check).decode() + "\n")
    sys.stdout.flush()
