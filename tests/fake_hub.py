"""A hub of one model on a loopback address: enough of its HTTP interface for `huggingface_hub` to download from it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0" * 39 + "1"


@contextmanager
def fake_hub(model: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Serve the files of a model; yields the address for `HF_ENDPOINT`."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(send_body=False)

        def do_GET(self) -> None:
            self._answer(send_body=True)

        def _answer(self, *, send_body: bool) -> None:
            path = self.path.split("?")[0]
            name = path.rpartition(f"/resolve/{COMMIT}/")[2]
            if path.startswith(f"/api/models/{model}/tree/"):
                tree = [
                    {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for name, content in files.items()
                ]
                body = json.dumps(tree).encode()
            elif path.startswith(f"/api/models/{model}"):
                listed = [{"rfilename": name} for name in files]
                body = json.dumps({"id": model, "modelId": model, "sha": COMMIT, "siblings": listed}).encode()
            elif path.startswith(f"/{model}/resolve/") and name in files:
                body = files[name]
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.end_headers()
            if send_body:
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
