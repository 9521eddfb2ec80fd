"""URLs are parsed strictly; one that programs interpret differently is refused."""

import pytest

from dragoman.http.addresses import AllowList, LinkRefused, Location, parse_host_port, parse_location


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("https://example.com:443/a b".replace(" ", "%20"), "https://example.com/a%20b"),
        ("http://example.com:8080/?q=ä#part", "http://example.com:8080/?q=%C3%A4"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://\uff45xample\u3002com/", "http://example.com/"),
        ("http://[2606:4700:0::0:1111]/", "http://[2606:4700::1111]/"),
        ("http://8.8.8.8./", "http://8.8.8.8/"),
        ("http://8.8.8.8#@127.0.0.1/", "http://8.8.8.8/"),
        ("http://8.8.8.8?@127.0.0.1/", "http://8.8.8.8/?@127.0.0.1/"),
        ("HTTP://a.example/x;y=(1)?z=[2]", "http://a.example/x;y=(1)?z=[2]"),
    ],
)
def test_a_link_has_one_plain_form(url, plain):
    assert parse_location(url).url == plain
    assert parse_location(plain) == parse_location(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/", "http://0/", "http://0x/",
        "http://8.8.8.256/", "http://1.2.3.4.5/", "http://a.example.1/", "http://\uff18.\uff18.\uff18/", "http://evil.example[::1]/",
        "http://[::1]evil.example/", "http://[::1/", "http://::1/", "http://[fe80::1%25eth0]/", "http://[v1.a]/", "http://[]/",
        "http://a.example:0/", "http://a.example:65536/", "http://a.example:\uff18\uff10/", "http://a.example:+80/", "http://:80/",
        "http://a..example/", "http://.a.example/", "http://a<b.example/", "http://a,b.example/", "http://%61.example/",
        "http://a@b.example/", "http://@b.example/", "http://a\\b.example/", "http://a\tb.example/", "http://a.example/\x7f",
        "http://a.example/\x85", "http://a.example/\ud800", "http://a℀b.example/", "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 140 + "example/", "http://a.example/" + "x" * 9000, "http:/a.example/", "http:a.example",
        "//a.example/", "a.example", "", "ftp://a.example/", "http+unix://%2Frun%2Fx/", "jar:http://a.example!/", "dict://a.example/",
    ],
)  # fmt: skip
def test_a_link_that_readers_read_differently_is_refused(url):
    with pytest.raises(LinkRefused) as error:
        parse_location(url)
    assert "example" not in str(error.value)


def test_a_line_cannot_be_ended_from_within_a_link():
    location = parse_location("http://a.example/%0d%0ax:y?%0a")
    assert location == Location("http", "a.example", 80, "/%0d%0ax:y?%0a")


def test_a_single_place_is_allowed_with_its_port_and_no_other():
    allowed = AllowList(
        ["Wiki.corp.example:8443", "127.0.0.1:80", "[::1]:8080", "*.lab.example", "10.0.0.0/8", "büro.corp:443"]
    )
    assert allowed.allows_host("wiki.corp.example.", 8443)
    assert not allowed.allows_host("wiki.corp.example", 443)
    assert not allowed.allows_host("wiki.corp.example")
    assert allowed.allows_host("127.0.0.1", 80)
    assert not allowed.allows_host("127.0.0.1", 81)
    assert allowed.allows_host("::1", 8080)
    assert allowed.allows_host("a.lab.example", 5)
    assert allowed.allows_host(parse_location("https://büro.corp/").host, 443)


@pytest.mark.parametrize(
    "entry", ["a.example", "10.0.0.0/8", "fd00::/8", "::1", "*.a.example:80", "http://a.example:80", "", "[::g]:80"]
)
def test_what_names_no_single_place_is_none(entry):
    assert parse_host_port(entry) is None
