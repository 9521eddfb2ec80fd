"""`dragoman completion SHELL`: print a script that completes commands and options in a shell."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]
    from collections.abc import Mapping

    from dragoman.cli.parser import Parser


_BASH = """_dragoman() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words
    case ${{COMP_WORDS[1]}} in
{cases}
        *) words="{verbs}" ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then words="{verbs}"; fi
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _dragoman dragoman
"""
_ZSH = """(( $+functions[compdef] )) || { autoload -U compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
"""


def add_to(verbs: "_SubParsersAction[Parser]") -> None:
    """Add the subcommand; it knows the commands that were added before it."""
    parser = verbs.add_parser(
        "completion",
        help="print a script that completes commands and options",
        examples=(
            'bash, zsh: eval "$(dragoman completion bash)"      # in ~/.bashrc; zsh in ~/.zshrc',
            "fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish",
        ),
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run, parser=parser, verbs=verbs)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    words = {verb: list_words(parser) for verb, parser in options.verbs.choices.items()}
    sys.stdout.write(render_fish(words) if options.shell == "fish" else render_bash(words, options.shell))
    return 0


def list_words(parser: "Parser") -> list[str]:
    """Return the subcommands, choices and options that a command and its subcommands have."""
    options = {option for each in (parser, *parser.parts.values()) for option in each.list_options()}
    return [*parser.list_choices(), *sorted(options)]


def render_bash(words: "Mapping[str, list[str]]", shell: str) -> str:
    """Return the script for bash, or for zsh with the functions of bash."""
    cases = "\n".join(f'        {verb}) words="{" ".join(each)}" ;;' for verb, each in words.items())
    return (_ZSH if shell == "zsh" else "") + _BASH.format(cases=cases, verbs=" ".join(words))


def render_fish(words: "Mapping[str, list[str]]") -> str:
    """Return the script for fish."""
    lines = [f"complete -c dragoman -n __fish_use_subcommand -a '{' '.join(words)}'"]
    for verb, each in words.items():
        used = f"-n '__fish_seen_subcommand_from {verb}'"
        parts = [word for word in each if not word.startswith("--")]
        if parts:
            lines.append(f"complete -c dragoman {used} -a '{' '.join(parts)}'")
        lines += [f"complete -c dragoman {used} -l {word[2:]}" for word in each if word.startswith("--")]
    return "\n".join(lines) + "\n"
