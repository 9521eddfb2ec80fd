"""What OpenAI tells a caller whose key it does not take, or who has none."""

from dragoman.simulator.api import Refusal

BAD_KEY = Refusal(
    status=401,
    message="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    kind="invalid_api_key",
    rule="key",
)
NO_KEY = Refusal(
    status=401,
    message=(
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY). You can obtain an API key from "
        "https://platform.openai.com/account/api-keys."
    ),
    rule="key",
)
"""It has no code, unlike the other."""
