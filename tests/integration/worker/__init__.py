"""The worker on a real database, in all ways in which it runs handlers."""
