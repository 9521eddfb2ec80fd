"""Check the subjects of commits: `package: what changed`, at most 72 characters.

Run by `make check`. Commits up to START and merges are not checked. Without git history (an archive, a shallow clone)
there is nothing to check, and the check passes.
"""

import re
import subprocess
import sys
from pathlib import Path

START = "1d4ed21dfdc2abaa1fd8d96816d93fe903dfe3c3"
"""The last commit before the rule; only commits after it are checked."""
LONGEST = 72
_SUBJECT = re.compile(r"[a-z][a-z0-9_./-]*(, [a-z][a-z0-9_./-]*)*: \S")


def find_faults(subject: str) -> list[str]:
    """Return what is wrong with a subject."""
    faults: list[str] = []
    if not _SUBJECT.match(subject):
        faults.append("it must start with a lower-case component and a colon, as in 'gateway: retry on 529'")
    if len(subject) > LONGEST:
        faults.append(f"it has {len(subject)} characters; at most {LONGEST} are allowed")
    if subject.endswith("."):
        faults.append("it must not end with a full stop")
    return faults


def list_commits(root: Path, start: str = START) -> list[tuple[str, str]]:
    """Return hash and subject of each commit after `start`, without merges; nothing where `start` is not known."""
    command = ["git", "log", "--no-merges", "--format=%h %s", f"{start}..HEAD"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return []
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in done.stdout.splitlines()]


def main() -> int:
    """Print every fault; return the exit status."""
    status = 0
    for commit, subject in list_commits(Path(__file__).resolve().parents[2]):
        for fault in find_faults(subject):
            sys.stderr.write(f"commit {commit} {subject!r}: {fault}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
