"""Letting in requests that were captured elsewhere."""

from hookledger.operate.importing.run import Imported, import_requests

__all__ = ["Imported", "import_requests"]
