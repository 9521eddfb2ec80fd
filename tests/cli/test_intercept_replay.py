"""A saved exchange is sent again: what had left as it left, or what came through the rules; with credentials from outside."""

import json

import pytest

from dragoman.cli import main
from dragoman.intercept.exchange import InterceptedExchange, encode_exchange
from dragoman.simulator.runner import in_thread

PATH = "/v1beta/models/gemini-3-flash:generateContent"
CAME = b'{"contents":[{"role":"user","parts":[{"text":"came"}]}]}'
LEFT = b'{ "contents": [{"role":"user","parts":[{"text":"left"}]}] }'


@pytest.fixture(scope="module")
def simulator():
    with in_thread() as one:
        yield one


@pytest.fixture
def replay(tmp_path, monkeypatch, capsysbinary, simulator):
    """Save an exchange and replay it; return the exit code, the output, the errors and the upstream's requests."""
    (tmp_path / "dragoman.toml").write_text(
        f'[upstreams.google]\nkind = "simulator"\nbase_url = "{simulator.base_url}"\n'
        '[intercept.client]\nupstream = "google"\nsystem = "Be brief."\n[tools.broken]\ncommand = "/no/such/server"\n'
    )
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_ACCESS_TOKEN", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*options, **more):
        given = {"name": "client", "upstream": "google", "method": "POST", "target": PATH, "target_left": PATH}
        passing = InterceptedExchange(
            **{**given, "came": CAME, "left": LEFT, "headers": (("content-type", "application/json"),), **more}
        )
        (tmp_path / "saved.json").write_bytes(encode_exchange(passing))
        before = len(simulator.requests)
        code = main(["intercept", "replay", "saved.json", *options])
        out, err = capsysbinary.readouterr()
        return code, out, err.decode(), list(simulator.requests)[before:]

    return run


def headers_of(request) -> dict[str, str]:
    return {name.lower(): value for name, value in dict(request.headers).items()}


def test_what_had_left_is_sent_again_byte_for_byte_past_all_rules(replay, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "mine")
    code, out, result, (received,) = replay()
    assert (code, received.body, received.target) == (0, LEFT, PATH)
    assert json.loads(out)["candidates"]
    assert result == f"dragoman: POST {PATH}: 200\n"
    assert headers_of(received)["x-goog-api-key"] == "mine"


def test_the_original_request_gets_the_current_rules(replay):
    code, _, _, (received,) = replay("--came", "--header", "x-goog-api-key: mine")
    sent = json.loads(received.body)
    assert code == 0
    assert sent["contents"] == json.loads(CAME)["contents"]
    assert sent["systemInstruction"]["parts"][0]["text"] == "Be brief."


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (PATH, ("x-goog-api-key", "key")),
        ("/v1internal:generateContent", ("authorization", "Bearer token")),
        (
            "/v1/projects/p/locations/global/publishers/google/models/m:generateContent",
            ("authorization", "Bearer token"),
        ),
    ],
)
def test_credentials_are_found_as_googles_clients_find_them(replay, monkeypatch, target, shown):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("GOOGLE_CLOUD_ACCESS_TOKEN", "token")
    _, _, _, (received,) = replay(target=target, target_left=target)
    name, value = shown
    assert headers_of(received)[name] == value
    assert ({"authorization", "x-goog-api-key"} - {name}).isdisjoint(headers_of(received))


def test_a_header_of_the_user_has_precedence_and_may_come_from_the_environment(replay, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("MY_TOKEN", "Bearer mine")
    _, _, _, (received,) = replay("--header", "Authorization: env:MY_TOKEN", "--header", "user-agent: me")
    assert headers_of(received)["authorization"] == "Bearer mine"
    assert headers_of(received)["user-agent"] == "me"
    assert "x-goog-api-key" not in headers_of(received)


def test_an_error_reply_is_printed_and_sets_the_exit_code(replay):
    code, out, result, _ = replay()
    assert code == 1
    assert json.loads(out)["error"]
    assert ": 40" in result


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        (["--header", "nothing"], {}, "'nothing' has no value: write NAME:VALUE"),
        (["--header", "a: env:NO_SUCH_VARIABLE"], {}, "the environment variable NO_SUCH_VARIABLE is not set"),
        ([], {"name": "gone", "upstream": "gone"}, "no entry or Gemini upstream 'gone'"),
    ],
)
def test_a_request_that_cannot_be_sent_gets_a_readable_error(replay, options, more, words):
    code, _, result, received = replay(*options, **more)
    assert (code, received) == (2, [])
    assert words in result


def test_it_can_be_shown_without_being_sent(replay):
    code, out, _, received = replay("--show", rules=("tools put in",))
    assert (code, received) == (0, [])
    assert b"rules: tools put in" in out
    assert b'-           "text": "came"' in out
