"""The sdist and the wheel, as users install them: into an empty environment of every Python on this machine."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import httpx2
import pytest

from dragoman import __version__
from pypi import install

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
QUESTION = {
    "model": "gemini-3-flash",
    "messages": [{"role": "user", "content": "What is the weather in Tokyo?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
}
BASE = {"dragoman", "httptools", "jsonschema_rs", "msgspec", "prometheus_client", "uvloop"}


def attempt(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, **options)  # noqa: S603


def run(*command: str | Path, **options) -> str:
    done = attempt(*command, **options)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def find_python(version: str) -> Path:
    """Return an interpreter of a version: one on the path, or one of pyenv."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin"))
    for python in (folder / f"python{version}" for folder in folders):
        # A Debian without python3-venv and a shim of pyenv without a version of its own are no use.
        if python.is_file() and not attempt(python, "-c", "import venv, ensurepip").returncode:
            return python
    pytest.skip(f"there is no Python {version} on this machine")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, "-t", "sdist", cwd=ROOT)
    source = folder / f"dragoman-{__version__}.tar.gz"
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, "-t", "wheel", cwd=folder / f"dragoman-{__version__}")
    return source, folder / f"dragoman-{__version__}-py3-none-any.whl"


def make_environment(python: Path, folder: Path, *packages: str | Path) -> Path:
    """Install packages into an empty environment and return the folder of its programs."""
    run(python, "-m", "venv", folder)
    done = attempt(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    if done.returncode and re.search("No matching distribution|Could not find a version", done.stderr):
        pytest.skip(f"the package index has no wheel for {python.name}: {done.stderr.splitlines()[-1]}")
    assert not done.returncode, done.stderr
    return folder / "bin"


def list_packages(programs: Path) -> set[str]:
    lines = run(programs / "pip", "list", "--format=freeze", "--disable-pip-version-check").splitlines()
    return {line.partition("==")[0].replace("-", "_") for line in lines} - {"pip", "setuptools"}


@pytest.mark.parametrize("archive", [0, 1], ids=["sdist", "wheel"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_an_installed_archive_answers_a_first_question(built, version, archive, tmp_path):
    programs = make_environment(find_python(version), tmp_path / "venv", built[archive])
    assert list_packages(programs) == BASE
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    options = {"env": environment, "cwd": tmp_path}
    assert run(programs / "python", "-m", "dragoman", "--version", **options) == f"dragoman {__version__}\n"
    run(programs / "python", "-W", "error", "-c", "import dragoman, dragoman.agent", **options)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [programs / "dragoman", "serve", "--listen", address]
    with subprocess.Popen(command, **options) as gateway:  # noqa: S603
        try:
            wait_until_ready(gateway, address)
            reply = httpx2.post(f"http://{address}/v1/chat/completions", json=QUESTION, timeout=60).json()
        finally:
            gateway.terminate()
        assert gateway.wait(60) == 0
    (call,) = reply["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy of what a clone has."""
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]:
        if not name.startswith("tests/"):
            (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    return tmp_path / "checkout"


def test_make_run_installs_little_and_make_sbom_lists_it(checkout, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (tmp_path / "dragoman.toml").write_text(f'[server]\nlisten = "{address}"\n')
    environment = {**os.environ, "DRAGOMAN_CONFIG": str(tmp_path / "dragoman.toml")}
    with subprocess.Popen(["make", "run"], cwd=checkout, env=environment, start_new_session=True) as gateway:  # noqa: S607
        try:
            wait_until_ready(gateway, address)
        finally:
            os.killpg(gateway.pid, signal.SIGTERM)
    installed = list_packages(checkout / ".venv" / "bin")
    assert installed >= BASE
    # The rest is the build backend, which an editable installation needs.
    assert len(installed - BASE) <= 7
    run("make", "sbom", cwd=checkout)
    bill = json.loads((checkout / "dist" / "dragoman.cdx.json").read_text())
    subject = bill["metadata"]["component"]
    assert (bill["bomFormat"], subject["name"], subject["version"]) == ("CycloneDX", "dragoman", __version__)
    assert {component["name"] for component in bill["components"]} == BASE - {"dragoman"}


def test_the_install_lines_of_the_readme_work(built, request, tmp_path):
    """Every line of the section in order, in a folder like a checkout; the gateway only prints its version."""
    section = (ROOT / "README.md").read_text().partition("\n## Install and run\n")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```sh\n(.+?)```", section, re.DOTALL) for line in block.splitlines()]
    assert {line.split()[0] for line in lines} == {"make", "pip", "pipx", "uvx", "dragoman"}
    tools = install(request.config.cache.mkdir("pypi"), "pipx==1.18.4", "uv==0.13.8")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    home = tmp_path / "home"
    path = [tmp_path / "venv" / "bin", tools, Path(sys.executable).parent, os.environ["PATH"]]
    environment = {**os.environ, "HOME": str(home), "PATH": os.pathsep.join(map(str, path))}
    checkout = built[0].parent / f"dragoman-{__version__}"
    for line in lines:
        if not line.startswith("make "):  # a test of its own
            words = line.replace("dragoman serve", "dragoman --version")
            done = attempt("sh", "-ec", words, cwd=checkout, env=environment)
            assert not done.returncode, f"{line}: {done.stderr}"
    version = f"dragoman {__version__}\n"
    assert run(home / ".local" / "bin" / "dragoman", "--version") == version
    assert run(tmp_path / "venv" / "bin" / "dragoman", "--version") == version


def wait_until_ready(gateway: subprocess.Popen, address: str) -> None:
    for _ in range(3000):
        assert gateway.poll() is None
        try:
            httpx2.get(f"http://{address}/ready")
        except httpx2.TransportError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the gateway did not start")


def test_the_wheel_has_only_the_package_and_says_that_it_is_typed(built):
    names = zipfile.ZipFile(built[1]).namelist()
    info = f"dragoman-{__version__}.dist-info/"
    assert {name.split("/")[0] + "/" for name in names} == {"dragoman/", info}
    assert {"dragoman/py.typed", "dragoman/__main__.py", "dragoman/example.toml", f"{info}licenses/LICENSE"} <= {*names}
    assert not [name for name in names if "__pycache__" in name]


def test_the_metadata_is_what_an_index_accepts(built, request):
    programs = install(request.config.cache.mkdir("pypi"), "twine==7.0.0")
    assert "FAILED" not in run(programs / "twine", "check", "--strict", *built)


def test_the_changelog_has_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{__version__}]" in changelog or f"Version {__version__} is not released yet" in changelog


def test_every_extra_installs_what_it_names(built, tmp_path):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    programs = make_environment(Path(sys.executable), tmp_path / "venv", f"{built[1]}[all]")
    wanted = {re.split(r"[\[><=]", name)[0].replace("-", "_") for extra in extras.values() for name in extra}
    assert wanted <= list_packages(programs)
