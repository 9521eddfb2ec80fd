"""Type checkers infer the output of an agent and the types of its tools."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman.library
from architecture.tree import ROOT

SAMPLE = Path(__file__).with_name("typing_sample.py")


def check(*command):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert Path(dragoman.library.__file__).parent.with_name("py.typed").is_file()


def test_pyright_infers_the_types(tmp_path):
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(
        json.dumps(
            {
                "include": [str(SAMPLE)],
                "typeCheckingMode": "strict",
                "venvPath": str(ROOT),
                "venv": ".venv",
                "extraPaths": [str(ROOT / "src")],
            }
        )
    )
    code, output = check("pyright", "--project", str(settings))
    assert code == 0, output


@pytest.mark.slow
def test_mypy_infers_the_types(tmp_path):
    code, output = check("mypy", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}", str(SAMPLE))
    assert code == 0, output
