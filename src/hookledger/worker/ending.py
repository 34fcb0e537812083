"""Which SQL would end the transaction that a handler was given (D6). Pure."""

from __future__ import annotations

import re
from functools import lru_cache

SAVEPOINT = "hookledger_handler"
"""How the names of the savepoints begin that are around what one handler does."""

LONGEST_REMEMBERED = 4096  # characters; handlers send the same few statements again and again

_SUSPECT = re.compile(r"\b(?:commit|end|abort|begin|start|prepare|rollback|release)\b", re.IGNORECASE)
_ENDS = re.compile(
    r"\s*(?:commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback"
    rf"(?!\s+(?:work\s+|transaction\s+)?to\b)|(?:rollback|release)\b.*\b{SAVEPOINT}\w*)\b",
    re.IGNORECASE | re.DOTALL,
)
_NOT_SQL = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<dollars>\$\w*\$).*?(?P=dollars)", re.DOTALL
)
_DEFINES = re.compile(r"\s*create\b", re.IGNORECASE)


def ending(sql: str) -> str | None:
    """The part of the SQL that ends the transaction, or takes our savepoint out of it; None if nothing does.

    What stands in comments and quotes is passed over, as is the definition of a function, whose body may have
    an END. https://www.postgresql.org/docs/current/sql-commands.html
    """
    return _remembered(sql) if len(sql) <= LONGEST_REMEMBERED else _found(sql)


def _found(sql: str) -> str | None:
    if _SUSPECT.search(sql) is None:
        return None
    parts = _NOT_SQL.sub(" ", sql).split(";")
    if _DEFINES.match(parts[0]):
        return None
    return next((" ".join(part.split())[:60] for part in parts if _ENDS.match(part)), None)


_remembered = lru_cache(maxsize=256)(_found)
