"""What a tool may return, and what a model is given of it."""

import base64
import dataclasses
import datetime as dt
import enum
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from dragoman.core.parts import Data, Inline, Link, Media, Opaque, Text, ToolResult
from dragoman.tools import tool
from dragoman.tools.results import parse_output
from tools.tool_calls import call, executor, handler, run, text_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def convert_result(value: Any, **settings: Any) -> ToolResult:
    return run(handler(lambda arguments: value), **settings)


@dataclasses.dataclass
class Place:
    name: str
    height: int


class Model:
    """Works like a pydantic model."""

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return {"mode": mode}


class Size(NamedTuple):
    width: int
    height: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, b"null"),
        (True, b"true"),
        (3, b"3"),
        (2**80, b"1208925819614629174706176"),
        ([], b"[]"),
        (["a", "b"], b'["a","b"]'),
        ({"a": [1, None]}, b'{"a":[1,null]}'),
        ((1, 2), b"[1,2]"),
        (Size(1, 2), b"[1,2]"),
        ({1: "x"}, b'{"1":"x"}'),
        (Place("Triglav", 2864), b'{"name":"Triglav","height":2864}'),
        ([Model()], b'[{"mode":"json"}]'),
        (dt.date(2026, 1, 31), b'"2026-01-31"'),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (enum.Enum("Word", {"A": "a"}).A, b'"a"'),  # type: ignore[attr-defined]
        (msgspec.Raw(b'{"a": 1}'), b'{"a": 1}'),
    ],
)
def test_a_value_is_rendered_as_json(value, expected):
    result = convert_result(value)
    assert result.content == (Data(json=expected),)
    assert not result.failed


def test_a_real_pydantic_model_is_rendered_as_json():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Place", name=(str, ...), day=(dt.date, ...))
    assert text_of(convert_result(model(name="x", day=dt.date(2026, 1, 31)))) == '{"name":"x","day":"2026-01-31"}'


def test_text_stays_text():
    assert convert_result("rain").content == (Text(text="rain"),)
    assert convert_result('{"not": "read"}').content == (Text(text='{"not": "read"}'),)


def test_half_a_surrogate_pair_does_not_break_a_result():
    assert text_of(convert_result("a\ud800b")) == "a?b"


