"""Real processes that are killed, share a database, or lose it: no turn that a client received is lost or incomplete."""

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import openai
import pytest

from databases import postgres
from dragoman.simulator.runner import in_thread
from server.processes import serve


@pytest.fixture(scope="module")
def simulator():
    with in_thread() as running:
        yield running


def configure(simulator, directory, url):
    file = directory / f"dragoman-{time.monotonic_ns()}.toml"
    file.write_text(
        f"""
[server]
listen = "127.0.0.1:0"
log = "off"
[upstreams.gemini]
kind = "gemini"
base_url = "{simulator.base_url}"
api_key = "k"
[sessions]
url = "{url}"
"""
    )
    return file


class Process:
    """A gateway in a process of its own that can be killed at any time."""

    def __init__(self, config):
        self._stack = ExitStack()
        directory = config.parent / f"run-{time.monotonic_ns()}"
        directory.mkdir()
        self._command = self._stack.enter_context(serve(directory, "--config", str(config)))
        self.base_url = self._command.base_url

    @property
    def is_running(self):
        return self._command.process.poll() is None

    def kill(self):
        """End it at once, as the system does that has no memory left."""
        self._command.process.kill()

    def close(self):
        self._stack.close()


def client_of(process):
    return openai.OpenAI(base_url=f"{process.base_url}/v1", api_key="k", max_retries=0, timeout=20)


def message_texts(client, conversation):
    """Texts of a conversation, one for each item, thoughts left out."""
    items = client.conversations.items.list(conversation, order="asc", limit=100)
    return [(item.role, item.content[0].text) for item in items if item.type == "message"]


def turn(client, conversation, words, *, stream):
    body = {"model": "gemini-3.8-flash", "conversation": conversation, "input": words}
    if not stream:
        return client.responses.create(**body).output_text
    with client.responses.stream(**body) as events:
        return events.get_final_response().output_text


def kill_and_drive(config, turns, kills):
    """Run turns through a process that is killed repeatedly; return the received and the stored turns."""
    rng = random.Random(7)  # noqa: S311  the same kills every time
    doomed = set(rng.sample(range(turns), kills))
    collected = []
    process = Process(config)
    try:
        for number in range(turns):
            words = f"This is turn {number}."
            if number in doomed:
                threading.Timer(rng.uniform(0, 0.02), process.kill).start()
            while True:
                try:
                    with client_of(process) as client:
                        collected.append((words, turn(client, "long", words, stream=number % 2 == 0)))
                except openai.APIError:
                    process.close()
                    process = Process(config)
                else:
                    break
        if not process.is_running:
            process.close()
            process = Process(config)
        with client_of(process) as client:
            return collected, message_texts(client, "long")
    finally:
        process.close()


@pytest.mark.parametrize(
    ("turns", "kills"), [(25, 4), pytest.param(1000, 60, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_turn_is_lost_half_or_twice_when_the_gateway_is_killed(simulator, tmp_path, turns, kills):
    config = configure(simulator, tmp_path, f"sqlite:///{tmp_path}/sessions.db")
    received, kept = kill_and_drive(config, turns, kills)
    assert kept == [one for words, answer in received for one in (("user", words), ("assistant", answer))]


@pytest.fixture(scope="module")
def database():
    with postgres() as server:
        yield server


def test_two_gateways_on_one_database_share_one_conversation(simulator, database, tmp_path):
    config = configure(simulator, tmp_path, database.url)
    processes = [Process(config), Process(config)]
    try:
        with client_of(processes[0]) as one, client_of(processes[1]) as other:
            clients = (one, other)
            for number in range(6):
                turn(clients[number % 2], "shared", f"Word {number}", stream=False)
            assert [text for role, text in message_texts(other, "shared") if role == "user"] == [
                f"Word {number}" for number in range(6)
            ]

            def insist(number):
                while True:
                    try:
                        return turn(clients[number % 2], "contested", f"Word {number}", stream=number % 3 == 0)
                    except openai.APIError as error:
                        # A stream that has begun can tell of the conflict only in itself.
                        if not isinstance(error, openai.ConflictError) and "was changed by another request" not in str(
                            error
                        ):
                            raise
                        time.sleep(0.01)

            with ThreadPoolExecutor(8) as pool:
                list(pool.map(insist, range(24)))
            words = [text for role, text in message_texts(one, "contested") if role == "user"]
            assert sorted(words) == sorted(f"Word {number}" for number in range(24))
            processes[0].kill()
            turn(other, "shared", "One is gone.", stream=False)
            assert message_texts(other, "shared")[-2] == ("user", "One is gone.")
    finally:
        for process in processes:
            process.close()


@pytest.mark.slow
def test_an_unavailable_database_is_reported_and_used_again_when_it_is_back(simulator, tmp_path):
    with postgres() as server:
        process = Process(configure(simulator, tmp_path, server.url))
        try:
            with client_of(process) as client:
                turn(client, "c", "Before", stream=False)
                server.stop()
                with pytest.raises(openai.InternalServerError) as caught:
                    turn(client, "c", "Meanwhile", stream=False)
                assert caught.value.status_code == 503
                assert json.loads(caught.value.response.read())["error"]["message"]
                answer = client.chat.completions.create(
                    model="gemini-3.8-flash", messages=[{"role": "user", "content": "Hello"}]
                )
                assert answer.choices[0].message.content
                server.start()
                deadline = time.monotonic() + 10
                while True:
                    try:
                        turn(client, "c", "After", stream=False)
                    except openai.InternalServerError:
                        assert time.monotonic() < deadline
                    else:
                        break
                assert [text for role, text in message_texts(client, "c") if role == "user"] == ["Before", "After"]
        finally:
            process.close()
