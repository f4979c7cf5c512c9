"""Asking a model: a real server on loopback that fails in many ways, kills half-way, and models that are no models."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.loopback import Reply, Server, refused, said, serving

from surgeval.qa import open_replies

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick, Surgeval

PATIENCE = 120.0  # seconds, for a loaded machine


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


def write_pair(folder: Path, count: int, videos: int = 4, format: str = "number") -> Path:
    """Questions `question N?` whose answer is N."""
    folder.mkdir(exist_ok=True)
    requests = [
        {"qID": f"q{n}", "videoID": f"v{n % videos}", "start_time": 0, "end_time": 1, "procedure_type": "x",
         "question": f"question {n}?"} for n in range(count)
    ]  # fmt: skip
    references = [{"qID": f"q{n}", "primary": "3a", "format": format, "answer": f"{n}"} for n in range(count)]
    (folder / "requests.json").write_text(json.dumps(requests))
    (folder / "references.json").write_text(json.dumps(references))
    return folder


def responses(folder: Path) -> dict[str, str]:
    return {row["qID"]: row["content"] for row in json.loads((folder / "responses.json").read_text())}


def test_a_server_that_fails_in_every_way_still_gives_every_answer(
    quick: Quick, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.001)  # of the waits between two tries
    failures = [refused(500), refused(429, {"Retry-After": "0"}), None, (200, "{broken", {}), (200, "{}", {})]
    server.script = lambda number, count: failures[number % 5] if count == 1 else said(str(number))
    write_pair(tmp_path / "D", 40)
    code, out, err = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["counts"] == {"ok": 40}
    assert found["scores"]["flat_accuracy"] == 1
    assert responses(tmp_path / "run") == {f"q{n}": str(n) for n in range(40)}
    assert set(server.asked.values()) == {2}
    results = pl.read_csv(tmp_path / "run" / "tables" / "results.csv")
    assert results["correctness"].all()
    again, out, _ = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run")
    assert again == 0
    assert "2 were there already" in out
    assert set(server.asked.values()) == {2}


def test_a_failed_question_is_no_wrong_answer_and_retry_asks_only_it(
    quick: Quick, server: Server, tmp_path: Path
) -> None:
    server.script = lambda number, count: refused(404) if number % 10 == 3 else said(f"<think>hm</think> {number}")
    write_pair(tmp_path / "D", 40)
    command = ("run", "focus", "--data", "D", "--model", server.model, "--out", "run")
    code, out, _ = quick(*command)
    assert code == 1
    assert "not scored: 4 questions without an answer yet" in out
    assert "HTTP 404" in out
    assert not (tmp_path / "run" / "tables").exists()
    assert set(responses(tmp_path / "run")) == {f"q{n}" for n in range(40) if n % 10 != 3}
    cases = pl.read_parquet(tmp_path / "run" / "cases.parquet")
    failed = cases.filter(pl.col("status") == "model_error")
    assert (failed.height, failed["content"].null_count()) == (4, 4)
    server.asked.clear()
    server.script = lambda number, count: said(str(number))
    assert quick(*command)[0] == 1  # resuming is not retrying
    assert not server.asked
    code, out, _ = quick(*command, "--retry")
    assert (code, server.asked) == (0, Counter((3, 13, 23, 33)))
    assert re.search(r"flat accuracy +1\.000", out)


def test_a_dead_server_is_given_up_and_every_question_listed(quick: Quick, server: Server, tmp_path: Path) -> None:
    server.script = lambda number, count: refused(401)
    write_pair(tmp_path / "D", 70)
    code, out, _ = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run", "--json")
    found = json.loads(out)
    assert (code, found["counts"], found["scores"]) == (1, {"model_error": 70}, None)
    assert 20 <= sum(server.asked.values()) < 70
    assert responses(tmp_path / "run") == {}


def test_a_server_of_web_pages_is_given_up_before_every_question_was_tried(
    quick: Quick, server: Server, tmp_path: Path
) -> None:
    server.script = lambda number, count: (200, "<html>Sign in</html>", {"Content-Type": "text/html"})
    write_pair(tmp_path / "D", 70)
    code, out, _ = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run")
    assert code == 1 and "a body that is not JSON (<html>Sign in</html>)" in out
    assert 3 <= sum(server.asked.values()) <= 12  # eight at a time


def test_a_server_that_wants_an_hour_stops_the_run_and_the_same_command_resumes_it(
    quick: Quick, server: Server, tmp_path: Path
) -> None:
    def busy(number: int, count: int) -> Reply:
        return said(str(number)) if number < 40 else refused(429, {"Retry-After": "3600"})

    server.script = busy
    write_pair(tmp_path / "D", 70, videos=1)
    command = ("run", "focus", "--data", "D", "--model", server.model, "--out", "run")
    code, _, err = quick(*command)
    assert code == 2
    assert f"vlm at {server.url}: HTTP 429 (sorry); the server asks to wait 60 minutes (Retry-After)" in err
    answered = {number for number in server.asked if number < 40}
    server.asked.clear()
    server.script = lambda number, count: said(str(number))
    code, out, _ = quick(*command)
    assert (code, answered & set(server.asked)) == (0, set())
    assert re.search(r"flat accuracy +1\.000", out)


def test_what_is_probably_wrong_is_said_before_the_score_and_the_servers_name_of_the_model_is_stored(
    quick: Quick, server: Server, tmp_path: Path
) -> None:
    def named(number: int, count: int) -> Reply:
        judged = server.bodies[-1]["model"] == "judge"
        body = json.loads(said("CORRECT" if judged else f"clip {number}")[1])
        return 200, json.dumps(body | {"model": "judge" if judged else "tiny-0.5b"}), {}

    server.script = named
    write_pair(tmp_path / "D", 12, format="open_ended")
    judge = f"openai:judge@{server.url}"
    command = ("run", "focus", "--data", "D", "--model", server.model, "--judge", judge, "--out", "run",
               "--concurrency", "1")  # fmt: skip
    (code, first, _), (again, second, _) = quick(*command), quick(*command)
    assert (code, again) == (0, 0)
    for text in ("12 replies came from the model 'tiny-0.5b' instead of 'vlm'",
                 f"the judge {judge} gave the verdict correct to all 12 answers"):  # fmt: skip
        assert 0 <= first.index(text) < first.index("flat accuracy")
    assert "stored by an earlier run" not in first
    reused = f"12 of 12 verdicts of the judge {judge} were stored by an earlier run"
    assert 0 <= second.index(reused) < second.index("flat accuracy")
    code, out, _ = quick("score", "focus", "--data", "D", "--responses", "run/responses.json", "--out", "run",
                         "--judge", judge, "--json")  # fmt: skip
    found = json.loads(out)
    assert (code, found["answered_by"]) == (0, {"tiny-0.5b": 12})
    assert any(text.startswith(reused) for text in found["warnings"])


@pytest.mark.parametrize("reply", [said(None), said("", "length"), said("<think>so long", "length")])
def test_a_reply_without_an_answer_is_a_failure(quick: Quick, server: Server, tmp_path: Path, reply: Reply) -> None:
    server.script = lambda number, count: reply
    write_pair(tmp_path / "D", 2)
    code, out, _ = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run", "--json")
    assert (code, json.loads(out)["counts"]) == (1, {"model_error": 2})


def test_text_that_no_file_can_hold_is_kept_as_its_escape(quick: Quick, server: Server, tmp_path: Path) -> None:
    server.script = lambda number, count: said("a\x00\x1b[2J\ud800\u202e")
    write_pair(tmp_path / "D", 1)
    code, out, _ = quick("run", "focus", "--data", "D", "--model", server.model, "--out", "run")
    assert code == 0
    assert "\x1b" not in out
    assert responses(tmp_path / "run") == {"q0": "a\x00\x1b[2J\\ud800\u202e"}


def test_killed_half_way_nothing_stored_is_asked_again(server: Server, tmp_path: Path) -> None:
    def slow(number: int, count: int) -> Reply:
        time.sleep(0.03)
        return said(str(number))

    server.script = slow
    write_pair(tmp_path / "D", 120)
    command = [sys.executable, "-m", "surgeval", "run", "focus", "--data", "D", "--model", server.model, "--out", "run"]
    process = subprocess.Popen([*command, "--concurrency", "4"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while len(server.asked) < 50 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    time.sleep(0.1)  # what was in flight has reached the server
    with open_replies(tmp_path / "run", "answer") as replies:
        stored = {int(qid[1:]) for qid in replies}
    asked = Counter(server.asked)
    assert 30 < len(stored) < 120
    assert set(asked.values()) == {1}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert all(server.asked[number] == 1 for number in stored)
    twice = {number for number, count in server.asked.items() if count > 1}
    assert twice == set(asked) - stored
    assert len(twice) <= 4
    assert responses(tmp_path / "run") == {f"q{n}": str(n) for n in range(120)}


def test_a_phantom_s_frames_are_sent_and_its_references_are_not(
    quick: Quick, server: Server, small_phantom: Path, tmp_path: Path
) -> None:
    server.script = lambda number, count: said("no")
    command = ("run", "focus", "--data", small_phantom, "--model", server.model, "--frames", 3, "--limit", 12)
    code, out, _ = quick(*command, "--out", "run")
    assert code == 0
    assert "--judge SPEC --out run" in out  # judged formats and no judge: the command that scores
    references = json.loads((tmp_path / "run" / "references.json").read_text())
    requests = json.loads((tmp_path / "run" / "requests.json").read_text())
    shown = {body["messages"][1]["content"][-1]["text"]: body["messages"][1]["content"][:-1] for body in server.bodies}
    assert len(shown) == 12
    for request, reference in zip(requests, references, strict=True):
        (parts,) = (parts for text, parts in shown.items() if request["question"] in text)
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        assert len(urls) == (1 if request["start_time"] == request["end_time"] else 3)
        assert all(url.startswith("data:image/jpeg;base64,/9j/") for url in urls)
        if reference["format"] == "open_ended":
            assert reference["answer"] not in json.dumps(shown)
    server.bodies.clear()
    assert quick(*command, "--track", "frame", "--judge", "exact", "--out", "frame")[0] == 0
    assert {len(body["messages"][1]["content"]) for body in server.bodies} == {3}
    assert (tmp_path / "frame" / "tables" / "results.csv").is_file()


def test_models_that_are_no_models(quick: Quick, small_phantom: Path, tmp_path: Path) -> None:
    flat = {}
    for model in ("oracle", "prior", "random:5"):
        folder = model.replace(":", "")
        code, out, err = quick(
            "run", "focus", "--data", small_phantom, "--model", model, "--judge", "exact", "--out", folder, "--json"
        )
        assert (code, err) == (0, "")
        found = json.loads(out)
        flat[model] = found["scores"]["flat_accuracy"]
        assert found["scores"]["counts"]["invalid"] == 0
    assert flat["oracle"] == 1
    assert flat["random:5"] < 0.5
    code, out, _ = quick(
        "run", "focus", "--data", small_phantom, "--model", "replay:prior/responses.json", "--judge", "exact",
        "--out", "replayed", "--json",
    )  # fmt: skip
    assert (code, json.loads(out)["scores"]["flat_accuracy"]) == (0, flat["prior"])
    assert quick("rank", "oracle", "prior", "random5", "--out", "ranking", "--json")[0] == 0


def test_without_images_a_model_fails_and_a_reference_row_is_not_applicable(
    quick: Quick, server: Server, tmp_path: Path
) -> None:
    server.script = lambda number, count: said(str(number))
    write_pair(tmp_path / "D", 40, videos=8)
    asked = ("run", "focus", "--data", "D", "--json", "--out")
    blind = ("fails", "It is itself a blind baseline: it was not given any images.")
    row = ("not applicable", "Reference row: it repeats the reference answers.")
    for folder, model, found in (("oracle", "oracle", row), ("chat", server.model, blind)):  # no media
        verdict = json.loads(quick(*asked, folder, "--model", model)[1])["scores"]["verdict"]
        assert (verdict["grade"], verdict["sentence"]) == found
    again = json.loads(quick("report", "oracle", "--out", "again", "--json")[1])
    assert (tmp_path / again["report"]).read_bytes() == (tmp_path / "oracle" / "report.html").read_bytes()
    files = [part for name in ("requests", "references", "responses") for part in (f"--{name}", f"oracle/{name}.json")]
    for folder, grade in (("oracle", "not applicable"), ("elsewhere", "passes")):  # of a file it is unknown
        scored = json.loads(quick("score", "focus", *files, "--out", folder, "--json")[1])
        assert scored["verdict"]["grade"] == grade
    replayed = quick(*asked[:-2], "--model", "replay:oracle/responses.json", "--out", "replayed")[1]
    assert "40 answered; made elsewhere" in replayed and "passes: It answers better" in replayed
    assert json.loads((tmp_path / "replayed" / "run.json").read_text())["config"]["media"] == "unknown"


def test_a_replayed_file_with_gaps_is_scored_with_them(quick: Quick, tmp_path: Path) -> None:
    write_pair(tmp_path / "D", 3)
    (tmp_path / "r.json").write_text('[{"qID": "q0", "content": "0"}, {"qID": "q1", "content": "1"}]')
    code, out, _ = quick("run", "focus", "--data", "D", "--model", "replay:r.json", "--out", "run", "--json")
    found = json.loads(out)
    assert (code, found["counts"]) == (1, {"missing": 1, "ok": 2})
    assert found["scores"]["counts"]["missing"] == 1


def test_other_settings_need_another_folder(quick: Quick, tmp_path: Path) -> None:
    write_pair(tmp_path / "D", 3)
    command = ("run", "focus", "--data", "D", "--out", "run", "--model")
    assert quick(*command, "oracle")[0] == 0
    code, _, err = quick(*command, "random:1")
    assert code == 2
    assert "holds a run with other settings (model" in err


def test_bad_input_is_one_sentence(quick: Quick, tmp_path: Path) -> None:
    write_pair(tmp_path / "D", 2)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "requests.json").write_text('[{"qID": "q0"')
    (tmp_path / "broken" / "references.json").write_text("[]")
    (tmp_path / "films").mkdir()
    (tmp_path / "twice.json").write_text('[{"qID": "a", "content": "1"}, {"qID": "a", "content": "2"}]')
    (tmp_path / "null.json").write_text('[{"qID": "a\\u001b", "content": null}]')
    chat = "openai:vlm@http://127.0.0.1:9/v1"
    for arguments, words in (
        (("--data", "D", "--model", "gpt"), "Unknown model 'gpt'. Use one of openai:MODEL@URL"),
        (("--data", "D", "--model", "openai:vlm"), "The model 'openai:vlm' has no valid server address"),
        (("--data", "D", "--model", "openai:vlm@http://u:p@h/v1"), "The address of the model at h contains a password"),
        (("--data", "D", "--model", "random:x"), "'random:x' is not a whole number"),
        (("--data", "D", "--model", "replay:absent.json"), "absent.json: found no such file"),
        (("--data", "D", "--model", "replay:twice.json"), "question 'a': qID: this question has a second response"),
        (("--data", "D", "--model", "replay:null.json"), "content: expected text, got nothing"),
        (("--data", "D", "--model", "hf:D"), "D: no config.json"),
        (("--data", "D", "--model", "oracle", "--judge", "gpt"), "Unknown judge 'gpt'"),
        (("--data", "D", "--model", "oracle", "--judge", "table:absent.json"), "absent.json: no such file"),
        (("--data", "D", "--model", "oracle", "--judge", "manual", "--json"), "--judge manual asks on the screen"),
        (("--data", "D", "--model", chat, "--media", "films"), "films: video v0: there is no video file"),
        (("--data", "D", "--model", chat, "--media", "absent"), "The media folder absent does not exist."),
        (("--data", "broken", "--model", "oracle"), "requests.json"),
        (("--data", "films", "--model", "oracle"), "films: found no dataset of a known format"),
        (("--data", "hub:../../x", "--model", "oracle"), "expected hub:OWNER/NAME"),
        (("--requests", "D/requests.json", "--model", "oracle"), "a requests file with its references file"),
        (("--data", "D", "--model", "oracle", "--retry"), "run: there is no run to retry"),
    ):
        code, out, err = quick("run", "focus", *arguments, "--out", "run")
        assert (code, out) == (2, ""), (arguments, err)
        assert words in err
        assert len(err.splitlines()) == 1
        assert "\x1b" not in err
    assert not (tmp_path / "run").exists()


def test_text_alone_is_said_and_recorded(quick: Quick, server: Server, tmp_path: Path) -> None:
    write_pair(tmp_path / "D", 2)
    pair = ("--requests", "D/requests.json", "--references", "D/references.json")
    code, out, _ = quick("run", "focus", *pair, "--model", server.model, "--out", "run")
    assert code == 0
    assert "warning: no media: the model was asked in text alone" in out
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["media"] == "none"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a dataset's download needs."""

    files: dict[str, bytes]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        commit = "0" * 40
        path = self.path.partition("?")[0]
        name = path.rpartition(f"/resolve/{commit}/")[2]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{name.encode().hex()}"'}
        if path.startswith("/api/datasets/owner/focus/revision/"):
            data = json.dumps({"id": "owner/focus", "sha": commit, "siblings": [{"rfilename": f} for f in self.files]})
        elif path.startswith("/api/datasets/owner/focus/tree/"):
            data = json.dumps([{"type": "file", "path": f, "size": len(b), "oid": "a"} for f, b in self.files.items()])
        elif name in self.files:
            data = ""
        else:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = data.encode() or self.files[name]
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def rows(folder: Path, name: str, numbers: range) -> bytes:
    table = pl.DataFrame([
        {"id": f"q{n}", "video": f"v{n % 2}", "timestamp_start": "00:00:01", "timestamp_end": "00:00:02",
         "procedure_type": "x", "question": f"question {n}?", "primary_capability": "3a", "secondary_capabilities": [],
         "answer_format": "number", "answer": str(n), "clinical_relevance": False} for n in numbers
    ])  # fmt: skip
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(folder / name)
    return (folder / name).read_bytes()


