"""Texts for custom tools."""

import pytest

from dragoman.simulator.model.schemas.validity import fits_pattern
from dragoman.simulator.talk import Tool
from simulator.model.asked import ADD, called

PATCH = Tool(name="apply_patch", kind="custom", description="Apply a patch to files")
SQL = Tool(name="run_sql", kind="custom", description="Executes SQL on the database")
PYTHON = Tool(name="code_exec", kind="custom", description="Executes arbitrary Python code")
SHELL = Tool(name="shell", kind="custom", description="Runs a command in the terminal")


def test_code_in_the_prompt_is_taken_as_it_is():
    prompt = "Please run this Python code:\n```python\nfor i in range(3):\n    print(i)\n```"
    assert called(prompt, PYTHON, ADD) == [("code_exec", "for i in range(3):\n    print(i)")]


def test_a_patch_is_a_patch():
    [(name, text)] = called("Apply a patch that adds the file hello.py with 'print(1)'", PATCH, SQL)
    assert name == "apply_patch"
    assert text == "*** Begin Patch\n*** Add File: hello.py\n+print(1)\n*** End Patch\n"


def test_a_query_is_a_query():
    assert called("query the database for all Users", PATCH, SQL) == [("run_sql", "SELECT * FROM users LIMIT 10;")]


def test_a_program_and_a_command_hold_what_is_asked_for():
    assert called("execute python code that prints 'hello'", PYTHON) == [("code_exec", 'print("hello")')]
    assert called("run a shell command to show /etc/hosts", SHELL) == [("shell", "cat /etc/hosts")]


@pytest.mark.parametrize("place", ["", "format", "grammar"])
def test_a_regular_expression_as_format_is_kept_to(place):
    grammar = {"type": "grammar", "syntax": "regex", "definition": r"\d{4}-[a-z]{2,3}"}
    tool = Tool(name="timestamp", kind="custom", schema={place: grammar} if place else grammar)
    [(_, text)] = called("save a timestamp", tool)
    assert fits_pattern(r"^\d{4}-[a-z]{2,3}$", text)


def test_any_other_tool_gets_the_words():
    tool = Tool(name="send_note", kind="custom", description="Sends a note")
    assert called("send a note: “be there at nine”", tool) == [("send_note", "be there at nine")]
