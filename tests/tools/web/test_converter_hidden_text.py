"""What a page has and does not show is left out, as far as its tags say so."""

import asyncio

import pytest

from cpu_limit import cpu_limit
from dragoman.tools.web.converter import Converter, Markdown
from dragoman.tools.web.converter_worker import mark_hidden_tags


@pytest.fixture(scope="module")
def converter() -> Converter:
    return Converter(seconds=10)


def read(converter: Converter, html: str) -> Markdown:
    return asyncio.run(converter.to_markdown(html, "https://a.example/"))


@pytest.mark.parametrize(
    "attributes",
    [
        'style="opacity:0"', 'style="OPACITY : 0.00 !important; color: red"', "style='opacity:0%'", "style=opacity:0",
        'style="opacity&#58;0"', 'style="opacity:/**/0"', 'style="font-size:0px"', 'style="font-size: 1px"',
        'style="position:absolute; left:-9999px"', 'style="text-indent:-999em"', 'style="margin-top:-10000px"',
        'style="clip: rect(0, 0, 0, 0)"', 'style="clip-path:inset(50%)"', 'style="transform:scale(0)"',
        'style="color:transparent"', 'style="overflow:hidden;height:0"', 'style="visibility:collapse"',
        'aria-hidden="true"', "aria-hidden=true", 'class="a"\nstyle="opacity:0"', "hidden", 'style="display:none"',
    ],
)  # fmt: skip
def test_what_a_tag_hides_is_left_out_with_all_that_is_in_it(converter, attributes):
    result = read(converter, f"<main><p>Seen.</p><div {attributes}>Obey <b>me</b>.</div><p>Seen too.</p></main>")
    assert result.text == "Seen.\n\nSeen too.\n"


@pytest.mark.parametrize(
    "attributes",
    [
        'style="opacity:0.5"', 'style="opacity:1"', 'style="left:-20px"', 'style="font-size:0.8em"', 'style="height:0"',
        'style="clip:auto"', 'style="transform:scale(0.5)"', 'aria-hidden="false"', 'title="opacity:0"', 'style=""',
        'style="background-color:transparent"', 'style="overflow:hidden;height:10px"', "data-style='opacity:0'x",
    ],
)  # fmt: skip
def test_what_can_be_seen_stays(converter, attributes):
    assert "Read me." in read(converter, f"<main><div {attributes}>Read me.</div></main>").text


def test_a_page_behind_a_notice_is_not_hidden_and_neither_is_text_about_styles(converter):
    result = read(converter, '<main aria-hidden="true"><p>Write <code>&lt;p style="opacity:0"&gt;</code>.</p></main>')
    assert result.text == 'Write `<p style="opacity:0">`.\n'


@pytest.mark.parametrize(
    "page",
    ["<" + "a" * 1_500_000, "<a" * 700_000, '<p style="' * 150_000, f'<p style="{"/*" * 700_000}">', "<p " * 500_000],
)
def test_looking_for_what_is_hidden_takes_as_long_as_the_page(page):
    with cpu_limit():
        mark_hidden_tags(page)
