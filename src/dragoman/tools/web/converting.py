"""Runs in a process of its own: HTML comes in, Markdown goes out, until nothing more comes in.

It is started as a script, without our package, without the environment and without the standard paths of Python. What a
page can do to a parser it does here, where there is a limit on memory, no file can be written, and the clock ends what
hangs, also when nobody is left who would.
"""

import re
import signal
import struct
import sys
from html import unescape
from typing import TYPE_CHECKING

REQUEST = struct.Struct("<III")
"""Seconds, and the sizes of the page's address and of its HTML."""
REPLY = struct.Struct("<?II")
"""Whether it went well, and the sizes of the title and of the Markdown."""
READY = b"."
LONGEST_TITLE = 300
LONGEST_TEXT = 2_000_000
_MEMORY = 1 << 30
_TITLE = re.compile(r"<title[^>]{0,99}>([^<]{0,2000})", re.IGNORECASE)
_SEARCHED = 200_000


def confine() -> None:
    """Give up what a conversion does not need."""
    try:
        import resource  # noqa: PLC0415  not every system has it
    except ImportError:
        return
    for limit, value in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))


def main() -> None:
    """Convert pages."""
    sys.path += sys.argv[1:]
    from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415  the path is known only now

    if TYPE_CHECKING:
        from dragoman.tools.web.unseen import marked  # noqa: PLC0415
    else:
        from unseen import marked  # noqa: PLC0415  stands beside this script, which is in no package here
    confine()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sink.write(READY)
    sink.flush()
    while len(head := source.read(REQUEST.size)) == REQUEST.size:
        seconds, *sizes = REQUEST.unpack(head)
        address, html = (source.read(size).decode("utf-8", "replace") for size in sizes)
        # No handler: the system itself ends the process, even while the parser lets nothing else run.
        _alarm(seconds)
        options = ConversionOptions(extract_metadata=False, inline_data_media="alt_text_only", base_url=address)
        try:
            text, good = convert(marked(html), options).content or "", True
        except Exception as error:  # noqa: BLE001  whatever a page does to the parser is told
            text, good = type(error).__name__, False
        _alarm(0)
        told = [words.encode("utf-8", "replace") for words in (_title(html), text[:LONGEST_TEXT])]
        sink.write(REPLY.pack(good, *map(len, told)) + b"".join(told))
        sink.flush()


def _alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):  # not every system has it
        signal.alarm(seconds)


def _title(html: str) -> str:
    found = _TITLE.search(html, 0, _SEARCHED)
    return " ".join(unescape(found.group(1)).split())[:LONGEST_TITLE] if found else ""


if __name__ == "__main__":
    main()
