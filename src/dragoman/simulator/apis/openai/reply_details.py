"""Details of replies that both of OpenAI's APIs have: probabilities of tokens and results of moderation."""

from dragoman.simulator.rule import Json

_LIKELY = -0.01
_WORSE = -4.0
_CATEGORIES = ("harassment", "hate", "illicit", "self-harm", "sexual", "violence")


def probabilities(text: str, alternatives: int) -> list[Json]:
    """Tell of each token of a text how likely it was (very), and how likely so many others; a token is a word."""
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


def moderation_result(model: str) -> Json:
    """Return what a moderator says of one side of an exchange: nothing is wrong with it."""
    return {
        "type": "moderation_result",
        "model": model,
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
    }
