"""From "hooks:inbox" to an Inbox, with a sentence for everything that can be wrong with it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from hookledger.cli.errors import WrongUse
from hookledger.errors import DatabaseNotGiven, HookledgerError

if TYPE_CHECKING:
    from hookledger.inbox import Inbox
    from hookledger.sources.provider import Provider


def locate(target: str) -> tuple[str, str]:
    """The module and the attribute that a target names, if there is such a module; nothing is run.

    Raises:
        WrongUse: if the target is not MODULE:ATTRIBUTE, or no file or package of that name is found.
    """
    module, colon, attribute = target.partition(":")
    if module.endswith(".py") or "/" in module:
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise WrongUse(f"write the module as Python imports it: {dotted}:{attribute or 'inbox'}")
    if not colon or not _is_dotted_name(module) or not _is_dotted_name(attribute):
        example = module if _is_dotted_name(module) else "hooks"
        raise WrongUse(
            f"{target!r} names no inbox: write MODULE:INBOX, for example {example}:inbox for the variable "
            f"`inbox` of {example.replace('.', '/')}.py"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    top = module.partition(".")[0]
    if top not in sys.modules and importlib.util.find_spec(top) is None:
        raise _no_such(module)
    return module, attribute


def schema_of(inbox: Inbox | None, schema: str) -> str:
    """Where the ledger is: where the inbox has it, if there is one.

    Raises:
        WrongUse: if another schema was asked for: what the inbox says of its handlers is not true of that ledger.
    """
    from hookledger.inbox import DEFAULT_SCHEMA

    if inbox is None or inbox.schema == schema:
        return schema
    if schema != DEFAULT_SCHEMA:
        raise WrongUse(
            f"the inbox has its ledger in the schema {inbox.schema!r}, not in {schema!r}: leave out --schema"
        )
    return inbox.schema


def load_inbox(target: str) -> Inbox:
    """Import the module of a target and give its inbox; a function without arguments is called for it.

    Args:
        target: MODULE:ATTRIBUTE; the current folder is looked in first.

    Raises:
        WrongUse: if there is no such module or no inbox in it, or the module raises on import.
        SetupError: as the module raised it, e.g. for an empty secret.
    """
    module_name, attribute = locate(target)
    module = _imported(module_name)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise WrongUse(f"the module {module_name} has no {attribute!r}{_inboxes_of(module)}") from None
    from hookledger.inbox import Inbox

    if not isinstance(found, Inbox) and callable(found) and not isinstance(found, type):
        found = _called(found, target)
    if not isinstance(found, Inbox):
        raise WrongUse(f"{target} is no Inbox but {_a(type(found).__name__)}{_inboxes_of(module)}")
    return found


def load_provider(target: str) -> Provider:
    """Import the module of a target and give the provider that is described there.

    Args:
        target: MODULE:ATTRIBUTE; the current folder is looked in first.

    Raises:
        WrongUse: if there is no such module or no provider in it, or the module raises on import.
    """
    from hookledger.sources.provider import Provider

    module_name, attribute = locate(target)
    found: Any = _imported(module_name)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Provider):
        raise WrongUse(
            f"{target} is no Provider: give the name of one that `hookledger sources` lists, or MODULE:NAME of one of "
            "your own, as acme:acme for `acme = Provider(...)` in acme.py"
        )
    return found


def load_inbox_with_handlers(target: str) -> Inbox:
    """As `load_inbox`, for commands that run handlers.

    Raises:
        WrongUse: also if the inbox has no handlers.
    """
    inbox = load_inbox(target)
    if not inbox.handlers:
        source = next(iter(inbox.sources), "stripe")
        raise WrongUse(
            f"{target} has no handlers, so there is nothing to run: register one in that module with "
            f'@inbox.snapshot("{source}", ...) or @inbox.accumulate("{source}", ...)'
        )
    return inbox


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except DatabaseNotGiven as error:
        raise WrongUse(
            f"importing {name} needs DATABASE_URL{_place(error.__traceback__)}: set it to the database of the "
            "application; `hookledger dev` prints that of its own"
        ) from error
    except HookledgerError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise _no_such(name) from error
        raise WrongUse(f"the module {name} could not be imported: {_told(error)}") from error
    except (Exception, SystemExit) as error:
        raise WrongUse(f"the module {name} could not be imported: {_told(error)}") from error


def _called(factory: Any, target: str) -> Any:
    try:
        return factory()
    except HookledgerError:
        raise
    except Exception as error:
        raise WrongUse(f"{target} was called to make an inbox, and raised {_told(error)}") from error


def _told(error: BaseException) -> str:
    """An error of the user's module in one line, with the place; a missing variable is named as such."""
    variable = _missing_variable(error)
    if variable is not None:
        return f"the environment variable {variable} is not set; set it and start again"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({_base(error.filename)}, line {error.lineno})"
    if isinstance(error, SystemExit):
        return f"it ended the process with status {error.code!r}; keep what does that under `if __name__ == ...`"
    return f"{type(error).__name__}: {error}{_place(error.__traceback__)} (--debug shows the traceback)"


def _missing_variable(error: BaseException) -> str | None:
    if not isinstance(error, KeyError) or not error.args:
        return None
    last = _last(error.__traceback__)
    lookup = type(os.environ).__getitem__.__code__
    return str(error.args[0]) if last is not None and last.tb_frame.f_code is lookup else None


def _last(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _place(trace: TracebackType | None) -> str:
    """The last line of the user's own code that was being run: what lies in the current folder."""
    here = os.path.join(os.getcwd(), "")
    place = ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(here) and "site-packages" not in path:
            place = f" ({path.removeprefix(here)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _no_such(module: str) -> WrongUse:
    return WrongUse(
        f"there is no module {module!r} in {os.getcwd()} or among the installed packages: "
        "run the command in the folder that holds it"
    )


def _inboxes_of(module: ModuleType) -> str:
    from hookledger.inbox import Inbox

    names = [name for name, value in vars(module).items() if isinstance(value, Inbox)]
    if not names:
        return f"; make one there: inbox = Inbox(stripe(secrets=...)), and write {module.__name__}:inbox"
    return f"; write {' or '.join(f'{module.__name__}:{name}' for name in names)}"


def _is_dotted_name(text: str) -> bool:
    return bool(text) and all(part.isidentifier() for part in text.split("."))


def _base(path: str | None) -> str:
    return os.path.basename(path or "?")


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
