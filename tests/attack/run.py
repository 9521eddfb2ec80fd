# ruff: noqa: T201  # what it prints is its result
"""Attack the gateway's availability over loopback: `python -m attack.run [NAME...] --scale N`, or `make attack`.

Each attack starts a gateway, measures what a request of one client does to the others, and compares with a bar. The
exit code is 1 if a bar is missed.
"""

import argparse

from attack import ambiguous, bodies, faults, malformed, overload, processing, readers, shutdown, streams, tool_servers

ATTACKS = {
    "ambiguous": ambiguous.attack,
    "bodies": bodies.attack,
    "faults": faults.attack,
    "malformed": malformed.attack,
    "overload": overload.attack,
    "processing": processing.attack,
    "readers": readers.attack,
    "shutdown": shutdown.attack,
    "streams": streams.attack,
    "tool-servers": tool_servers.attack,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*ATTACKS, []], help="attacks to run; all by default")
    parser.add_argument("--scale", type=int, default=4, help="how large the attacks are; the tests use 1")
    options = parser.parse_args()
    missed = 0
    for name in options.names or ATTACKS:
        print(name, flush=True)
        for measure in ATTACKS[name](options.scale):
            missed += not measure.is_met
            print(f"   {measure}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
