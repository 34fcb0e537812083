"""Engines: the URLs that are taken, and the settings by which a dead server is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import URL, Engine, make_url, text
from sqlalchemy.exc import ProgrammingError, TimeoutError

from hookledger import engine as engines
from hookledger.engine import database_url, describe
from hookledger.errors import DatabaseUnreachable, SetupError

MakeEngine = Callable[[str | URL], Engine]
PASSWORD = "50%/@:?#&= 'ü\"\\%s%(x)s%40"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_three_spellings_of_a_url_are_taken(scheme: str) -> None:
    url = database_url(f" {scheme}://app:p%25w@db.example:5433/hooks\n")
    assert url == make_url("postgresql+psycopg://app:p%25w@db.example:5433/hooks")
    assert url.password == "p%w"
    assert database_url(make_url(f"{scheme}://app@db/hooks")).drivername == "postgresql+psycopg"


def test_the_environment_is_read_if_nothing_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://db/from_environment")
    assert database_url(None).database == "from_environment"
    assert database_url("postgres://db/given").database == "given"
    monkeypatch.setenv("DATABASE_URL", "  ")
    with pytest.raises(SetupError, match="set DATABASE_URL"):
        database_url(None)
    monkeypatch.delenv("DATABASE_URL")
    with pytest.raises(SetupError, match="set DATABASE_URL"):
        database_url("")


@pytest.mark.parametrize("given", ["postgresql+asyncpg", "postgresql+psycopg2", "mysql", "sqlite"])
def test_another_driver_or_database_is_refused_with_what_to_write(given: str) -> None:
    with pytest.raises(SetupError, match=r"write postgresql://user:password@host/database") as raised:
        database_url(f"{given}://app:top-secret@db/hooks")
    assert given in str(raised.value)
    assert "top-secret" not in str(raised.value)


@pytest.mark.parametrize(
    "given", ["top-secret", "postgresql://app:top-secret@db:port/hooks", "postgresql//app:top-secret@db/hooks", "://"]
)
def test_a_url_that_cannot_be_read_is_not_repeated(given: str) -> None:
    with pytest.raises(SetupError, match="cannot be read") as raised:
        database_url(given)
    assert "top-secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("after", ["cr3tpw@db:5432/hooks", "cr3tpw/x@db/hooks", "cr3tpw?x=y@db/hooks", "cr3tpw@@db"])
def test_a_password_with_an_at_sign_is_refused_and_no_part_of_it_told(after: str) -> None:
    with pytest.raises(SetupError, match="percent-encode it as %40") as raised:
        database_url(f"postgresql://bob:s3@{after}")
    assert "s3" not in str(raised.value)
    assert "cr3tpw" not in str(raised.value)


def test_nor_of_one_that_somebody_else_has_read() -> None:
    with pytest.raises(SetupError, match="percent-encode it as %40"):
        database_url(make_url("postgresql://bob:s3@cr3tpw@db/hooks"))


def test_an_at_sign_in_the_name_of_the_user_is_no_doubt() -> None:
    url = database_url("postgresql://bob@corp:s3%40cr3t@db/hooks")
    assert (url.username, url.password, url.host) == ("bob@corp", "s3@cr3t", "db")
    assert database_url("postgresql://bob@corp@db/hooks").host == "db"


@pytest.mark.parametrize(
    ("url", "described"),
    [
        ("postgresql://app:top-secret@db.example:5433/hooks", "database 'hooks' at db.example:5433"),
        ("postgresql://app:top-secret@/hooks?host=/run/postgresql", "database 'hooks' at /run/postgresql"),
        ("postgresql:///hooks?host=a&host=b&password=top-secret", "database 'hooks' at a,b"),
        ("postgresql://app@db", "database 'app' at db"),
        ("postgresql://db", "the default database at db"),
        ("postgresql:///hooks", "database 'hooks' at the local socket"),
    ],
)
def test_a_database_is_described_without_the_password(
    url: str, described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert describe(make_url(url)) == described


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_password_of_special_characters_reaches_the_server(
    own_server_role: Callable[[str], URL], asynchronous: bool
) -> None:
    url = own_server_role(PASSWORD).render_as_string(hide_password=False)
    question = text("SELECT current_user")

    def ask() -> str:
        engine = engines.create(url)
        try:
            with engine.connect() as connection:
                return str(connection.execute(question).scalar())
        finally:
            engine.dispose()

    async def ask_asynchronously() -> str:
        engine = engines.create(url, asynchronous=True)
        try:
            async with engine.connect() as connection:
                return str((await connection.execute(question)).scalar())
        finally:
            await engine.dispose()

    assert (asyncio.run(ask_asynchronously()) if asynchronous else ask()) == make_url(url).username


def test_a_wrong_password_is_told_without_it(own_server_role: Callable[[str], URL], make_engine: MakeEngine) -> None:
    engine = make_engine(own_server_role("right").set(password="top-secret"))
    with pytest.raises(DatabaseUnreachable, match="password authentication failed") as raised:
        engines.connect(engine)
    assert "top-secret" not in str(raised.value)


def test_a_connection_has_the_settings_that_notice_a_dead_server(empty_engine: Engine) -> None:
    with empty_engine.connect() as connection:
        settings = connection.connection.dbapi_connection.info.get_parameters()  # type: ignore[union-attr]
    assert settings["application_name"] == "hookledger"
    for name, value in engines.CONNECTION_SETTINGS.items():
        if name != "keepalives":  # on is the default, which is not shown
            assert settings[name] == str(value)


def test_settings_in_the_url_win(empty_database_url: str, make_engine: MakeEngine) -> None:
    query = {"connect_timeout": "17", "application_name": "mine", "prepare_threshold": "none"}
    with make_engine(make_url(empty_database_url).update_query_dict(query)).connect() as connection:
        driver = connection.connection.dbapi_connection
        assert driver is not None
        assert driver.info.get_parameters()["connect_timeout"] == "17"
        assert driver.info.get_parameters()["application_name"] == "mine"
        assert driver.prepare_threshold is None


def test_a_prepare_threshold_that_is_no_number_is_refused() -> None:
    assert engines.create("postgresql:///hooks?prepare_threshold=7")
    with pytest.raises(SetupError, match="prepare_threshold"):
        engines.create("postgresql:///hooks?prepare_threshold=never")


def test_the_pool_has_the_size_that_was_asked_for(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "POOL_TIMEOUT", 0.01)
    engine = engines.create(empty_database_url, pool_size=2)
    try:
        with engine.connect(), engine.connect(), pytest.raises(TimeoutError):
            engine.connect()
    finally:
        engine.dispose()


def test_connections_that_a_restart_closed_are_made_anew(empty_engine: Engine) -> None:
    with empty_engine.connect() as first, empty_engine.connect() as second:
        process = first.connection.dbapi_connection.info.backend_pid  # type: ignore[union-attr]
        second.execute(text("SELECT pg_terminate_backend(:process, 60000)"), {"process": process})
        second.rollback()
    for _ in range(3):
        with empty_engine.connect() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1


def test_database_errors_do_not_show_the_values(empty_engine: Engine) -> None:
    with empty_engine.connect() as connection, pytest.raises(ProgrammingError) as raised:
        connection.execute(text("SELECT * FROM missing WHERE body = :body"), {"body": "top-secret"})
    assert "top-secret" not in str(raised.value)
