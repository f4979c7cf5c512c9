"""A run with a server that means ill: the key is nowhere, and one bad reply costs one question."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.e2e.conftest import Quick
from tests.e2e.test_run_focus import responses, server, write_pair
from tests.loopback import Server, said
from tests.unit.models.wire import Wire

__all__ = ["server"]  # a fixture

KEY = "sk-Live/4f9a+77b1"
QUERY = "q-s3cret/9"


class Echo(BaseHTTPRequestHandler):
    """Repeats all that it was sent in a reply, in an error, or in what is no JSON."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        token = str(self.headers["Authorization"]).removeprefix("Bearer ")
        echo = f"{token} {quote(token, safe='')} {base64.b64encode(token.encode()).decode()} {self.path}"
        number = sum(body) % 3
        if "INCORRECT" in body.decode():  # a judge is asked
            echo = f"CORRECT\n{echo}" if number else echo
            data, code = said(echo)[1], 200
        elif number == 1:
            data, code = json.dumps({"error": {"message": echo}}), 401
        elif number == 2:
            data, code = echo, 404
        else:
            data, code = said(echo)[1], 200
        self.send_response(code, token)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Set-Cookie", token)
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def run(folder: Path, *args: str) -> str:
    """All that the command prints."""
    environment = {**os.environ, "SURGEVAL_API_KEY": f"{KEY}\n"}
    command = [sys.executable, "-m", "surgeval", *args]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def test_no_file_and_no_line_of_a_run_holds_a_secret_that_the_server_echoed(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*args: str) -> str:
        code, out, errors = quick(*args)
        assert code in (0, 1, 2), errors
        return out + errors

    monkeypatch.setenv("SURGEVAL_API_KEY", f"{KEY}\n")
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    spec = f"openai:vlm@http://127.0.0.1:{listener.server_address[1]}/v1?key={quote(QUERY, safe='')}"
    write_pair(tmp_path / "D", 9, format="open_ended")
    asking = ("run", "focus", "--data", "D", "--model", spec, "--out", "run")
    try:
        printed = run(tmp_path, *asking) + again(*asking, "--retry", "--json")
        files = [item for name in ("requests", "references", "responses") for item in (f"--{name}", f"run/{name}.json")]
        assert json.loads((tmp_path / "run" / "responses.json").read_text())
        printed += again("score", "focus", *files, "--judge", spec, "--price", f"{spec}=1,2", "--out", "scores")
        printed += again("score", "focus", *files, "--judge", spec, "--out", "scores", "--json")
        printed += again(*asking, "--model", spec.replace(":vlm", ":"))  # refused
    finally:
        listener.shutdown()
        listener.server_close()
    written = {path: path.read_bytes() for folder in ("run", "scores") for path in (tmp_path / folder).rglob("*")
               if path.is_file()}  # fmt: skip
    assert {"run.json", "cases.parquet", "report.html", "results.csv"} <= {path.name for path in written}
    assert {"answer", "verdict"} <= {path.name.partition("-")[0] for path in written if path.parent.name == "answers"}
    assert b"[hidden]" in written[tmp_path / "run" / "responses.json"]
    assert "…" in printed
    for secret in (KEY, QUERY):
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret[:10]):
            assert form not in printed, form
            assert not [path for path, data in written.items() if form.encode() in data], form


BAD: list[tuple[int, Any]] = [
    (200, {"choices": [{"message": {"content": "3"}}], "usage": {"prompt_tokens": 2**63}}),
    (200, {"choices": [{"message": {"content": "3"}}], "usage": {"prompt_tokens": -(2**80)}}),
    (200, {"choices": [{"message": {"content": "3"}}], "usage": {"completion_tokens": 1e300}}),
    (400, {"error": {"param": ["max_tokens"], "code": "unsupported_parameter"}}),
    (400, {"error": ["x"] * 50_000}),
    (200, {"choices": [{"message": {"content": "3"}, "finish_reason": "content_filter"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), BAD)
def test_one_bad_reply_of_thirty_two_costs_at_most_its_question(
    quick: Quick, server: Server, tmp_path: Path, status: int, body: object
) -> None:
    server.script = lambda number, count: (status, json.dumps(body), {}) if number == 3 else said(str(number))
    write_pair(tmp_path / "D", 32)
    code, out, err = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run", "--json")
    assert err == ""
    counts = json.loads(out)["counts"]
    if "usage" in str(body):
        assert (code, counts) == (0, {"ok": 32})
    else:
        assert (code, counts) == (1, {"model_error": 1, "ok": 31})
        assert "q3" not in responses(tmp_path / "run")
    assert len(out) < 20_000


def test_a_content_filter_never_makes_the_server_count_as_down(quick: Quick, server: Server, tmp_path: Path) -> None:
    server.script = lambda number, count: said("no", "content_filter") if number < 25 else said(str(number))
    write_pair(tmp_path / "D", 32, videos=1)
    quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run", "--concurrency", "1")
    assert set(responses(tmp_path / "run")) == {f"q{n}" for n in range(25, 32)}


def test_a_server_that_drips_its_headers_costs_its_time_outs(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.001)  # of the waits between two tries
    write_pair(tmp_path / "D", 2)
    with Wire() as wire:

        def drip(connection: Any) -> None:
            while not wire.over.wait(0.1):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

        wire.script = drip
        began = time.monotonic()
        code, out, _ = quick(
            "run", "focus", "--data", "D", "--model", f"openai:m@{wire.url}", "--out", "run", "--timeout", "0.5"
        )
    assert code == 1
    assert "no reply in 0.5 s (5 tries)" in out
    assert time.monotonic() - began < 60
