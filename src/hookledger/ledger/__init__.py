"""The ledger in PostgreSQL: its tables, its statements, and the functions that run them on a connection."""