@pytest.mark.parametrize(
    ("data", "kind", "media_type"),
    [
        (PNG, "image", "image/png"),
        (b"\xff\xd8\xff\xe0", "image", "image/jpeg"),
        (b"RIFF0000WEBPVP8 \xff", "image", "image/webp"),
        (b"%PDF-1.7 \xff", "document", "application/pdf"),
        (b"RIFF0000WAVEfmt \xff", "audio", "audio/wav"),
        (b"\0\0\0\x18ftypmp42\xff", "video", "video/mp4"),
        (b"GIF89a\xff", "image", "image/gif"),
        (b"ID3\x04\xff", "audio", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio", "audio/mpeg"),
        (b"OggS\xff", "audio", "audio/ogg"),
        (b"fLaC\xff", "audio", "audio/flac"),
        (b"\x1aE\xdf\xa3", "video", "video/webm"),
        (b"\xfe\xdc", "document", "application/octet-stream"),
    ],
)
def test_bytes_are_media_by_how_they_begin(data, kind, media_type):
    expected = Media(kind=kind, media_type=media_type, source=Inline(base64.b64encode(data).decode()))
    assert convert_result(data).content == (expected,)
    assert convert_result(bytearray(data)).content == (expected,)


def test_bytes_that_are_text_are_rendered_as_text():
    assert convert_result("müde".encode()).content == (Text(text="müde"),)


def test_parts_are_kept_and_lists_of_them_mixed_with_values():
    picture = Media(kind="image", media_type="image/png", source=Link("https://example.com/a.png"))
    block = Opaque(dialect="messages", raw=b'{"type":"search_result"}')
    assert convert_result(picture).content == (picture,)
    result = convert_result(["a picture:", picture, {"width": 3}, block, b"text"])
    assert result.content == (Text(text="a picture:"), picture, Data(json=b'{"width":3}'), block, Text(text="text"))


def test_a_tool_may_return_a_result_marked_as_failed():
    result = convert_result(ToolResult(call_id="ignored", content=(Text(text="no such file"),), failed=True))
    assert (result.call_id, result.failed, text_of(result)) == ("call_1", True, "no such file")


@pytest.mark.parametrize("value", [object(), {"a": object()}, {(1, 2): 3}, lambda: None, Model])
def test_what_is_neither_text_nor_json_is_a_failed_result(value):
    result = convert_result(value)
    assert result.failed
    assert text_of(result).startswith("work ran, but what it returned cannot be told:")


def test_a_value_that_contains_itself_is_a_failed_result():
    value: list[Any] = []
    value.append(value)
    assert convert_result(value).failed


def test_an_output_that_is_too_large_is_cut_with_a_notice():
    result = convert_result("x" * 5000, max_output=1000)
    assert result.failed
    assert result.content[0] == Text(text="x" * 1000)
    assert text_of(result).endswith(
        "[cut: the output has 5,000 bytes, and 1,000 are shown at most. The tool ran; to see the rest, ask it for less at a time.]"
    )


def test_a_cut_never_splits_a_character():
    assert convert_result("ä" * 100, max_output=11).content[0] == Text(text="ä" * 5)


def test_json_that_is_cut_is_text():
    assert convert_result({"a": "x" * 100}, max_output=10).content[0] == Text(text='{"a":"xxxx')


def test_the_limit_counts_over_all_parts_and_media_have_their_own():
    parts = [Text(text="x" * 6), PNG, Text(text="y" * 6), Text(text="z")]
    result = convert_result(parts, max_output=10)
    assert [type(part).__name__ for part in result.content] == ["Text", "Media", "Text", "Text"]
    assert text_of(result).startswith("xxxxxx\nyyyy\n[cut")
    assert text_of(convert_result(PNG, max_media=10)).startswith("[left out: image/png, 40 bytes]\n[cut")


def test_a_tools_own_limit_comes_before_the_executors():
    assert not run(handler(lambda arguments: "x" * 100, max_output=100), max_output=10).failed
    assert run(handler(lambda arguments: "x" * 100, max_output=10)).failed


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_output_that_is_spilled_is_not_lost_and_so_not_failed(asynchronous):
    kept: list[Any] = []

    def spill(asked: Any, content: Any) -> str:
        kept.append((asked.id, content))
        return "read it with read_artifact('a1')"

    async def spill_later(asked: Any, content: Any) -> str:
        return spill(asked, content)

    result = convert_result("x" * 50, max_output=10, spill=spill_later if asynchronous else spill)
    assert not result.failed
    assert text_of(result).endswith("All of it is kept: read it with read_artifact('a1')]")
    assert kept == [("call_1", (Text(text="x" * 50),))]


def test_a_spill_that_fails_leaves_a_cut_and_failed_result():
    def spill(asked: Any, content: Any) -> str:
        raise OSError("disk full")

    result = convert_result("x" * 50, max_output=10, spill=spill)
    assert result.failed
    assert "disk full" not in text_of(result)


async def perform(runner: Any) -> Any:
    return await runner.perform(call("work"))


def test_the_size_before_the_cut_is_known_to_the_caller():
    import asyncio

    ended = asyncio.run(perform(executor(handler(lambda arguments: "x" * 50), max_output=10)))
    assert (ended.size, ended.outcome) == (50, "oversized")


def test_no_text_of_a_tool_can_break_the_conversation():
    def work(arguments: Any) -> None:
        raise OSError("no such file: \udcff")

    assert text_of(run(handler(work))) == "work failed: OSError: no such file: ?"
    assert text_of(convert_result(Text(text="\udcff"))) == "?"
    assert text_of(convert_result(ToolResult(call_id="", content=(Text(text="\udcff"),)))) == "?"


class Picture:
    def _repr_png_(self):
        return PNG_START


PNG_START = b"\x89PNG\r\n\x1a\n123"


def test_a_path_is_the_file_there(tmp_path):
    files = {"a.png": PNG_START, "b.txt": b"text", "c.zip": b"\xff\xfe\xfd\x00"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    parts = parse_output([tmp_path / name for name in files]).content
    assert [getattr(part, "media_type", "") for part in parts] == ["image/png", "", "application/zip"]
    assert parts[1].text == "text"


def test_what_notebooks_draw_is_an_image():
    (part,) = parse_output(Picture()).content
    assert (part.kind, part.media_type) == ("image", "image/png")
    assert [type(part).__name__ for part in parse_output(["a", Picture()]).content] == ["Text", "Media"]


def test_a_missing_file_is_a_failed_result(tmp_path):
    @tool
    def read() -> Path:
        """Read."""
        return tmp_path / "missing.txt"

    result = run(read)
    assert result.failed
    assert "missing.txt" in text_of(result)
