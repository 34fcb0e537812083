"""The revisions of hookledger's schema; run them with `hookledger.migrate`, `hookledger db` or `alembic`."""
