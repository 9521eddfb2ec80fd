"""Model lists as the official SDKs parse them, from the configuration and from the upstreams' lists."""

import anthropic
import httpx2
import openai
import pytest

from dragoman.config import Config, KeyTable, UpstreamTable, load
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.server.runner import running
from oracles.clients import genai

ALIASES = {"gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist"}


def openai_client(gateway):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))


def anthropic_client(gateway):
    return gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))


def genai_client(gateway, **options):
    return gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url, **options}))


def test_the_openai_sdk_lists_and_shows_models(gateway):
    client = openai_client(gateway)
    listed = {model.id: model for model in client.models.list()}
    assert listed.keys() >= {*ALIASES, "gemini-3.8-flash", "claude-opus-4-8", "gpt-5.2", "openai/gpt-5.2"}
    assert all(model.object == "model" and model.created > 0 and model.owned_by for model in listed.values())
    assert listed["gem"].context_length == 1_048_576
    shown = client.models.retrieve("gemini-3.8-flash")
    assert (shown.id, shown.context_length, shown.max_output_tokens) == ("gemini-3.8-flash", 1_048_576, 65_536)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


def test_the_anthropic_sdk_lists_models_page_by_page(gateway):
    client = anthropic_client(gateway)
    listed = {model.id: model for model in client.models.list(limit=3)}
    assert listed.keys() >= {*ALIASES, "gemini-3.8-flash", "claude-opus-4-8", "gpt-5.2"}
    assert listed["gem"].display_name == "Gemini 3.8 Flash"
    assert listed["gem"].max_input_tokens == 1_048_576
    assert listed["claude"].capabilities.thinking.supported
    page = client.models.list(limit=3)
    following = client.models.list(limit=3, after_id=page.last_id)
    before = client.models.list(limit=3, before_id=following.first_id)
    assert [model.id for model in before.data] == [model.id for model in page.data]
    assert (page.has_more, before.has_more) == (True, False)
    assert client.models.retrieve("claude").max_tokens == listed["claude"].max_tokens
    with pytest.raises(anthropic.BadRequestError):
        client.models.list(after_id="nobody")


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_the_genai_sdk_lists_models_page_by_page(gateway, version):
    client = genai_client(gateway, api_version=version)
    listed = {model.name: model for model in client.models.list(config={"page_size": 4})}
    assert listed.keys() >= {f"models/{name}" for name in (*ALIASES, "gemini-3.8-flash", "claude-opus-4-8")}
    assert listed["models/gem"].input_token_limit == 1_048_576
    assert "generateContent" in listed["models/claude"].supported_actions
    assert listed["models/claude"].input_token_limit == 1_000_000
    shown = client.models.get(model="gem")
    assert (shown.name, shown.display_name) == ("models/gem", "Gemini 3.8 Flash")


def test_every_name_that_is_listed_is_answered(gateway):
    client = openai_client(gateway)
    for model in list(client.models.list()):
        reply = client.chat.completions.create(model=model.id, messages=[{"role": "user", "content": "hello"}])
        assert reply.choices[0].message.content


def test_a_key_sees_only_the_models_it_may_use(serve):
    keys = (KeyTable(key="secret", name="one", models=("gem", "openai/*")),)
    gateway = serve(keys=keys)
    key = {"authorization": "Bearer secret"}
    names = {row["id"] for row in httpx2.get(f"{gateway.base_url}/v1/models", headers=key).json()["data"]}
    assert "gem" in names
    assert "openai/gpt-5.2" in names
    assert names - {"gem"} == {name for name in names if name.startswith("openai/")}
    assert httpx2.get(f"{gateway.base_url}/v1/models/gemini-3.8-flash", headers=key).status_code == 404


def test_a_newcomer_without_a_key_sees_the_simulators_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config: Config = load(environment={})
    with run_in_thread(lambda: running(config, port=0, grace=0.2), "gateway") as gateway:
        rows = httpx2.get(f"{gateway.base_url}/v1/models").json()["data"]
        assert {row["id"] for row in rows} >= {"gemini-3-flash", "claude-opus-4-8", "gpt-5.2"}
        assert len({row["id"] for row in rows}) == len(rows)


@pytest.fixture
def odd(serve):
    """A gateway before a server that lists models in its own way, one that fails and one that is not there."""
    asked: list[str] = []

    async def handler(exchange: Exchange) -> None:
        asked.append(exchange.request.target)
        if exchange.request.path.startswith("/bad"):
            await exchange.send(500, {}, b"<html>")
        else:
            rows = b'{"data":[{"id":"llama","max_model_len":8192},{"id":"qwen","meta":{"n_ctx_train":4096}},{"no":1}]}'
            await exchange.send(200, {}, rows)

    with run_in_thread(lambda: listen(handler, grace=0.1), "models") as server:
        gateway = serve(
            upstreams={
                "local": UpstreamTable(kind="openai", base_url=f"{server.base_url}/good"),
                "bad": UpstreamTable(kind="openai", base_url=f"{server.base_url}/bad"),
                "away": UpstreamTable(kind="anthropic", base_url="http://127.0.0.1:9"),
            }
        )
        yield gateway, asked


def test_a_failing_upstream_does_not_break_the_list_and_no_upstream_is_queried_twice(odd):
    gateway, asked = odd
    rows = {row["id"]: row for row in httpx2.get(f"{gateway.base_url}/v1/models").json()["data"]}
    assert rows["local/llama"]["context_length"] == 8192
    assert rows["local/qwen"]["context_length"] == 4096
    assert not [name for name in rows if name.startswith(("bad/", "away/"))]
    again = httpx2.get(f"{gateway.base_url}/v1beta/models?pageSize=1000").json()["models"]
    found = [row for row in again if row["name"] == "models/local/llama"]
    assert found[0]["inputTokenLimit"] == 8192
    assert sorted(asked) == ["/bad/models", "/good/models"]


@pytest.mark.parametrize("query", ["/v1beta/models?pageSize=", "/v1/models?limit="])
def test_a_page_of_a_size_with_thousands_of_digits_is_a_bad_request(gateway, query):
    reply = httpx2.get(gateway.base_url + query + "9" * 5000, headers={"anthropic-version": "2023-06-01"})
    assert reply.status_code == 400
    assert "must be a number" in reply.text