def test_published_rows_come_from_a_folder_or_from_the_hub(
    quick: Quick, installed: Surgeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    files = {
        name: rows(tmp_path / "local", name, numbers)
        for name, numbers in (
            ("data/segment/test-0.parquet", range(3)),
            ("data/segment/test-1.parquet", range(3, 5)),
            ("data/segment/train.parquet", range(5, 9)),
            ("data/frame/test.parquet", range(3)),
        )
    }
    code, _, err = quick("run", "focus", "--data", "local", "--model", "oracle", "--out", "both")
    assert code == 2
    assert "found rows in several folders (frame, segment)" in err
    code, out, _ = quick("run", "focus", "--data", "local/data/segment", "--model", "oracle", "--out", "local-run")
    assert code == 0
    assert "split test: 5 of 9 questions" in out
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Hub,), {"files": files})) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_address[1]}")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        # A process of its own: the hub client reads its address when it is imported.
        command = ("run", "focus", "--model", "oracle", "--json")
        done = installed(*command, "--data", "hub:owner/focus:segment", "--out", "hub-run")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["counts"] == {"ok": 5}
        absent = installed(*command, "--data", "hub:owner/absent", "--out", "no-run")
        hub.shutdown()
    assert absent.returncode == 2
    assert "dataset 'hub:owner/absent': no such folder, and the hub could not provide it: " in absent.stderr
    assert responses(tmp_path / "hub-run") == responses(tmp_path / "local-run") == {f"q{n}": str(n) for n in range(5)}
