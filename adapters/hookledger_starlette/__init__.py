"""Receive webhooks in Starlette, FastAPI, or any ASGI application."""

from hookledger_starlette.receiver import Receiver

__all__ = ["Receiver"]
