"""Which hosts may be contacted, and which files may be read."""

import asyncio
import os
from pathlib import Path

import pytest

from dragoman.core.parts import ToolResult
from dragoman.http.addresses import LinkRefused, parse_location
from dragoman.tools.web import Settings, Web
from dragoman.tools.web.fetch import DomainFilter
from tools.web.asking import Names, build_redirect, call_web_fetch, listen, text_of


@pytest.mark.parametrize(
    ("allow", "deny", "url", "may"),
    [
        ([], [], "https://a.example/", True),
        (["a.example"], [], "https://a.example/", True),
        (["a.example"], [], "https://b.a.example/", True),
        (["a.example"], [], "https://A.Example./", True),
        (["*.a.example"], [], "https://b.a.example/", True),
        (["a.example"], [], "https://nota.example/", False),
        (["a.example"], [], "https://a.example.evil.example/", False),
        (["a.example"], [], "https://example/", False),
        (["example"], ["a.example"], "https://b.a.example/", False),
        (["example"], ["a.example"], "https://b.example/", True),
        ([], ["bücher.example"], "https://xn--bcher-kva.example/", False),
        ([], ["xn--bcher-kva.example"], "https://bücher.example/", False),
        ([], ["xn--bcher-kva.example"], "https://B\u00dcCHER\u3002example/", False),
        ([], ["8.8.8.8"], "https://8.8.8.8./", False),
        ([], ["8.8.8.8"], "https://8.8.4.4/", True),
        (["8.8"], [], "https://8.8.8.8/", None),
        ([], ["[2606:4700::1]"], "https://[2606:4700:0:0::1]/", False),
    ],
)
def test_a_domain_matches_itself_and_its_subdomains(allow, deny, url, may):
    if may is None:
        with pytest.raises(ValueError, match="is not a domain"):
            DomainFilter(allow, deny)
    elif may:
        DomainFilter(allow, deny).require_allowed(parse_location(url))
    else:
        with pytest.raises(LinkRefused, match="is not allowed"):
            DomainFilter(allow, deny).require_allowed(parse_location(url))


def test_a_denied_host_is_not_resolved():
    names = Names(["8.8.8.8"])
    result = asyncio.run(
        call_web_fetch(Web(Settings(deny=("evil.example",)), resolve=names), "https://sub.evil.example/")
    )
    assert result.failed
    assert "the host sub.evil.example is not allowed" in text_of(result)
    assert not names.asked


def test_neither_is_one_that_a_redirect_leads_to():
    async def steps() -> tuple[ToolResult, Names]:
        names = Names(["127.0.0.1"])
        async with listen(build_redirect("http://evil.example/")) as listener:
            private = (f"good.example:{listener.port}",)
            web = Web(Settings(allow=("good.example",), private=private, redirects="anywhere"), resolve=names)
            return await call_web_fetch(web, f"http://{private[0]}/"), names

    result, names = asyncio.run(steps())
    assert "evil.example is not allowed" in text_of(result)
    assert names.asked == ["good.example"]


@pytest.fixture
def open_files(tmp_path: Path) -> Path:
    directory = tmp_path / "open"
    (directory / "deep").mkdir(parents=True)
    (directory / "a.md").write_text("# the file")
    (directory / "deep" / "b c.html").write_text("<h1>deep</h1>")
    (directory / ".env").write_text("secret")
    (directory / ".git").mkdir()
    (directory / ".git" / "config").write_text("secret")
    (tmp_path / "outside.md").write_text("secret")
    (tmp_path / "open-not").mkdir()
    (tmp_path / "open-not" / "c.md").write_text("secret")
    (directory / "link.md").symlink_to(tmp_path / "outside.md")
    (directory / "up").symlink_to(tmp_path)
    (directory / "big.md").write_bytes(b"x" * 1001)
    os.mkfifo(directory / "pipe.md")
    return directory


def fetch_file(directory: Path, url: str) -> ToolResult:
    web = Web(Settings(files=(str(directory),), max_bytes=1000))
    return asyncio.run(asyncio.wait_for(call_web_fetch(web, url.replace("{}", str(directory))), 10))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file://{}/a.md", "# the file"),
        ("FILE://localhost{}/a.md", "# the file"),
        ("file:{}/a.md", "# the file"),
        ("file://{}/deep/b%20c.html", "# deep"),
    ],
)
def test_a_file_in_an_open_directory_is_read(open_files, url, text):
    result = fetch_file(open_files, url)
    assert text in text_of(result)
    assert not result.failed


@pytest.mark.parametrize(
    "url",
    [
        "file://{}/../outside.md", "file://{}/%2e%2e/outside.md", "file://{}/deep/../../outside.md", "file://{}/link.md",
        "file://{}/up/outside.md", "file://{}/up/open/a.md", "file://{}-not/c.md", "file:///etc/passwd", "file://{}/.env",
        "file://{}/.git/config", "file://{}/./a.md", "file://{}//a.md", "file://{}/pipe.md", "file://{}/deep", "file://{}/deep/",
        "file://{}", "file://{}/a.md%00.html", "file://evil.example{}/a.md", "file://{}/big.md", "file://{}/none.md",
        "file://{}/a.md?x", "file://{}/..%5coutside.md", "file://{}/%ff", "file:a.md", "file:", "file:///", "file:///proc/self/environ",
    ],
)  # fmt: skip
def test_nothing_else_is_read(open_files, url):
    result = fetch_file(open_files, url)
    assert result.failed
    assert "secret" not in text_of(result)
    assert "Errno" not in text_of(result)


def test_a_link_that_takes_the_place_of_a_directory_is_not_followed(open_files):
    """The check is in the walk itself: what was a directory when the tool began may be a link a moment later."""
    (open_files / "deep" / "b c.html").unlink()
    (open_files / "deep").rmdir()
    (open_files / "deep").symlink_to(open_files.parent)
    assert fetch_file(open_files, "file://{}/deep/outside.md").failed


def test_no_file_is_read_where_no_directory_is_open():
    assert "reading files is not allowed" in text_of(asyncio.run(call_web_fetch(Web(), "file:///etc/hostname")))


def test_an_open_directory_may_itself_be_named_by_a_link(open_files):
    link = open_files.parent / "name"
    link.symlink_to(open_files)
    web = Web(Settings(files=(str(link),)))
    assert "# the file" in text_of(asyncio.run(call_web_fetch(web, f"file://{open_files}/a.md")))
