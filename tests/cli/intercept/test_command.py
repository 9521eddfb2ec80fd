"""A command is run as a shell runs it: its exit code, its signals."""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from dragoman.cli.intercept.command import run_child


@pytest.mark.parametrize("code", [0, 1, 42])
def test_the_exit_code_is_the_commands(code):
    command = [sys.executable, "-c", f"raise SystemExit({code})"]
    assert asyncio.run(run_child(command, os.environ)) == code


def test_a_command_ended_by_a_signal_has_the_exit_code_of_a_shell():
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    assert asyncio.run(run_child(command, os.environ)) == 128 + signal.SIGKILL


def test_a_missing_or_not_executable_command_has_the_exit_code_of_a_shell(tmp_path, capsys):
    (tmp_path / "text").write_text("no program")
    assert asyncio.run(run_child([str(tmp_path / "missing")], os.environ)) == 127
    assert asyncio.run(run_child([str(tmp_path / "text")], os.environ)) == 126
    assert "missing: command not found" in capsys.readouterr().err


def test_the_environment_is_what_is_given():
    command = [sys.executable, "-c", "import os; raise SystemExit(os.environ.get('GIVEN') != '1')"]
    assert asyncio.run(run_child(command, {"GIVEN": "1", "PATH": os.environ["PATH"]})) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_is_forwarded_and_the_command_decides(number, tmp_path):
    """Without a terminal also an interrupt, because no terminal sends it to the command."""
    child = f"import signal; signal.signal({number:d}, lambda *_: exit(7)); print('ready', flush=True); signal.pause()"
    ours = (
        "import asyncio, os, sys; from dragoman.cli.intercept.command import run_child;"
        f"sys.exit(asyncio.run(run_child([sys.executable, '-c', {child!r}], os.environ)))"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", ours], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        alarm = threading.Timer(20, process.kill)
        alarm.start()
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait() == 7
        alarm.cancel()


def test_a_command_that_is_to_outlive_its_terminal_does():
    """`nohup` lets us ignore that the terminal is gone, and so does the command."""
    child = "import signal; raise SystemExit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    ours = (
        "import asyncio, os, signal, sys; from dragoman.cli.intercept.command import run_child;"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        f"sys.exit(asyncio.run(run_child([sys.executable, '-c', {child!r}], os.environ)))"
    )
    assert subprocess.run([sys.executable, "-c", ours], check=False).returncode == 1  # noqa: S603
