"""Roles: none needs to be a superuser, and who works need not be who migrates (D13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import URL, Engine, make_url, text
from sqlalchemy.exc import ProgrammingError

from hookledger import migrate
from hookledger.errors import SetupError
from hookledger.ledger.ready import open_ready
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Buried, Copy, NewEffect, NewEvent, NewFailure, NewRequest, NewState
from hookledger.retry import RetryPolicy
from tests.migrations.golden import outside_schema

MakeEngine = Callable[[str | URL], Engine]
MakeRole = Callable[[], URL]
AT_ONCE = RetryPolicy(first_delay=0, longest_delay=0)
FORBIDDEN = [
    "UPDATE {}.effects SET outcome = 'ignored'",
    "DELETE FROM {}.effects",
    "UPDATE {}.deliveries SET source = 'x'",
    "DELETE FROM {}.deliveries",
    "UPDATE {}.payloads SET body = ''",
    "DELETE FROM {}.payloads",
    "DELETE FROM {}.failures",
    "DELETE FROM {}.redeliveries",
    "TRUNCATE {}.pending",
    "DELETE FROM {}.schema_version",
    "CREATE TABLE {}.mine (id integer)",
]


def execute(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.fixture
def owner(empty_engine: Engine, make_role: MakeRole, make_engine: MakeEngine) -> Engine:
    """Logged in as a role that owns the schema My-Hooks and may do nothing else, not even in `public`."""
    url = make_role()
    execute(
        empty_engine,
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        f"REVOKE ALL ON DATABASE {empty_engine.url.database} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {empty_engine.url.database} TO PUBLIC",
        f'CREATE SCHEMA "My-Hooks" AUTHORIZATION {url.username}',
    )
    return make_engine(url)


@pytest.fixture
def worker(owner: Engine, make_role: MakeRole, make_engine: MakeEngine) -> Engine:
    """Logged in as a role that has no right at all, after the owner has migrated."""
    migrate.upgrade(owner, schema="My-Hooks")
    return make_engine(make_role())


def live(engine: Engine, schema: str) -> list[str]:
    """Send two deliveries through all that a receiver and a worker do; the second dies and is revived. Returns the
    events that have an outcome then."""
    repository = Repository.of(schema)
    events = [
        NewEvent(1, "shop", f"event {n}", "order.paid", f"order {n}", "{1}", 0, b"digest", None) for n in range(2)
    ]
    with engine.begin() as connection:
        assert set(repository.record(connection, [NewRequest("[]", b"{}")], events)) == {0, 1}
        repository.record_again(connection, [Copy("shop", "event 0", b"other", "[]", b"[]")])
    for attempt in (1, 2):
        with engine.begin() as connection:
            claimed = repository.claim(connection, 10, AT_ONCE)
        with engine.begin() as connection:
            repository.hold(connection, [(row.id, row.attempts) for row in claimed])
            for row in claimed:
                state = ("save_order", row.source, row.resource or "")
                if row.event_id == "event 1" and attempt == 1:
                    repository.write_failures(connection, [NewFailure(row.id, 1, "save_order", "no", "f")])
                    repository.bury(connection, [Buried(row.id, 1, "failed", "no", "f")])
                    continue
                repository.look_up(connection, [(row.source, row.event_id)])
                repository.insert_states(connection, [state])
                place = repository.lock_states(connection, [state]).places[state]
                repository.save_states(connection, [NewState(*state, "{1}", row.id, False, True, "{}", place)])
                repository.save_states(connection, [NewState(*state, "{1}", row.id, False, True, "{}")])
                effect = NewEffect(row.source, row.event_id, "save_order", row.id, "applied", "{1}")
                repository.settle(connection, [effect], [row.id])
        with engine.begin() as connection:
            repository.record_again(connection, [Copy("shop", "event 1", b"digest", "[]", b"{}")])
    with engine.connect() as connection:
        return [*connection.execute(text(f'SELECT event_id FROM "{schema}".effects ORDER BY 1')).scalars()]


def test_b060_b061_a_role_that_owns_one_schema_migrates_up_and_down(owner: Engine) -> None:
    for _ in range(2):
        migrate.upgrade(owner, schema="My-Hooks")
    migrate.check(owner, "My-Hooks")
    open_ready(owner, "My-Hooks")
    with owner.connect() as connection:
        assert outside_schema(connection, "My-Hooks") == []
    migrate.downgrade(owner, schema="My-Hooks", revision="base")
    migrate.upgrade(owner, schema="My-Hooks")
    migrate.check(owner, "My-Hooks")


def test_b060_a_role_with_create_on_the_database_makes_its_schema(
    empty_engine: Engine, make_role: MakeRole, make_engine: MakeEngine
) -> None:
    url = make_role()
    execute(
        empty_engine,
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        f"GRANT CREATE ON DATABASE {empty_engine.url.database} TO {url.username}",
    )
    engine = make_engine(url)
    migrate.upgrade(engine, schema="hooks")
    open_ready(engine, "hooks")
    assert live(engine, "hooks") == ["event 0", "event 1"]
    migrate.downgrade(engine, schema="hooks", revision="base")


def test_b061_a_role_that_may_not_create_the_schema_is_told_what_to_run(owner: Engine, empty_engine: Engine) -> None:
    with pytest.raises(SetupError, match='CREATE SCHEMA "Other Hooks" AUTHORIZATION') as told:
        migrate.upgrade(owner, schema="Other Hooks")
    _, _, statement = str(told.value).partition(" run ")
    execute(empty_engine, statement)
    migrate.upgrade(owner, schema="Other Hooks")


def test_a_role_that_does_not_own_the_tables_may_not_migrate(worker: Engine, owner: Engine) -> None:
    with pytest.raises(SetupError, match="as the owner"):
        migrate.upgrade(worker, schema="My-Hooks")
    with pytest.raises(SetupError, match="as the owner"):
        migrate.current(worker, "My-Hooks")
    execute(owner, migrate.grants("My-Hooks", worker.url.username or ""))
    migrate.upgrade(worker, schema="My-Hooks")  # nothing is left to do, which a role may find out
    with pytest.raises(SetupError, match="as the owner"):
        migrate.downgrade(worker, schema="My-Hooks", revision="base")
    migrate.check(worker, "My-Hooks")


def test_b060_b061_with_the_grants_a_role_can_do_all_the_work_and_not_change_what_is_recorded(
    worker: Engine, owner: Engine
) -> None:
    role = worker.url.username or ""
    with pytest.raises(SetupError, match="lacks USAGE on the schema") as told:
        open_ready(worker, "My-Hooks")
    assert f"`hookledger db grants {role} --schema My-Hooks`" in str(told.value)
    execute(owner, migrate.grants("My-Hooks", role))
    open_ready(worker, "My-Hooks")
    assert live(worker, "My-Hooks") == ["event 0", "event 1"]
    for statement in FORBIDDEN:
        with pytest.raises(ProgrammingError, match="permission denied"):
            execute(worker, statement.format('"My-Hooks"'))


@pytest.mark.parametrize(
    ("taken", "told"),
    [
        ('INSERT ON "My-Hooks".effects', 'lacks INSERT on "My-Hooks".effects:'),
        ('UPDATE, DELETE ON "My-Hooks".pending', 'lacks UPDATE, DELETE on "My-Hooks".pending:'),
        ('ALL ON "My-Hooks".schema_version', 'lacks SELECT on "My-Hooks".schema_version:'),
        ('USAGE ON SEQUENCE "My-Hooks".payloads_id_seq', 'lacks USAGE on "My-Hooks".payloads_id_seq:'),
        ('ALL ON ALL TABLES IN SCHEMA "My-Hooks"', 'SELECT, INSERT on "My-Hooks".redeliveries'),
    ],
)
def test_b061_a_missing_grant_is_named(worker: Engine, owner: Engine, taken: str, told: str) -> None:
    role = worker.url.username or ""
    execute(owner, migrate.grants("My-Hooks", role), f"REVOKE {taken} FROM {role}")
    with pytest.raises(SetupError) as raised:
        open_ready(worker, "My-Hooks")
    assert told in str(raised.value)
    assert "db grants" in str(raised.value)


def test_grants_quote_names_that_need_it(empty_engine: Engine, make_engine: MakeEngine) -> None:
    schema, role = 'a "Schema"', f'Röle "{empty_engine.url.database}"'
    migrate.upgrade(empty_engine, schema=schema)
    quoted = '"' + role.replace('"', '""') + '"'
    execute(empty_engine, f"CREATE ROLE {quoted} LOGIN PASSWORD 'p'")
    try:
        with empty_engine.begin() as connection:
            connection.connection.dbapi_connection.execute(migrate.grants(schema, role))  # type: ignore[union-attr]
        open_ready(make_engine(make_url(empty_engine.url).set(username=role, password="p")), schema)
    finally:
        execute(empty_engine, f"DROP OWNED BY {quoted}", f"DROP ROLE {quoted}")
