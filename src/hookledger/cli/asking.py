"""Asking before something is changed: on a terminal; without one, --yes has to say it."""

from __future__ import annotations

import sys

import typer

from hookledger.cli.errors import FAILED, WrongUse, one_line, say


def confirm(question: str, *, yes: bool) -> None:
    """Return if it is to be done; end the command if not.

    Args:
        question: says what will be done, in numbers.
        yes: whether --yes was given.

    Raises:
        WrongUse: without a terminal and without --yes.
    """
    if not yes and _answer(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        _decline()


def confirm_typed(warning: str, word: str, *, yes: bool) -> None:
    """As `confirm`, for what cannot be undone: the word has to be typed.

    Args:
        warning: says what will be done, and what that means.
        word: what to type.
        yes: whether --yes was given.

    Raises:
        WrongUse: without a terminal and without --yes.
    """
    if not yes and _answer(f"{warning}\nType {one_line(word)} to go on: ").strip() != word:
        _decline()


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
            raise WrongUse(f"{option} must be {word!r}, the same word as what is forgotten; nothing was changed")
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUse(f"--yes is not enough for this and there is no terminal to ask on: give {option} {word}")
    if _answer(f"Type {one_line(word)} to go on: ").strip() != word:
        _decline()


def _answer(question: str) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUse("there is no terminal to ask on: give --yes to do it, or --dry-run to see what would be done")
    # On standard error: what is printed for programs stays alone.
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline()


def _decline() -> None:
    say("declined; nothing was changed")
    raise typer.Exit(FAILED)
