import json

import httpx2
import pytest

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.gemini import API
from simulator.apis.gemini.asking import (
    ANSWERS,
    build_request,
    client,
    errors,
    occasion,
    require_accepted,
    require_rejected,
)

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def get_error(result):
    answered = client(lambda _: httpx2.Response(result.status, headers=dict(result.headers), content=result.body))
    with pytest.raises(errors.APIError) as caught:
        answered.models.generate_content(model="m", contents="x")
    return caught.value


@pytest.mark.parametrize(("status", "word"), STATUSES.items())
def test_every_status_has_its_name_and_the_sdk_raises_it(status, word):
    error = get_error(API.render_error(ApiRejection(status=status, message="No.")))
    assert (error.code, error.status, error.message) == (status, word, "No.")
    assert isinstance(error, errors.ClientError if status < 500 else errors.ServerError)


def test_a_refusal_names_the_rule():
    rendered = API.render_error(ApiRejection(status=400, message="No.", rule="gemini.role"))
    assert rendered.headers["x-dragoman-rule"] == "gemini.role"
    assert json.loads(rendered.body)["error"]["message"] == "No. [rule: gemini.role]"


def test_the_retry_delay_is_in_header_and_details():
    rendered = API.render_error(ApiRejection(status=429, message="Too much.", retry_after=1.5))
    details = json.loads(rendered.body)["error"]["details"]
    assert rendered.headers["retry-after"] == "2"
    assert details[-1] == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
    assert details[0]["@type"] == "type.googleapis.com/google.rpc.QuotaFailure"


def test_a_bad_key_is_a_bad_argument_with_a_reason():
    error = json.loads(API.render_error(API.bad_key).body)["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["details"][0]["reason"] == "API_KEY_INVALID"


def test_another_status_name_may_be_given():
    rendered = API.render_error(ApiRejection(status=400, message="Not here.", kind="FAILED_PRECONDITION"))
    assert json.loads(rendered.body)["error"]["status"] == "FAILED_PRECONDITION"


def test_an_invalid_field_is_in_the_details():
    found = require_rejected({"contents": [{"parts": [{"type": "text"}]}]})
    rendered = API.render_error(ApiRejection(status=400, message=found.message, rule=found.rule))
    [details] = json.loads(rendered.body)["error"]["details"]
    assert details["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert details["fieldViolations"] == [{"field": "contents[0].parts[0]", "description": found.message}]


def test_a_stream_breaks_off_with_an_error_the_sdk_raises():
    frames = [*API.render_stream(ANSWERS["text"], require_accepted(build_request()), occasion())][:1]
    broken = b"".join([*frames, API.render_stream_error(ApiRejection(status=503, message="The model is overloaded."))])
    answered = client(lambda _: httpx2.Response(200, content=broken))
    seen = []
    with pytest.raises(errors.ServerError) as caught:
        seen.extend(answered.models.generate_content_stream(model="m", contents="x"))
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
