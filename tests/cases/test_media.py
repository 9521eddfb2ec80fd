"""Pictures in tool results stay with their result, or right behind all of them."""

import json

import pytest

from cases.documents import (
    HELLO,
    chat_call,
    chat_calls,
    chat_request,
    chat_result,
    function_call,
    function_output,
    messages_request,
    responses_request,
    tool_result,
    tool_use,
)
from cases.through import loss_pointers, translate_to

DATA = "iVBORw0KGgo="
URL = f"data:image/png;base64,{DATA}"
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}
BLOB = {"inlineData": {"mimeType": "image/png", "data": DATA}}
SHOT = [{"type": "text", "text": "shot"}, {"type": "image", "source": SOURCE}]


def _screenshots(*contents):
    names = "abcdef"[: len(contents)]
    return messages_request(
        HELLO,
        {"role": "assistant", "content": [tool_use(name, "look") for name in names]},
        {
            "role": "user",
            "content": [tool_result(name, content) for name, content in zip(names, contents, strict=True)],
        },
    )


def test_t132_a_picture_in_a_result_is_nested_in_it_for_gemini_3():
    asked = translate_to("messages", "gemini", _screenshots(SHOT), model="gemini-3-flash")
    (part,) = asked.body["contents"][2]["parts"]
    response = part["functionResponse"]
    assert response["response"] == {"output": "shot"}
    assert response["parts"] == [BLOB]
    assert not any(where.startswith("/messages/2") for where in loss_pointers(asked))


def test_t132_an_image_in_a_result_follows_it_in_the_same_turn_for_older_gemini():
    asked = translate_to("messages", "gemini", _screenshots(SHOT), model="gemini-2.5-flash")
    turn = asked.body["contents"][2]
    assert turn["role"] == "user"
    response, picture = turn["parts"]
    assert response["functionResponse"]["response"]["output"].startswith("shot")
    assert "parts" not in response["functionResponse"]
    assert picture == BLOB
    assert any(where.startswith("/messages/2/content/0/content/1") for where in loss_pointers(asked, "approximated"))


@pytest.mark.parametrize("form", ["", "code_assist"])
def test_t133_a_picture_stays_with_its_own_result_among_parallel_ones(form):
    picture = [{"type": "input_text", "text": "Read image"}, {"type": "input_image", "image_url": URL}]
    history = responses_request(
        HELLO,
        function_call("a", "read"),
        function_call("b", "read"),
        function_call("c", "read"),
        function_output("c", "plain c"),
        function_output("b", picture),
        function_output("a", "plain a"),
    )
    asked = translate_to("responses", "gemini", history, model="gemini-3-flash", form=form)
    body = asked.body["request"] if form else asked.body
    results = [part["functionResponse"] for part in body["contents"][2]["parts"]]
    assert [result["id"] for result in results] == ["a", "b", "c"]
    assert [result.get("parts", []) for result in results] == [[], [BLOB], []]
    assert [result["response"]["output"] for result in results] == ["plain a", "Read image", "plain c"]


def test_t135_an_image_in_a_chat_tool_message_is_not_rendered_as_json():
    content = [{"type": "image_url", "image_url": {"url": URL}}]
    history = chat_request(HELLO, chat_calls(chat_call("c", "look")), chat_result("c", content))
    (part,) = translate_to("chat", "gemini", history, model="gemini-3-flash").body["contents"][2]["parts"]
    assert part["functionResponse"]["parts"] == [BLOB]
    assert DATA not in json.dumps(part["functionResponse"]["response"])

    older = translate_to("chat", "gemini", history, model="gemini-2.5-flash").body["contents"][2]["parts"]
    assert [part for part in older if "inlineData" in part] == [BLOB]
    assert DATA not in json.dumps(older[0])


def test_t136_pictures_follow_all_tool_messages_of_the_turn_in_chat():
    asked = translate_to(
        "messages", "chat", _screenshots([{"type": "image", "source": SOURCE}], "plain"), model="local-model"
    )
    *_, first, second, user = asked.body["messages"]
    assert (first["role"], first["tool_call_id"], first["content"]) == ("tool", "a", "[image follows]")
    assert (second["role"], second["tool_call_id"], second["content"]) == ("tool", "b", "plain")
    assert user == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}
    assert any(where.startswith("/messages/2/content/0/content/0") for where in loss_pointers(asked, "approximated"))
