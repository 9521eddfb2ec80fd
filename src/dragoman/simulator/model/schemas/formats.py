"""A text of each format that schemas know."""

from dragoman.simulator.model.language.facts import Fact

_SAMPLES = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T09:30:00Z",
    "time": "09:30:00Z",
    "duration": "PT1H",
    "email": "someone@example.org",
    "idn-email": "someone@example.org",
    "hostname": "www.example.org",
    "idn-hostname": "www.example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uri-reference": "/page",
    "iri": "https://example.org/",
    "iri-reference": "/page",
    "uri-template": "https://example.org/{name}",
    "url": "https://example.org/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "json-pointer": "/name",
    "relative-json-pointer": "0",
    "regex": ".*",
    "byte": "ZXhhbXBsZQ==",
    "binary": "example",
}


def sample(name: str) -> str | None:
    """Return a text of a format, if there is one to know."""
    return _SAMPLES.get(name)


def as_format(fact: Fact, name: str) -> str:
    """Tell a fact as a format wants it: a day is also the moment at which it begins."""
    text = str(fact.value)
    if name == "date-time":
        return f"{text}T00:00:00Z" if fact.kind == "date" else _with_zone(text)
    if name == "date" and fact.kind == "datetime":
        return text[:10]
    if name == "time" and fact.kind == "time":
        return _clock(text)
    return text


def _with_zone(text: str) -> str:
    if text.endswith("Z") or "+" in text or text.count("-") > 2:
        return text
    return f"{text}:00Z" if text.count(":") == 1 else f"{text}Z"


def _clock(text: str) -> str:
    plain = text.lower()
    hours, _, rest = plain.removesuffix("am").removesuffix("pm").strip().partition(":")
    hour = int(hours) % 12 if plain.endswith("m") else int(hours)
    late = 12 if plain.endswith("pm") else 0
    minutes, _, seconds = rest.partition(":")
    return f"{hour + late:02}:{minutes or '00'}:{seconds or '00'}Z"
