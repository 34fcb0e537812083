"""`hookledger verify` as a process: standard input, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import Project, assert_told_in_one_sentence

# The vector of the documentation: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
SECRET = "It's a Secret to Everybody"
HEADERS = (
    "POST /webhooks/github HTTP/1.1\r\n"
    "X-GitHub-Event: push\r\n"
    "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17\r\n\r\n"
)
BODY = b"Hello, World!"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with a captured request."""
    project = Project(tmp_path)
    project.write("headers.txt", HEADERS)
    project.write("body", BODY)
    return project


def test_verified(project: Project) -> None:
    done = project.run("verify", "github", "--headers", "headers.txt", "--body", "body", "--secret", SECRET)
    assert (done.returncode, done.stdout, done.stderr) == (0, "verified: the request verifies\n", "")


def test_refused_with_the_body_on_standard_input(project: Project) -> None:
    common = ("verify", "github", "--headers", "headers.txt", "--body", "-", "--secret-env", "GITHUB_SECRET")
    done = project.run(*common, stdin=BODY, env={"GITHUB_SECRET": SECRET})
    assert done.returncode == 0
    done = project.run(*common, stdin=BODY + b"\n", env={"GITHUB_SECRET": SECRET})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "refused: the signature is that of another form of the body: a line end was added\n"


def test_wrong_use(project: Project) -> None:
    done = project.run("verify", "github", "--headers", "nowhere.txt", "--body", "body", "--secret", SECRET)
    assert_told_in_one_sentence(done, 2, "nowhere.txt", "cannot be read")
    done = project.run("verify", "githob", "--headers", "headers.txt", "--body", "body", "--secret", SECRET)
    assert_told_in_one_sentence(done, 2, "did you mean 'github'?")
    assert_told_in_one_sentence(project.run("verify", "github", "--body", "body"), 2, "--headers")
