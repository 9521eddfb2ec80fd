"""The rules, one a file, and the order they are applied in: `RULES`.

Tools first, then the history, then what the model is and is told. Each is given the request as those before left it.
"""

from dragoman.intercept.plan import Rule
from dragoman.intercept.rules.answered import answered
from dragoman.intercept.rules.injected import injected
from dragoman.intercept.rules.instructed import instructed
from dragoman.intercept.rules.remodelled import remodelled
from dragoman.intercept.rules.restored import restored
from dragoman.intercept.rules.stripped import stripped
from dragoman.intercept.rules.unprompted import unprompted

RULES: tuple[tuple[str, Rule], ...] = (
    ("the client's tools taken out", stripped),
    ("tools put in", injected),
    ("calls and results put in", answered),
    ("the conversation put back", restored),
    ("our prompt taken out", unprompted),
    ("another model", remodelled),
    ("other instructions", instructed),
)
