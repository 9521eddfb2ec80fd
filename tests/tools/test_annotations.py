"""What a docstring says of parameters, in three styles."""

import pytest

from dragoman.tools.annotations import parse_docstring

GOOGLE = """Book a table.

    Only in the evening.

    Args:
        guests (int): how many come,
            children too
        name: who asks: a full name

    Returns:
        The number of the table.

    Note:
        not: a parameter
    """
NUMPY = """Book a table.

    Only in the evening.

    Parameters
    ----------
    guests : int, optional
        how many come,
        children too
    name
        who asks: a full name

    Returns
    -------
    int
        The number of the table.
    """
REST = """Book a table.

    Only in the evening.

    :param int guests: how many come,
        children too
    :param name: who asks: a full name
    :type name: str
    :returns: The number of the table.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_every_docstring_style_gives_the_same_result(docstring):
    found = parse_docstring(docstring)
    assert found.description == "Book a table.\n\nOnly in the evening."
    assert found.parameters == {"guests": "how many come, children too", "name": "who asks: a full name"}


def test_several_parameters_may_share_their_description():
    text = "Add.\n\nParameters\n----------\nx, y : float\n    what is added\n"
    assert parse_docstring(text).parameters == {"x": "what is added", "y": "what is added"}


@pytest.mark.parametrize(
    "docstring", ["Just say: it works.", "Args: are explained elsewhere.", "One line\n\nTable\n-----\n1 2"]
)
def test_prose_stays_prose(docstring):
    assert parse_docstring(docstring).description == docstring
    assert parse_docstring(docstring).parameters == {}


@pytest.mark.parametrize("docstring", [None, "", "Args:", "Parameters\n---", ":param:", ":param x:"])
def test_a_docstring_may_be_empty(docstring):
    assert parse_docstring(docstring).parameters == {}
