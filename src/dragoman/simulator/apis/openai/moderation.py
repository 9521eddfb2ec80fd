"""What a moderator along the way says of a request and its answer: nothing is wrong with either."""

from dragoman.simulator.rule import Json

_CATEGORIES = ("harassment", "hate", "illicit", "self-harm", "sexual", "violence")


def result(model: str) -> Json:
    """Return the result for one side."""
    return {
        "type": "moderation_result",
        "model": model,
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
    }
