"""Where interception keeps its things: among the user's own data, open to nobody else."""

import os
import stat
from pathlib import Path


class FolderError(Exception):
    """A folder cannot be used for secrets; the words say why."""


def home() -> Path:
    """Return the folder of what stays between runs."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "dragoman" / "intercept"


def private(folder: Path) -> Path:
    """Make a folder that only its owner can look into, also if it was there before."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise FolderError(f"{folder} is not a folder of yours: keys must not lie there")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder
