"""Runs the worker inside the web process, for deployments that want one process only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.inbox import Inbox
from hookledger.worker import Worker

log = logging.getLogger(__name__)
