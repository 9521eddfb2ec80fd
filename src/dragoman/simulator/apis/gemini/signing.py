"""How parts are signed and judged: one token over what a part holds, and a second over the model that signed it.

The model is the same on every surface, and whatever a name says of previews and dates.
"""

import re

from dragoman.simulator.apis.gemini.generation import known_as
from dragoman.simulator.apis.gemini.shape import Part
from dragoman.simulator.apis.gemini.turns import signed_content
from dragoman.simulator.signatures import Signer, Verdict

_TOKEN = 72
"""Characters of one token."""
_EDITION = re.compile(r"(?:-(?:preview|exp|latest|customtools|\d{2,}))+$")


def sign(part: Part, model: str, signer: Signer, occasion: str) -> str:
    """Sign a part as a model does."""
    return signer.issue(signed_content(part), occasion) + signer.issue(_line_of(model), f"{occasion} model")


def judge(token: str, part: Part, signer: Signer) -> Verdict:
    """Tell whether a signature is for this part, whichever model signed it."""
    verdict = signer.judge(token[:_TOKEN], signed_content(part))
    whole = verdict in {"altered", "foreign"} or signer.judge(token[_TOKEN:], "") == "moved"
    return verdict if whole else "altered"


def is_of(token: str, model: str, signer: Signer) -> bool:
    """Tell whether a model signed this."""
    return signer.judge(token[_TOKEN:], _line_of(model)) == "genuine"


def _line_of(model: str) -> str:
    return _EDITION.sub("", known_as(model).partition("@")[0])
