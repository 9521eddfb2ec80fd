"""What a page has and does not show, as far as its tags say so themselves: marked `hidden`, so that it is left out.

Runs in the process that converts pages, without our package. It is no defence: style sheets and colours hide as well.
A page can say more with a little effort, and what it says is marked as somebody else's words.
"""

import re
from html import unescape

_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9-]*+)([\s/][^<>]*+)>")
_STYLE = re.compile(r"""(?<![\w-])style\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_ARIA = re.compile(r"""(?<![\w-])aria-hidden\s*=\s*["']?true\b""", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?[0-9]*\.?[0-9]+)([a-z%]*)")
_BODIES = frozenset({"html", "body", "main", "article"})
"""What is hidden from one reader while a notice stands before it is the page itself."""
_OUTSIDE = -500
"""So far left of a page, or above it, stands nothing that anybody sees."""
_FAINT = 0.02
_WORDS = {
    "display": {"none"},
    "visibility": {"hidden", "collapse"},
    "content-visibility": {"hidden"},
    "color": {"transparent"},
}
_BEGINNINGS = {
    "clip": ("rect(0", "rect(1px"),
    "clip-path": ("inset(50%", "inset(100%", "circle(0", "polygon(0 0, 0 0", "polygon(0px 0px, 0px 0px"),
    "transform": ("scale(0)", "scale(0,", "scalex(0)", "scaley(0)"),
}
_PLACES = frozenset({"left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top"})
_SIZES = frozenset({"height", "max-height", "width", "max-width"})


def marked(html: str) -> str:
    """Return a page in which every tag that hides itself says so."""
    return _TAG.sub(_tag, html)


def _tag(found: "re.Match[str]") -> str:
    name, rest = found.groups()
    is_hidden = name.lower() not in _BODIES and bool(_ARIA.search(rest))
    if not is_hidden:
        style = _STYLE.search(rest)
        is_hidden = style is not None and hides(unescape(style[1].strip("\"'")))
    return f"<{name} hidden{rest}>" if is_hidden else found[0]


def hides(style: str) -> bool:
    """Tell whether nobody sees what has this style."""
    said: dict[str, str] = {}
    for declaration in _uncommented(style).lower().split(";"):
        name, _, value = declaration.partition(":")
        said[name.strip()] = value.replace("!important", "").strip()
    if any(_is_unseen(name, value) for name, value in said.items()):
        return True
    clipped = said.get("overflow", "").startswith(("hidden", "clip"))
    return clipped and any(_number(said.get(name, "")) == 0 for name in _SIZES)


def _uncommented(style: str) -> str:
    """Return a style without comments; it is walked once, for a page may have written it to take long."""
    kept: list[str] = []
    at = 0
    while (begin := style.find("/*", at)) >= 0:
        kept.append(style[at:begin])
        end = style.find("*/", begin + 2)
        if end < 0:
            return "".join(kept)
        at = end + 2
    return "".join((*kept, style[at:]))


def _is_unseen(name: str, value: str) -> bool:
    if value in _WORDS.get(name, ()) or (value and value.startswith(_BEGINNINGS.get(name, ("\0",)))):
        return True
    number = _number(value)
    if number is None:
        return False
    if name in _PLACES:
        return number <= _OUTSIDE
    if name == "opacity":
        return number < _FAINT
    return name == "font-size" and (number == 0 or (number <= 1 and value.endswith(("px", "pt"))))


def _number(value: str) -> float | None:
    found = _NUMBER.fullmatch(value)
    return float(found[1]) if found else None
