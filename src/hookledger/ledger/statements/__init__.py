"""Every statement of the receiver and the worker, each built by a function named after what it does.

They are compiled to text once a schema and run through `Connection.exec_driver_sql`: looking up a compiled
form at every batch cost more than some of the statements themselves. All names are qualified with the
schema, so that any search_path and any pooler will do, and every statement touches one schema only.
"""

from hookledger.ledger.statements.compiled import Statements, claim_statement, statements

__all__ = ["Statements", "claim_statement", "statements"]
