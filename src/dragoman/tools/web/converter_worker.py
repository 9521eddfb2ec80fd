"""The worker process that converts HTML to Markdown: it reads pages from stdin until end of file.

It is started as a script, without the dragoman package, without environment variables and without Python's standard
paths. An attack on the parser is contained here: memory is limited, no file can be written, and an alarm kills a
process that hangs. Elements that their tags mark as hidden are dropped; that is no defence against hidden text, because
style sheets can hide it as well.
"""

import re
import signal
import struct
import sys
from html import unescape

_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9-]*+)([\s/][^<>]*+)>")
_STYLE = re.compile(r"""(?<![\w-])style\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_ARIA = re.compile(r"""(?<![\w-])aria-hidden\s*=\s*["']?true\b""", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?[0-9]*\.?[0-9]+)([a-z%]*)")
_CONTENT_TAGS = frozenset({"html", "body", "main", "article"})
"""Tags whose `aria-hidden` is ignored: pages set it on their main content while a dialog is open."""
_OFFSCREEN = -500
"""A position this many units left of the page or above it is off-screen."""
_INVISIBLE_OPACITY = 0.02
_HIDING_VALUES = {
    "display": {"none"},
    "visibility": {"hidden", "collapse"},
    "content-visibility": {"hidden"},
    "color": {"transparent"},
}
_HIDING_PREFIXES = {
    "clip": ("rect(0", "rect(1px"),
    "clip-path": ("inset(50%", "inset(100%", "circle(0", "polygon(0 0, 0 0", "polygon(0px 0px, 0px 0px"),
    "transform": ("scale(0)", "scale(0,", "scalex(0)", "scaley(0)"),
}
_POSITION_PROPERTIES = frozenset({"left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top"})
_SIZE_PROPERTIES = frozenset({"height", "max-height", "width", "max-width"})
REQUEST = struct.Struct("<III")
"""Header of a request: timeout in seconds, byte lengths of the page's URL and of its HTML."""
REPLY = struct.Struct("<?II")
"""Header of a reply: success, byte lengths of the title and of the Markdown."""
READY = b"."
MAX_TITLE = 300
MAX_TEXT = 2_000_000
_MAX_MEMORY = 1 << 30
_TITLE = re.compile(r"<title[^>]{0,99}>([^<]{0,2000})", re.IGNORECASE)
_TITLE_SEARCH_LIMIT = 200_000


def mark_hidden_tags(html: str) -> str:
    """Return the page with the attribute `hidden` added to every tag that a style or aria-hidden hides."""
    return _TAG.sub(_mark_tag, html)


def _mark_tag(found: "re.Match[str]") -> str:
    name, rest = found.groups()
    is_hidden = name.lower() not in _CONTENT_TAGS and bool(_ARIA.search(rest))
    if not is_hidden:
        style = _STYLE.search(rest)
        is_hidden = style is not None and is_hidden_style(unescape(style[1].strip("\"'")))
    return f"<{name} hidden{rest}>" if is_hidden else found[0]


def is_hidden_style(style: str) -> bool:
    """Return whether an inline style makes its element invisible."""
    properties: dict[str, str] = {}
    for declaration in _strip_comments(style).lower().split(";"):
        name, _, value = declaration.partition(":")
        properties[name.strip()] = value.replace("!important", "").strip()
    if any(_is_hiding(name, value) for name, value in properties.items()):
        return True
    clipped = properties.get("overflow", "").startswith(("hidden", "clip"))
    return clipped and any(_parse_number(properties.get(name, "")) == 0 for name in _SIZE_PROPERTIES)


def _strip_comments(style: str) -> str:
    """Return a style without comments, in linear time: a page may contain a style made to be slow to parse."""
    kept: list[str] = []
    at = 0
    while (begin := style.find("/*", at)) >= 0:
        kept.append(style[at:begin])
        end = style.find("*/", begin + 2)
        if end < 0:
            return "".join(kept)
        at = end + 2
    return "".join((*kept, style[at:]))


def _is_hiding(name: str, value: str) -> bool:
    if value in _HIDING_VALUES.get(name, ()) or (value and value.startswith(_HIDING_PREFIXES.get(name, ("\0",)))):
        return True
    number = _parse_number(value)
    if number is None:
        return False
    if name in _POSITION_PROPERTIES:
        return number <= _OFFSCREEN
    if name == "opacity":
        return number < _INVISIBLE_OPACITY
    return name == "font-size" and (number == 0 or (number <= 1 and value.endswith(("px", "pt"))))


def _parse_number(value: str) -> float | None:
    found = _NUMBER.fullmatch(value)
    return float(found[1]) if found else None


def limit_resources() -> None:
    """Limit memory, and forbid file writes and core dumps."""
    try:
        import resource  # noqa: PLC0415  missing on Windows
    except ImportError:
        return
    for limit, value in ((resource.RLIMIT_AS, _MAX_MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))


def main() -> None:
    """Convert pages from stdin and write the replies to stdout."""
    sys.path += sys.argv[1:]
    from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415  the path was extended only now

    limit_resources()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sink.write(READY)
    sink.flush()
    while len(head := source.read(REQUEST.size)) == REQUEST.size:
        seconds, *sizes = REQUEST.unpack(head)
        address, html = (source.read(size).decode("utf-8", "replace") for size in sizes)
        # Without a handler the operating system kills the process, even while native code blocks Python.
        _set_alarm(seconds)
        options = ConversionOptions(extract_metadata=False, inline_data_media="alt_text_only", base_url=address)
        try:
            text, good = convert(mark_hidden_tags(html), options).content or "", True
        except Exception as error:  # noqa: BLE001  the parser may raise anything; the reply reports it
            text, good = type(error).__name__, False
        _set_alarm(0)
        reply = [part.encode("utf-8", "replace") for part in (_find_title(html), text[:MAX_TEXT])]
        sink.write(REPLY.pack(good, *map(len, reply)) + b"".join(reply))
        sink.flush()


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):  # missing on Windows
        signal.alarm(seconds)


def _find_title(html: str) -> str:
    found = _TITLE.search(html, 0, _TITLE_SEARCH_LIMIT)
    return " ".join(unescape(found.group(1)).split())[:MAX_TITLE] if found else ""


if __name__ == "__main__":
    main()
