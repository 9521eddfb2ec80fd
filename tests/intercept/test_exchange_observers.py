"""Observers see every exchange whole; without observers nothing is stored."""

import os
import subprocess
import sys
import urllib.request

import pytest

from dragoman.intercept.exchange import (
    InterceptedExchange,
    ObserverFolders,
    SavedExchangeError,
    decode_body,
    decode_exchange,
    encode_exchange,
    observe_exchanges,
    to_saved,
)
from dragoman.intercept.plan import CapturedToolCall
from intercept.surroundings import between, upstream
from server.processes import until


def build_exchange(**more: object) -> InterceptedExchange:
    return InterceptedExchange(name="client", method="POST", target="/v1/models/m:generateContent", **more)


def test_an_exchange_is_read_from_its_file_as_it_was_written():
    result = build_exchange(came=b'{"a": "\xc3\xbc"}', left=b"\xff\x00", status=200, rules=("inject",))
    result.captured = (CapturedToolCall(id="c1", name="weather", part=b'{"functionCall":{}}'),)
    again = decode_exchange(encode_exchange(result))
    assert again == to_saved(result)
    assert (decode_body(again.came), decode_body(again.left)) == (result.came, result.left)
    assert decode_body(again.captured[0].part) == b'{"functionCall":{}}'


@pytest.mark.parametrize("file", [b"", b"{}", b"[1]", b"\xff", b'{"version": 2}'])
def test_a_foreign_file_is_reported(file):
    with pytest.raises(SavedExchangeError):
        decode_exchange(file)


def test_each_observer_gets_every_exchange_in_order(tmp_path):
    observer = ObserverFolders(tmp_path / "at")
    with observe_exchanges(tmp_path / "at") as one, observe_exchanges(tmp_path / "at") as other:
        result = [build_exchange(id=f"in_{number}", began=float(number)) for number in (9, 10, 11)]
        for each in result:
            observer(each)
        assert [decode_exchange(file).id for file in one.take()] == ["in_9", "in_10", "in_11"]
        assert len(other.take()) == 3
        assert one.take() == []


def test_there_is_no_observer_before_and_after(tmp_path):
    observer = ObserverFolders(tmp_path / "at")
    assert not observer.has_observers
    with observe_exchanges(tmp_path / "at"):
        assert observer.has_observers
    assert not observer.has_observers
    assert [*(tmp_path / "at").iterdir()] == []


def test_an_observer_whose_process_is_gone_is_taken_away(tmp_path):
    code = (
        "import os, pathlib, sys; from dragoman.intercept.exchange import observe_exchanges;"
        "held = observe_exchanges(pathlib.Path(sys.argv[1])); held.__enter__(); os._exit(0)"
    )
    tmp_path.chmod(0o700)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)  # noqa: S603
    assert len([*tmp_path.iterdir()]) == 1
    assert not ObserverFolders(tmp_path).has_observers
    assert [*tmp_path.iterdir()] == []


def test_one_that_takes_nothing_gets_no_more_than_it_can_hold(tmp_path):
    observer = ObserverFolders(tmp_path / "at")
    with observe_exchanges(tmp_path / "at") as second_observer:
        for number in range(70):
            observer(build_exchange(began=float(number)))
        assert len(second_observer.take()) == 64
        observer(build_exchange())
        assert len(second_observer.take()) == 1


def test_too_many_bytes_are_not_kept_for_one_that_takes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.intercept.exchange._MAX_BYTES", 3 << 20)
    observer = ObserverFolders(tmp_path / "at")
    with observe_exchanges(tmp_path / "at") as second_observer:
        large = build_exchange(came=b"x" * (2 << 20), left=b"x")
        observer(large)
        until(lambda: [*second_observer._folder.glob("*.json")])
        for number in range(4):
            observer(build_exchange(began=float(number), came=b"y" * 900_000, left=b""))
        assert [len(file) > 2 << 20 for file in sorted(second_observer.take(), key=len)] == [False, False, True]


def test_a_folder_that_others_could_have_made_is_passed_by(tmp_path):
    observer = ObserverFolders(tmp_path / "at")
    with observe_exchanges(tmp_path / "at"):
        (tmp_path / "at").chmod(0o777)
        assert not observer.has_observers
        (tmp_path / "at").chmod(0o700)
        assert observer.has_observers


def test_files_are_their_owners_alone(tmp_path):
    with observe_exchanges(tmp_path / "at") as observer:
        ObserverFolders(tmp_path / "at")(build_exchange())
        (file,) = observer._folder.iterdir()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_gateway_shows_what_passes_without_the_clients_credentials(tmp_path):
    with upstream() as server, between(server.base_url, tmp_path) as gateway, observe_exchanges() as observer:
        request = urllib.request.Request(  # noqa: S310
            f"{gateway.base_url}/intercept/google/v1beta/models/m:generateContent?alt=json&key=the-key",
            b'{"contents":[]}',
            {"x-goog-api-key": "the-key", "authorization": "Bearer the-key", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:  # noqa: S310
            assert reply.read() == b"{}"
        (file,) = until(observer.take)
    result = decode_exchange(file)
    assert (result.came, result.left, result.reply_came, result.status) == ('{"contents":[]}', None, "{}", 200)
    assert result.target == "/v1beta/models/m:generateContent?alt=json"
    assert b"the-key" not in file
    assert os.fspath(tmp_path) not in file.decode()
