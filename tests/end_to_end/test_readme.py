"""What README.md shows runs as it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text

from tests.end_to_end.command import Project
from tests.processes import wait_until

SECRET = {"STRIPE_WEBHOOK_SECRET": "whsec_test"}


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def files(page: Path) -> list[tuple[str, str]]:
    """The blocks of Python that say which file they are, with its name."""
    return [(block.partition("\n")[0].removeprefix("# "), block) for block in blocks(page, "python")]


def run_python(project: Project, *arguments: str, env: Mapping[str, str]) -> None:
    # Whatever copy of hookledger the tests import is the one that is documented.
    path = os.pathsep.join([str(project.folder), *sys.path])
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project.folder, env={**os.environ, "PYTHONPATH": path, **env}, check=False
    )
    assert done.returncode == 0


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """A project in a folder of its own, with the URL as a user writes it."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    return Project(tmp_path, url)


def test_the_inbox_its_tables_and_the_event(project: Project, project_root: Path, engine: Engine) -> None:
    readme = project_root / "README.md"
    for name, block in files(readme):
        if name != "app.py":
            project.write(name, block)
    (event,) = re.findall(r"<<'END'\n(.*?)^END$", readme.read_text(), re.MULTILINE | re.DOTALL)
    project.write("event.json", event)
    assert project.database_url is not None
    run_python(project, "tables.py", env={"DATABASE_URL": project.database_url})
    with project.start(
        "dev", "hooks:inbox", "--port", "0", "--database-url", project.database_url, env=SECRET
    ) as child:
        url = child.wait_for_output("receiver ").split()[-1].rpartition("/")[0]
        child.wait_for_output("ready;")
        sent = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", url, env=SECRET)
        assert sent.returncode == 0, sent.stderr

        def customers() -> list[tuple[str, str]]:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text("SELECT id, email FROM customers"))]

        wait_until(customers)
        assert customers() == [("cus_1", "somebody@example.com")]
        deleted = event.replace("customer.created", "customer.deleted").replace("evt_1", "evt_2")
        project.write("event.json", deleted)
        assert project.run("send", "hooks:inbox", "stripe", "event.json", "--url", url, env=SECRET).returncode == 0
        wait_until(lambda: not customers())


def test_each_application_can_be_imported(project: Project, project_root: Path) -> None:
    shown = files(project_root / "README.md")
    applications = [block for name, block in shown if name == "app.py"]
    assert len(applications) == 2
    project.write("hooks.py", dict(shown)["hooks.py"])
    assert project.database_url is not None
    for block in applications:
        project.write("app.py", block)
        run_python(project, "-B", "-c", "import app; app.app", env={**SECRET, "DATABASE_URL": project.database_url})


def test_the_sources_that_are_shown(project: Project, project_root: Path) -> None:
    secrets = ("STRIPE_WEBHOOK_SECRET", "SHOPIFY_SECRET", "SHOPIFY_OLD_SECRET", "SQUARE_KEY", "ACME_SECRET")
    env = {name: f"{name.lower()}-value" for name in (*secrets, "ACME_OLD_SECRET")}
    for number, block in enumerate(blocks(project_root / "docs" / "sources.md", "python")):
        project.write(f"shown{number}.py", block)
        run_python(project, f"shown{number}.py", env={**env, **SECRET})
