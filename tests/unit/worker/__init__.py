"""The pure parts of the worker."""
