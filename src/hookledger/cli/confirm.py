"""Asking before something is changed: a question at a terminal, without one a flag that says yes (else exit 2)."""

from __future__ import annotations

import sys

import typer

from hookledger.cli.errors import FAILED, WrongUse, one_line, say

NO_TERMINAL = "this changes the ledger and there is no terminal to ask at: give --yes to do it, or --dry-run"


def confirm(question: str, *, yes: bool, no_terminal: str = NO_TERMINAL) -> None:
    """Go on only if the person agrees.

    Args:
        question: verb, count and object, without the question mark.
        yes: --yes was given.
        no_terminal: what is told where nobody can be asked.

    Raises:
        WrongUse: without a terminal and without --yes.
        typer.Exit: with status 1 if the person declines.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise WrongUse(no_terminal)
    if not typer.confirm(f"{question}?", err=True):
        say("nothing was changed")
        raise typer.Exit(FAILED)


def confirm_typed(warning: str, word: str, *, yes: bool) -> None:
    """Go on only if the person writes a word, or has given --yes; for what cannot be undone.

    Args:
        warning: what will happen.
        word: to be written, such as the id of what is erased.
        yes: --yes was given.

    Raises:
        WrongUse: without a terminal and without --yes.
        typer.Exit: with status 1 if the person writes something else.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise WrongUse(NO_TERMINAL)
    say(f"warning: {warning}")
    if typer.prompt(f"Type {one_line(word)} to go on", default="", show_default=False, err=True).strip() != word:
        say("nothing was changed")
        raise typer.Exit(FAILED)


def confirm_by_word(warning: str, word: str, *, given: str | None, option: str) -> None:
    """Go on only if the person writes a word; --yes is not enough.

    Args:
        warning: what will happen.
        word: to be written.
        given: that of the option.
        option: its name, for those without a terminal.

    Raises:
        WrongUse: without a terminal and without the option, or with another word.
        typer.Exit: with status 1 if the person writes something else.
    """
    say(f"warning: {warning}")
    if given is not None:
        if given != word:
            raise WrongUse(f"{option} must be {word!r}; nothing was changed")
        return
    if not sys.stdin.isatty():
        raise WrongUse(f"--yes is not enough for this and there is no terminal to ask at: give {option} {word}")
    if typer.prompt(f"Type {word} to go on", default="", show_default=False, err=True) != word:
        say("nothing was changed")
        raise typer.Exit(FAILED)
