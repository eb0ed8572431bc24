"""Serving the site for a look, with what else is to be had at an address of its own."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Answer = Callable[[str], tuple[str, bytes]]
    """From the header `Accept` to content type and body; may raise RigctlError."""

ADDRESS = "127.0.0.1"
"""There is no login, so nobody else is let in; a web server before it may be asked to."""


def server_for(folder: Path, port: int, answers: Mapping[str, Answer]) -> ThreadingHTTPServer:
    """Return a server that is bound and has not begun to serve.

    Args:
        folder: The site.
        port: On the loopback address; 0 takes any free one.
        answers: What is no file, by its path.

    Raises:
        OSError: the port cannot be used.
    """
    server = ThreadingHTTPServer((ADDRESS, port), partial(_Handler, directory=str(folder), answers=answers))
    server.daemon_threads = True
    return server


class _Handler(SimpleHTTPRequestHandler):
    """Files of the site, and nothing that the site does not link to: no folder is listed."""

    def __init__(self, *args: Any, answers: Mapping[str, Answer], **known: Any) -> None:
        self._answers = answers
        super().__init__(*args, **known)

    def do_GET(self) -> None:
        if not self._answered(body=True):
            super().do_GET()

    def do_HEAD(self) -> None:
        if not self._answered(body=False):
            super().do_HEAD()

    def list_directory(self, path: Any) -> None:  # noqa: ARG002 - as http.server calls it
        """Refuse: what lies in a folder is nobody's business."""
        self.send_error(HTTPStatus.NOT_FOUND, "File not found")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server calls it
        """Say nothing: a scrape every few seconds would bury what else is said."""

    def _answered(self, *, body: bool) -> bool:
        answer = self._answers.get(self.path.partition("?")[0])
        if answer is None:
            return False
        try:
            content_type, data = answer(self.headers.get("Accept", ""))
            status = HTTPStatus.OK
        except RigctlError as error:
            content_type, status = "text/plain; charset=utf-8", HTTPStatus.INTERNAL_SERVER_ERROR
            data = f"error: {error.message}\nhint: {error.hint}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)
        return True
