"""How likely each token of an answer was: very. Tokens are words, each with the space before it."""

from dragoman.simulator.rule import Json

_LIKELY = -0.01
_WORSE = -4.0


def probabilities(text: str, alternatives: int) -> list[Json]:
    """Tell of each token of a text how likely it was, and how likely so many others."""
    return [_token(token, alternatives) for token in _tokens(text)]


def _tokens(text: str) -> list[str]:
    first, *others = text.split(" ")
    return [token for token in (first, *(f" {other}" for other in others)) if token]


def _token(token: str, alternatives: int) -> Json:
    top = [_likely(token, _LIKELY)][:alternatives]
    top += [_likely(f"{token}{number}", _WORSE - number) for number in range(1, alternatives)]
    return {**_likely(token, _LIKELY), "top_logprobs": top}


def _likely(token: str, logprob: float) -> Json:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
