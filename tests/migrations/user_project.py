"""A user's own Alembic project, in a folder, with tables of its own in the database that the ledger is in."""

from __future__ import annotations

from pathlib import Path

from tests.processes import Child

ENV = """
import os

from alembic import context
from models import metadata, options
from sqlalchemy import create_engine, pool

engine = create_engine(os.environ["DATABASE_URL"], poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, **options)
    with context.begin_transaction():
        context.run_migrations()
"""
MAKO = """
from alembic import op
import sqlalchemy as sa
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades}
def downgrade():
    ${downgrades}
"""
MODELS = """
import sqlalchemy as sa
import hookledger.migrate

metadata = sa.MetaData()
sa.Table("customers", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
{removed}sa.Table("deliveries", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
options = dict({options})
"""
REVISION = """
import sqlalchemy as sa
import hookledger.migrate
from alembic import context, op

revision = {revision!r}
down_revision = {after!r}

def upgrade():
{upgrade}

def downgrade():
    pass
"""
MAKE_TABLES = """
    op.create_table("customers", sa.Column("id", sa.BigInteger, primary_key=True))
    op.create_table("deliveries", sa.Column("id", sa.BigInteger, primary_key=True))
"""


class UserProject:
    """A project with the tables `customers` and `deliveries`, both made by its revision abc123.

    Args:
        folder: where to write it.
        database_url: the database it is for.
    """

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self._url = database_url
        self._versions = folder / "migrations" / "versions"
        self._versions.mkdir(parents=True)
        (folder / "migrations" / "env.py").write_text(ENV)
        (folder / "migrations" / "script.py.mako").write_text(MAKO)
        (folder / "alembic.ini").write_text("[alembic]\nscript_location = %(here)s/migrations\n")
        self.set_models()
        self.add_revision("abc123", None, MAKE_TABLES)

    def set_models(self, *, options: str = "", keep_deliveries: bool = True) -> None:
        """Write the project's models, and what its env.py tells Alembic, as arguments in Python."""
        removed = "" if keep_deliveries else "# "
        (self.folder / "models.py").write_text(MODELS.format(options=options, removed=removed))

    def add_revision(self, revision: str, after: str | None, upgrade: str) -> None:
        """Write a revision, its upgrade given as indented Python."""
        (self._versions / f"{revision}.py").write_text(REVISION.format(revision=revision, after=after, upgrade=upgrade))

    def alembic(self, *arguments: str, code: int = 0) -> str:
        """Run alembic in the folder, and return what it printed."""
        environment = {"DATABASE_URL": self._url, "PYTHONPATH": str(self.folder)}
        with Child("-m", "alembic", *arguments, env=environment, cwd=self.folder) as alembic:
            assert alembic.wait() == code, alembic.output
            return alembic.output

    def autogenerate(self) -> str:
        """The text of the revision that autogenerate proposes."""
        self.alembic("revision", "--autogenerate", "-m", "proposed", "--rev-id", "proposed")
        [path] = self._versions.glob("proposed*.py")
        return path.read_text()
