"""The command: the script `dragoman`, and `python -m dragoman` where the script is not on the path."""

import signal
import sys


def run() -> int:
    """Run the command; until it is loaded, Ctrl-C ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        from dragoman.cli import main  # noqa: PLC0415  nohup and shell scripts may ignore the signal: let them

        return main()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman.cli import main  # noqa: PLC0415  after the line above

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())
