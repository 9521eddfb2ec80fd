"""What is answered without asking anybody: that we are here."""

Told = tuple[int, dict[str, str], bytes]
_JSON = {"content-type": "application/json"}


def health() -> Told:
    """Say that we are here."""
    return 200, _JSON, b'{"status":"ok"}'
