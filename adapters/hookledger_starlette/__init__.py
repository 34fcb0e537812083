"""Receive webhooks in Starlette, FastAPI, or any ASGI application."""

from hookledger_starlette.lifespan import worker_lifespan
from hookledger_starlette.receiver import Receiver

__all__ = ["Receiver", "worker_lifespan"]
