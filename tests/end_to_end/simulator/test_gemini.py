"""google-genai over loopback: the flows its users run."""

import json

import httpx2
import pytest
from google.oauth2.credentials import Credentials

from simulator.apis.gemini.asking import NEW, OLD, WEATHER, errors, genai, types

QUESTION = 'What is the weather in "Paris"?'


def get_weather(city: str) -> str:
    """Tell the current weather in a city.

    Args:
        city: The name of the city.
    """
    return f"18 degrees and cloudy in {city}"


@pytest.fixture
def studio(simulator):
    with genai.Client(api_key="key", http_options=types.HttpOptions(base_url=simulator.base_url)) as made:
        yield made


@pytest.fixture
def vertex(simulator):
    options = types.HttpOptions(base_url=simulator.base_url)
    given = {"project": "p", "location": "us-central1", "credentials": Credentials("t")}
    with genai.Client(vertexai=True, http_options=options, **given) as made:
        yield made


@pytest.fixture
def express(simulator):
    with genai.Client(
        vertexai=True, api_key="key", http_options=types.HttpOptions(base_url=simulator.base_url)
    ) as made:
        yield made


@pytest.fixture(params=["studio", "vertex", "express"])
def client(request):
    return request.getfixturevalue(request.param)


def declare(**members):
    return types.GenerateContentConfig(tools=[types.Tool(function_declarations=[WEATHER])], **members)


def result_of(call):
    response = {"output": get_weather(**call.args)}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))


@pytest.mark.parametrize("name", [NEW, OLD])
def test_automatic_function_calling_comes_to_an_answer(client, name):
    config = types.GenerateContentConfig(tools=[get_weather])
    reply = client.models.generate_content(model=name, contents=QUESTION, config=config)
    assert "18 degrees" in reply.text
    history = reply.automatic_function_calling_history
    assert [part.function_call.args for part in history[1].parts if part.function_call] == [{"city": "Paris"}]


def test_a_call_and_its_result_go_through_a_chat(client):
    chat = client.chats.create(model=NEW, config=declare())
    [call] = chat.send_message(QUESTION).function_calls
    assert (call.name, call.args) == ("get_weather", {"city": "Paris"})
    assert "18 degrees" in chat.send_message([result_of(call)]).text
    assert chat.send_message("Thank you.").text


def test_a_call_and_its_result_go_through_a_streamed_chat(client):
    chat = client.chats.create(model=NEW, config=declare(thinking_config=types.ThinkingConfig(include_thoughts=True)))
    chunks = list(chat.send_message_stream(QUESTION))
    [call] = [call for chunk in chunks for call in chunk.function_calls or []]
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    texts = [chunk.text or "" for chunk in chat.send_message_stream([result_of(call)])]
    assert "18 degrees" in "".join(texts)
    assert list(chat.send_message_stream("Thank you."))


def test_a_call_without_its_signature_is_a_client_error(client):
    history = [
        types.Content(role="user", parts=[types.Part(text=QUESTION)]),
        types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="get_weather", args={}))]),
        types.Content(role="user", parts=[types.Part.from_function_response(name="get_weather", response={"a": 1})]),
    ]
    with pytest.raises(errors.ClientError, match="thought_signature") as caught:
        client.models.generate_content(model=NEW, contents=history, config=declare())
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert "[rule: gemini.signature-missing]" in caught.value.message
    assert client.models.generate_content(model=OLD, contents=history, config=declare()).text


def test_a_refused_stream_is_a_client_error(studio):
    config = types.GenerateContentConfig(temperature=5)
    with pytest.raises(errors.ClientError, match=r"gemini\.ranges"):
        list(studio.models.generate_content_stream(model=NEW, contents="Hi.", config=config))


def test_a_model_that_does_not_exist_is_not_found(client):
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="no-such-model", contents="Hi.")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")


def test_a_schema_is_answered_with_json(client):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=schema)
    reply = client.models.generate_content(model=NEW, contents="Who is it?", config=config)
    assert isinstance(json.loads(reply.text)["name"], str)


def test_a_search_comes_with_its_sources(client):
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    reply = client.models.generate_content(model=NEW, contents="Search the web for the Eiffel Tower.", config=config)
    metadata = reply.candidates[0].grounding_metadata
    assert metadata.web_search_queries
    text = reply.text.encode()
    for support in metadata.grounding_supports or []:
        segment = support.segment
        assert text[segment.start_index or 0 : segment.end_index].decode() == segment.text


def test_vertex_streams_arguments_in_pieces(vertex):
    calling = types.FunctionCallingConfig(mode="ANY", stream_function_call_arguments=True)
    config = declare(tool_config=types.ToolConfig(function_calling_config=calling))
    chunks = list(vertex.models.generate_content_stream(model=NEW, contents=QUESTION, config=config))
    calls = [call for chunk in chunks for call in chunk.function_calls or []]
    assert calls[0].name == "get_weather"
    assert calls[0].will_continue
    pieces = [piece for call in calls for piece in call.partial_args or []]
    assert "".join(piece.string_value or "" for piece in pieces if piece.json_path == "$.city") == "Paris"


