"""`rigctl site --serve` over real HTTP on the loopback address."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from rigctl.cli.app import main
from rigctl.errors import RigctlError
from rigctl.metrics import Endpoint
from rigctl.site.serve import server_for
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
"""As Prometheus asks."""


class Asked:
    """A served site, and how it answers."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, accept: str = "*/*", method: str = "GET") -> tuple[int, str, str]:
        """Status, content type and body of a path that is sent as it stands."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_accept_encoding=True)
        connection.putheader("Accept", accept)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode("utf-8")
        connection.close()
        return answer.status, answer.headers["Content-Type"] or "", body


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, the site over them, and beside it what is nobody's business."""
    folder = tmp_path_factory.mktemp("served")
    build_run(folder / "runs")
    assert main(["site", "--runs", str(folder / "runs"), "--output", str(folder / "site")]) == 0
    (folder / "secret.txt").write_text("hunter2", encoding="utf-8")
    return folder


@contextmanager
def served(folder: Path, runs: Path) -> Iterator[Asked]:
    with server_for(folder, 0, {"/metrics": Endpoint(runs).answer}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Asked(server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def site(place: Path) -> Iterator[Asked]:
    with served(place / "site", place / "runs") as asked:
        yield asked


def test_pages_are_served(site: Asked) -> None:
    for path in ("/", "/index.html"):
        status, kind, body = site.get(path)
        assert (status, kind) == (200, "text/html")
        assert "rigs/rig2.html" in body
    status, _, body = site.get("/rigs/rig2.html")
    assert status == 200
    assert "settled at 83" in body
    assert site.get("/style.css")[1] == "text/css"


def test_what_is_not_there_is_not_found(site: Asked) -> None:
    assert [site.get(path)[0] for path in ("/rigs/rig9.html", "/metrics/", "/nothing")] == [404, 404, 404]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/rigs/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//../secret.txt",
        "/./../secret.txt", "/rigs/%2e%2e/%2e%2e/secret.txt", "/..\\secret.txt",
    ],
)  # fmt: skip
def test_nothing_outside_the_site_is_served(site: Asked, path: str) -> None:
    status, _, body = site.get(path)
    assert status == 404
    assert "hunter2" not in body


def test_no_folder_is_listed(site: Asked) -> None:
    for path in ("/rigs/", "/runs/"):
        status, _, body = site.get(path)
        assert status == 404
        assert "rig1.html" not in body
    assert site.get("/checks/")[0] == 200, "it has a page of its own"


def test_only_this_machine_is_answered(place: Path) -> None:
    with server_for(place / "site", 0, {}) as server:
        assert server.server_address[0] == "127.0.0.1"
        with pytest.raises(OSError, match="in use"):
            server_for(place / "site", server.server_address[1], {})


@pytest.mark.parametrize(
    ("accept", "kind", "read"),
    [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8", read_text),
        ("", "text/plain; version=0.0.4; charset=utf-8", read_text),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8", read_openmetrics),
    ],
)
def test_metrics_in_the_form_that_is_asked_for(site: Asked, accept: str, kind: str, read) -> None:
    status, said, body = site.get("/metrics", accept)
    assert (status, said.partition("; escaping")[0]) == (200, kind)
    verdicts = [one for family in read(body) for one in family.samples if one.name == "rigctl_rig_verdict"]
    assert {one.labels["rig"]: one.labels["verdict"] for one in verdicts if one.value} == {
        "rig1": "blind", "rig2": "fail",
    }  # fmt: skip
    assert body.endswith("# EOF\n") is (accept == OPENMETRICS)
    assert site.get("/metrics?x=1", accept, "HEAD") == (200, said, "")


def test_a_new_run_is_there_at_the_next_scrape(tmp_path: Path) -> None:
    build_run(tmp_path)
    with served(tmp_path, tmp_path) as asked:
        assert 'rig="rig3"' not in asked.get("/metrics")[2]
        build_run(tmp_path, unreached=True)
        assert 'rigctl_rig_verdict{rig="rig3",verdict="error"} 1.0' in asked.get("/metrics")[2]


def test_what_cannot_be_answered_is_no_answer(place: Path) -> None:
    def refuse(_accept: str) -> tuple[str, bytes]:
        raise RigctlError("the index is damaged", "delete it")

    with server_for(place / "site", 0, {"/metrics": refuse}) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        status, _, body = Asked(server.server_address[1]).get("/metrics")
        thread.join()
    assert (status, body) == (500, "error: the index is damaged\nhint: delete it\n")


def test_the_command_serves_until_it_is_interrupted(place: Path) -> None:
    words = ["site", "--runs", str(place / "runs"), "--output", str(place / "site"), "--serve", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rigctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    with process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/ .* http://127\.0\.0\.1:\1/metrics", process.stderr.readline())
        assert found is not None
        asked = Asked(int(found[1]))
        assert asked.get("/")[0] == asked.get("/metrics")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", asked.port)) != 0


def test_a_port_that_is_taken_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ["site", "--runs", str(place / "runs"), "--output", str(place / "site"), "--serve", "--port", port]
        assert main(words) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err
