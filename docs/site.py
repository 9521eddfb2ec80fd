"""Stage the pages of the documentation site, or check the site that was built: `python docs/site.py stage|check`."""  # noqa: INP001

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "docs" / "pages"
HTML = ROOT / "build" / "docs" / "html"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(\s*```\w+) .*$", re.MULTILINE)
"""The site generator reads only the language of a code block, not the words behind it."""
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")


def staged(path: Path) -> Path:
    """Return where a file of the project is in the site, relative to the pages."""
    inside = path.relative_to(ROOT)
    return inside.relative_to("docs") if inside.parts[0] == "docs" else Path("project") / inside


def convert(path: Path, pages: set[Path]) -> str:
    """Return the text of a page with its links for the site; a link to a file that is no page becomes plain text."""

    def link(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        name, hash_sign, anchor = target.partition("#")
        found = (path.parent / name).resolve()
        if found not in pages:
            return match[0] if found.is_relative_to(ROOT / "docs") else text
        relative = os.path.relpath(staged(found), staged(path).parent)
        return f"{image}[{text}]({relative}{hash_sign}{anchor})"

    return _FENCE.sub(r"\1", _LINK.sub(link, path.read_text(encoding="utf-8")))


def stage() -> None:
    """Copy every page, and every other file below docs/, to where the site generator reads them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    files = {path for path in (ROOT / "docs").rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    files |= set(ROOT.glob("*.md"))
    pages = {path for path in files if path.suffix == ".md"}
    for path in sorted(files):
        target = PAGES / staged(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in pages:
            target.write_text(convert(path, pages), encoding="utf-8")
        else:
            shutil.copy(path, target)


def check() -> None:
    """Exit with an error if a page of the site loads something from another host."""
    found = sorted({url for path in HTML.rglob("*.html") for url in _LOADED.findall(path.read_text(encoding="utf-8"))})
    if found:
        sys.exit(f"the site loads from other hosts: {', '.join(found)}")


if __name__ == "__main__":
    {"stage": stage, "check": check}[sys.argv[1]]()
