# SPDX-License-Identifier: Apache-2.0
"""`hz exporter`: GET /metrics answers with all processes that Hakozuna serves, as they are at that moment.

One look at a time, however many ask: whoever comes meanwhile gets the same answer.
"""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hakozuna_observe import find, openmetrics
from hakozuna_observe.process import MISUSE, UnseenError, shortened

_FRESH = 0.2  # seconds for which an answer serves others, too


class _Answers:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch = find.Watch()
        self._answer, self._until = b"", 0.0

    def get(self) -> bytes:
        with self._lock:
            if time.monotonic() >= self._until:
                self._answer = openmetrics.render(self._watch.look()).encode()
                self._until = time.monotonic() + _FRESH
            return self._answer


def _handler(answers: _Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._send(200, openmetrics.CONTENT_TYPE, answers.get())
            elif path == "/":
                self._send(200, "text/plain; charset=utf-8", b"metrics: /metrics\n")
            else:
                self._send(404, "text/plain; charset=utf-8", b"only /metrics is here\n")

        def _send(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, form: str, *values: object) -> None:
            """Scrapes are no news."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


def serve(listen: str) -> int:
    """Until SIGTERM or Ctrl-C. `listen` is ADDRESS:PORT; port 0 is any that is free, and told."""
    address, _, port = listen.rpartition(":")
    if not address or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise UnseenError(f"'{shortened(listen)}' is not ADDRESS:PORT", MISUSE)
    host = address.removeprefix("[").removesuffix("]")
    try:
        server = (_Server6 if ":" in host else _Server)((host, int(port)), _handler(_Answers()))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no such name"
        raise UnseenError(f"cannot listen at {shortened(listen)}: {why or error}", 125) from None
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"hz: http://{address}:{server.server_address[1]}/metrics", flush=True)
    with server:
        server.serve_forever()
    return 0
