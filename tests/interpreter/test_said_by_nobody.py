"""What the caller leaves blank: a request in which nobody speaks, stop sequences that nobody sees."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.request import Sampling
from dragoman.dialects.record import Call
from dragoman.interpreter.knobs import fit_sampling
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import encoded, fitting_for


@pytest.mark.parametrize("target", ["chat", "messages", "gemini"])
def test_the_user_begins_where_nobody_says_anything(target):
    translation = translate_request(Call(encoded({"model": "m", "prompt": {"id": "p"}})), "responses", target)
    assert "(continued)" in json.dumps(json.loads(translation.call.body))
    assert Loss("", "nobody says anything: the user begins, with '(continued)'", "approximated") in translation.losses


def test_a_stop_sequence_of_white_space_is_dropped_where_it_is_refused():
    fitting = fitting_for("messages", "claude-opus-5", document={"stop": ["\n", "END", " "]}, blank_stops=False)
    assert fit_sampling(Sampling(stop=("\n", "END", " ")), fitting, None).stop == ("END",)
    why = "the target refuses a stop sequence of white space"
    assert fitting.ledger.losses() == (Loss("/stop/0", why, "dropped"), Loss("/stop/2", why, "dropped"))
