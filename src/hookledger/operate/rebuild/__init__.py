"""Rebuild: run the stored deliveries of one handler once more, into a schema beside the live one, and compare.

Nothing live is touched: the handler's states go into a ledger of its own in the shadow schema, its own tables are found
there by the search path, and a transaction that wrote anywhere else is taken back.
"""

from hookledger.operate.rebuild.compare import Difference, differences
from hookledger.operate.rebuild.run import Rebuilt, rebuild
from hookledger.operate.rebuild.shadow import Shadow, prepare

__all__ = ["Difference", "Rebuilt", "Shadow", "differences", "prepare", "rebuild"]