def test_tokens_are_counted(client):
    assert client.models.count_tokens(model=NEW, contents=QUESTION).total_tokens > 3


@pytest.mark.parametrize(("surface", "place"), [("studio", ""), ("vertex", "publishers/google/")])
def test_models_are_listed_and_shown(request, surface, place):
    models = request.getfixturevalue(surface).models
    assert f"{place}models/{NEW}" in [model.name for model in models.list()]
    assert models.get(model=NEW).name == f"{place}models/{NEW}"


def test_a_search_is_streamed_with_its_sources_at_the_end(client):
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    asked = {"model": NEW, "contents": "Search the web for the Eiffel Tower.", "config": config}
    *before, last = client.models.generate_content_stream(**asked)
    assert [chunk for chunk in before if chunk.candidates[0].grounding_metadata] == []
    found = last.candidates[0].grounding_metadata
    assert found == client.models.generate_content(**asked).candidates[0].grounding_metadata
    assert found.grounding_chunks


@pytest.mark.parametrize(
    ("calling", "names"),
    [
        ({"mode": "NONE"}, []),
        ({"mode": "AUTO"}, ["get_weather"]),
        ({"mode": "ANY", "allowed_function_names": ["get_time"]}, ["get_time"]),
        ({"mode": "VALIDATED", "allowed_function_names": ["get_weather"]}, ["get_weather"]),
    ],
)
def test_the_function_calling_mode_is_followed_whole_and_streamed(client, calling, names):
    tool = types.Tool(function_declarations=[WEATHER, {**WEATHER, "name": "get_time", "description": "Time"}])
    choice = types.ToolConfig(function_calling_config=calling)
    asked = {
        "model": NEW,
        "contents": QUESTION,
        "config": types.GenerateContentConfig(tools=[tool], tool_config=choice),
    }
    assert [call.name for call in client.models.generate_content(**asked).function_calls or []] == names
    streamed = client.models.generate_content_stream(**asked)
    assert [call.name for chunk in streamed for call in chunk.function_calls or []] == names


def test_vertex_v1_has_no_ids_of_calls(simulator):
    options = types.HttpOptions(base_url=simulator.base_url, api_version="v1")
    given = {"project": "p", "location": "us-central1", "credentials": Credentials("t")}
    with genai.Client(vertexai=True, http_options=options, **given) as client:
        chat = client.chats.create(model=NEW, config=declare())
        [call] = chat.send_message(QUESTION).function_calls
        assert call.id is None
        assert "18 degrees" in chat.send_message([result_of(call)]).text
        call.id = "made-up"
        with pytest.raises(errors.ClientError, match='Unknown name "id"'):
            chat.send_message([result_of(call)])


@pytest.mark.parametrize("path", [f"v1beta/models/{NEW}", f"v1beta1/publishers/google/models/{NEW}"])
def test_without_alt_sse_an_error_is_in_an_array(simulator, path):
    url = f"{simulator.base_url}/{path}:streamGenerateContent"
    reply = httpx2.post(url, json={"contents": []}, headers={"x-goog-api-key": "k"})
    [wrong] = reply.json()
    assert (reply.status_code, wrong["error"]["status"]) == (400, "INVALID_ARGUMENT")
    plain = httpx2.post(f"{url}?alt=sse", json={"contents": []}, headers={"x-goog-api-key": "k"})
    assert plain.json() == wrong
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    for after in (0, 1):
        fault = {"x-goog-api-key": "k", "x-dragoman-fault": f"stream-error,after={after}"}
        chunks = httpx2.post(url, json=body, headers=fault).json()
        assert [next(iter(chunk)) for chunk in chunks] == [*["candidates"] * after, "error"]


def test_a_bad_key_is_a_bad_argument(simulator):
    options = types.HttpOptions(base_url=simulator.base_url)
    with (
        genai.Client(api_key="invalid", http_options=options) as client,
        pytest.raises(errors.ClientError, match="API key not valid") as caught,
    ):
        client.models.generate_content(model=NEW, contents="Hi.")
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("path", "key", "code", "status"),
    [
        ("/v1beta/models/g:generateContent", "", 403, "PERMISSION_DENIED"),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent", "", 401, "UNAUTHENTICATED"),
        (
            "/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "invalid",
            401,
            "UNAUTHENTICATED",
        ),
        ("/v1internal:generateContent", "invalid", 401, "UNAUTHENTICATED"),
    ],
)
def test_an_unauthenticated_client_gets_the_error_of_its_api(simulator, path, key, code, status):
    headers = {"authorization": f"Bearer {key}"} if key else {}
    reply = httpx2.post(simulator.base_url + path, json={}, headers=headers)
    assert (reply.status_code, reply.json()["error"]["status"]) == (code, status)
