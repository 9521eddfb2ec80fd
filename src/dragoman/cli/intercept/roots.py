"""Whom a child trusts: everybody it trusted before, and our authority beside them.

Some variables add an authority, others replace all of them: for these a file is made of what held before and of ours.
The system's own store is never touched.
"""

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

_REPLACING = (
    ("SSL_CERT_FILE", ()),
    ("CURL_CA_BUNDLE", ("SSL_CERT_FILE",)),
    ("REQUESTS_CA_BUNDLE", ("CURL_CA_BUNDLE",)),
)
"""Variables that name all authorities, and whose word holds for their readers where they are not set."""
_ADDING = "NODE_EXTRA_CA_CERTS"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class RootsError(Exception):
    """Authorities that the user names cannot be read."""


def trusting(authority: str, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables by which a child trusts our authority too; the files they name are made in `folder`."""
    told: dict[str, str] = {}
    for variable, others in _REPLACING:
        said = next((name for name in (variable, *others) if environment.get(name)), "")
        held = _named(said, environment[said]) if said else usual()
        told[variable] = _written(folder / f"{variable.lower()}.pem", [*held, authority])
    added = environment.get(_ADDING, "")
    told[_ADDING] = _written(folder / f"{_ADDING.lower()}.pem", [*(_named(_ADDING, added) if added else ()), authority])
    return told


def usual() -> list[str]:
    """Return the system's authorities."""
    context = ssl.create_default_context()
    found = [ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True)]
    if not found and (directory := ssl.get_default_verify_paths().capath):
        found = _read(Path(directory))
    return found


def _named(variable: str, said: str) -> list[str]:
    try:
        return _read(Path(said))
    except OSError as error:
        raise RootsError(f"{variable} names {said}, which cannot be read: {error.strerror}") from None


def _read(path: Path) -> list[str]:
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return list(dict.fromkeys(found for text in texts for found in _CERTIFICATE.findall(text)))


def _written(file: Path, certificates: list[str]) -> str:
    text = "".join(f"{certificate.strip()}\n" for certificate in certificates)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    return str(file)
