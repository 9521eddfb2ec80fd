"""What other dialects can make of a request of this one: fields that need no counterpart."""

from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    NO_PADDING,
    NOT_STORED,
    SAYS_NOTHING,
    TEXT_ANYWAY,
    UNASKED,
    Implied,
)

IMPLIED = {
    "/stream_options/include_usage": Implied((True, False), "our stream ends with the usage if that is asked for"),
    "/stream_options/include_obfuscation": Implied((False,), NO_PADDING),
    "/store": Implied((False,), NOT_STORED),
    "/service_tier": Implied(("auto", "default"), DEFAULT_TIER),
    "/modalities/#": Implied(("text",), TEXT_ANYWAY),
    "/logprobs": Implied((False,), UNASKED),
    "/top_logprobs": Implied((0,), UNASKED),
    "/logit_bias": Implied(({},), SAYS_NOTHING),
    "/messages/#/annotations": Implied(([],), SAYS_NOTHING),
    "/messages/#/tool_calls/#/index": Implied(tuple(range(128)), "calls are told in the order of the list"),
    "/messages/#/prefix": Implied((False,), "the model begins its answer itself, as where nothing is said"),
    "/messages/#/content/#/image_url/detail": Implied(("auto",), DEFAULT_DETAIL),
}
"""A field that the caller asks for and will not get has no row, however usual it is: cache marks, keys, labels."""

SHARED_FIELDS = frozenset(
    {
        "/service_tier",
        "/store",
        "/prompt_cache_key",
        "/prompt_cache_options",
        "/prompt_cache_retention",
        "/moderation",
        "/user",
        "/safety_identifier",
    }
)
"""Fields that OpenAI's dialects have with one meaning."""
