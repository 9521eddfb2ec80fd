"""The check of commit subjects that `make check` runs."""

import subprocess

import pytest

from architecture.commit_subjects import find_faults, list_commits
from architecture.tree import ROOT


@pytest.mark.parametrize(
    "subject",
    ["gateway: retry on 529", "agent, cli: fewer parameters", "docs: " + "x" * 66, "tests: Claude Code in tmux"],
)
def test_a_subject_that_names_its_component_is_accepted(subject):
    assert find_faults(subject) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Retry on 529", "component"),
        ("gateway:retry on 529", "component"),
        ("Gateway: retry on 529", "component"),
        ("gateway: ", "component"),
        ("docs: " + "x" * 67, "73 characters"),
        ("gateway: retry on 529.", "full stop"),
    ],
)
def test_any_other_subject_is_rejected(subject, fault):
    (found,) = find_faults(subject)
    assert fault in found


def git(folder, *arguments):
    settings = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *settings, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True)  # noqa: S603
    return done.stdout.strip()


def test_only_commits_after_the_start_are_listed(tmp_path):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "Before the rule")
    start = git(tmp_path, "rev-parse", "HEAD")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "gateway: retry on 529")
    assert [subject for _, subject in list_commits(tmp_path, start)] == ["gateway: retry on 529"]


def test_without_history_nothing_is_checked(tmp_path):
    assert list_commits(tmp_path) == []


def test_make_check_runs_the_check():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert "tests/architecture/commit_subjects.py" in check
