"""Migrations, engines, and what is told at start about a ledger."""
