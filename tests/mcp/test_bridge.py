"""What servers say becomes parts and parts become what a client reads, and nothing goes missing between."""

import subprocess
import sys

import msgspec
import pytest

from dragoman.core.parts import Data, Inline, Link, Media, Opaque, Plain, Stored, Text
from dragoman.mcp.bridge import content_to, result_from
from dragoman.mcp.sdk import types

LINK = {"type": "resource_link", "name": "a", "uri": "demo://a", "mimeType": "text/csv", "size": 3}
PAIRS = [
    ({"type": "text", "text": "hello"}, Text(text="hello")),
    (
        {"type": "image", "data": "iVBO", "mimeType": "image/png"},
        Media(kind="image", media_type="image/png", source=Inline("iVBO")),
    ),
    (
        {"type": "audio", "data": "UklG", "mimeType": "audio/wav"},
        Media(kind="audio", media_type="audio/wav", source=Inline("UklG")),
    ),
    (
        {"type": "resource", "resource": {"uri": "demo://n.md", "mimeType": "text/markdown", "text": "# n"}},
        Media(kind="document", media_type="text/markdown", source=Plain("# n"), name="demo://n.md"),
    ),
    (
        {"type": "resource", "resource": {"uri": "demo://f.mp4", "mimeType": "video/mp4", "blob": "AAAA"}},
        Media(kind="video", media_type="video/mp4", source=Inline("AAAA"), name="demo://f.mp4"),
    ),
    (LINK, Data(json=msgspec.json.encode(LINK))),
]


def answer(*blocks, structured=None, failed=False) -> types.CallToolResult:
    raw = {"content": list(blocks), "isError": failed}
    return types.CallToolResult.model_validate(raw if structured is None else {**raw, "structuredContent": structured})


def texts(*words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": word} for word in words]


@pytest.mark.parametrize(("block", "part"), PAIRS, ids=[pair[0]["type"] for pair in PAIRS])
def test_a_block_becomes_a_part_and_the_same_block_again(block, part):
    (read,) = result_from(answer(block)).content
    assert read == part
    (written,) = content_to([read])
    assert written.model_dump(by_alias=True, mode="json", exclude_none=True) == block
    assert result_from(types.CallToolResult(content=[written])).content == (part,)


def test_a_resource_without_a_media_type_is_plain_text_or_bytes():
    blocks = [
        {"type": "resource", "resource": {"uri": "x:1", "text": "t"}},
        {"type": "resource", "resource": {"uri": "x:2", "blob": "AAAA"}},
    ]
    parts = result_from(answer(*blocks)).content
    assert [(part.kind, part.media_type) for part in parts] == [
        ("document", "text/plain"),
        ("document", "application/octet-stream"),
    ]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "data": "iV\nBO", "mimeType": "image/png"},
            Media(kind="image", media_type="image/png", source=Inline("iVBO")),
        ),
        (
            {"type": "image", "data": "iVBO", "mimeType": "a picture"},
            Media(kind="document", media_type="application/octet-stream", source=Inline("iVBO")),
        ),
        (
            {"type": "image", "data": "no base64!", "mimeType": "image/png"},
            Text(text="[left out: image/png, which is empty or not base64]"),
        ),
        (
            {"type": "audio", "data": "", "mimeType": "audio/wav"},
            Text(text="[left out: audio/wav, which is empty or not base64]"),
        ),
        (
            {"type": "resource", "resource": {"uri": "x:1", "blob": "?"}},
            Text(text="[left out: x:1 application/octet-stream, which is empty or not base64]"),
        ),
    ],
)
def test_media_that_no_vendor_accepts_is_corrected_or_described_in_text(block, part):
    assert result_from(answer(block)).content == (part,)


def test_an_error_of_a_tool_is_a_failed_result():
    result = result_from(answer(*texts("no such file"), failed=True))
    assert (result.failed, result.content) == (True, (Text(text="no such file"),))


TWO_BLOCKS = '{"content":[{"type":"text","text":"hello"},{"type":"text","text":"b"}]}'


@pytest.mark.parametrize(
    ("blocks", "structured", "result"),
    [
        ([], {"a": 1}, ['{"a":1}']),
        (texts('{ "a": 1 }'), {"a": 1}, ['{"a":1}']),
        (texts("see", '{"a": 1}'), {"a": 1}, ["see", '{"a":1}']),
        (texts("about a"), {"a": 1}, ["about a", '{"a":1}']),
        (texts("hello"), {"result": "hello"}, ["hello"]),
        (texts("3"), {"result": 3}, ["3"]),
        (texts("hello"), {"content": "hello"}, ["hello"]),
        (texts("hello"), {"content": texts("hello")}, ["hello"]),
        (texts("a", "b"), {"content": texts("a", "b")}, ["a", "b"]),
        (texts("hello"), {"content": texts("hello", "b")}, [TWO_BLOCKS]),
        (texts('```json\n{"a": 1}\n```'), {"a": 1}, ['{"a":1}']),
        (texts("x", '{"b": 2}'), {"result": ["x", {"b": 2}]}, ["x", '{"b": 2}']),
        (texts("x"), {"result": ["x", "y"]}, ['{"result":["x","y"]}']),
        (texts("x"), {"result": "x", "more": 1}, ['{"result":"x","more":1}']),
        (texts("x", "[1]"), {"a": "x", "b": {"c": [1]}}, ['{"a":"x","b":{"c":[1]}}']),
        (texts("x", "see"), {"a": "x", "b": 1}, ["x", "see", '{"a":"x","b":1}']),
        (texts("1"), [1, 2], ["[1,2]"]),
    ],
)
def test_structured_output_is_kept_and_not_repeated(blocks, structured, result):
    content = result_from(answer(*blocks, structured=structured)).content
    assert [part.text if isinstance(part, Text) else part.json.decode() for part in content] == result


def test_parts_without_an_mcp_block_are_rendered_as_text():
    linked, stored, opaque, unnamed = content_to(
        [
            Media(kind="image", media_type="image/png", source=Link("https://a.test/b.png")),
            Media(kind="document", media_type="", source=Stored("openai", "file-1")),
            Opaque(dialect="chat", raw=b'{"type":"x"}'),
            Media(kind="document", media_type="application/pdf", source=Inline("JVBE")),
        ]
    )
    assert (linked.type, linked.uri) == ("resource_link", "https://a.test/b.png")
    assert stored.text == "[document file-1, which openai keeps]"
    assert opaque.text == '{"type":"x"}'
    assert unnamed.resource.uri == "attachment:document"


def test_json_that_only_looks_like_a_link_stays_text():
    (block,) = content_to([Data(json=b'{"type":"resource_link"}')])
    assert (block.type, block.text) == ("text", '{"type":"resource_link"}')


def test_without_the_sdk_the_extra_is_named():
    script = "import sys; sys.modules['mcp'] = None; import dragoman.mcp; import dragoman.mcp.sdk"
    captured = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert captured.returncode == 1
    assert 'pip install "dragoman[mcp]"' in captured.stderr
