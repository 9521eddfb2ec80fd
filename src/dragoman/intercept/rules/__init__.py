"""The rules in the order in which they are applied: tools first, then the history, then the model and its instructions.

Each rule gets the request as the one before left it.
"""

from dragoman.intercept.plan import Rule
from dragoman.intercept.rules.history import answered, restored, unprompted
from dragoman.intercept.rules.request import injected, instructed, remodelled, stripped

RULES: tuple[tuple[str, Rule], ...] = (
    ("the client's tools taken out", stripped),
    ("tools put in", injected),
    ("calls and results put in", answered),
    ("the conversation put back", restored),
    ("our prompt taken out", unprompted),
    ("another model", remodelled),
    ("other instructions", instructed),
)
