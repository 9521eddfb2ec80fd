import json

import pytest

from dragoman.dialects.gemini.decoder_state import Assembler
from dragoman.wire.json import Malformed


def assemble(*pieces):
    assembler = Assembler()
    for piece in pieces:
        assembler.feed(json.dumps([piece]).encode())
    return assembler.render()


def at(path, **value):
    return {"jsonPath": path, **value}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([], "{}"),
        ([at("$.a", stringValue="x", willContinue=True), at("$.a", stringValue="y")], '{"a":"xy"}'),
        ([at("$.a", stringValue="")], '{"a":""}'),
        (
            [at("$.a", numberValue=1.5), at("$.b", boolValue=False), at("$.c", nullValue="NULL_VALUE")],
            '{"a":1.5,"b":false,"c":null}',
        ),
        ([at("$.a.b.c", numberValue=1), at("$.a.d", numberValue=2)], '{"a":{"b":{"c":1},"d":2}}'),
        (
            [at("$.a[0].b", stringValue="x"), at("$.a[1].b", stringValue="y"), at("$.a[1].c", boolValue=True)],
            '{"a":[{"b":"x"},{"b":"y","c":true}]}',
        ),
        ([at("$.a[0][0]", numberValue=1), at("$.a[0][1]", numberValue=2)], '{"a":[[1,2]]}'),
        ([at("$.tags[]"), at("$.o{}"), at("$.n[0][]")], '{"tags":[],"o":{},"n":[[]]}'),
        (
            [at("$['a b'].c", numberValue=1), at('$["d.e"]', numberValue=2), at(r"$['f\'g']", numberValue=3)],
            '{"a b":{"c":1},"d.e":2,"f\'g":3}',
        ),
        ([at("$.a", stringValue="x", willContinue=True), at("$.a")], '{"a":"x"}'),
    ],
)
def test_pieces_become_json(pieces, text):
    assert assemble(*pieces) == text


def test_number_tokens_are_kept():
    assembler = Assembler()
    assembler.feed(b'[{"jsonPath":"$.n","numberValue":1.0},{"jsonPath":"$.m","numberValue":12345678901234567890}]')
    assert assembler.render() == '{"n":1.0,"m":12345678901234567890}'


@pytest.mark.parametrize(
    "piece",
    [
        at("$.a[999999999]", numberValue=1),
        at("$.a[1]", numberValue=1),
        at("$", numberValue=1),
        at("$[0]", numberValue=1),
        at("a", numberValue=1),
        at("$..a", numberValue=1),
        at("$.a[-1]", numberValue=1),
        at("$" + ".a" * 101, numberValue=1),
        at("$['a", numberValue=1),
        at("", stringValue="x"),
    ],
)
def test_a_place_that_cannot_be_is_malformed(piece):
    with pytest.raises(Malformed):
        assemble(piece)


def test_a_value_below_a_scalar_is_malformed():
    with pytest.raises(Malformed):
        assemble(at("$.a", numberValue=1), at("$.a.b", numberValue=2))


def test_a_string_that_waits_for_its_next_piece_is_not_whole():
    assembler = Assembler()
    assembler.feed(b'[{"jsonPath":"$.a","stringValue":"x","willContinue":true}]')
    assert not assembler.is_whole
    assembler.feed(b'[{"jsonPath":"$.a","stringValue":""}]')
    assert assembler.is_whole
