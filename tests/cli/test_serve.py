"""`krein serve`: its answers over HTTP, and its limits."""

import asyncio
import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import krein as library
from krein.cli.columns import Details
from krein.cli.options import ModelOptions
from krein.cli.predictor import Predictor
from krein.cli.service import Limits, Service
from krein.io import open_source
from krein.measures.sequences import SmithWaterman

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from krein.cli import web  # noqa: E402 - needs the packages above
from krein.cli.web import make_app  # noqa: E402

# some requests contain objects far shorter than the training objects, which gives a warning
pytestmark = pytest.mark.filterwarnings("ignore::krein.data.ForeignObjectWarning")

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)
PATTERN = ("--label-pattern", r"family=(\w+)")
JSON = {"Content-Type": "application/json"}


@contextlib.contextmanager
def served(path, limits=None, service=None, **options):
    """Serve a model on a free port, in a thread; yield the port."""
    app = make_app(service or Service(ModelOptions(str(path)), limits or Limits()), **options)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # outside the main thread uvicorn leaves signals alone
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True
        )
        thread.start()
        until = time.monotonic() + 60
        while not server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(60)


def call(port, method, path, body=None, headers=JSON):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def ask(port, asked):
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    status, content, _ = call(port, "POST", "/predict", body)
    return status, json.loads(content)


@pytest.fixture
def model(fit):
    fit("families.fasta", *PATTERN, "-o", "model.krein")
    return "model.krein"


@pytest.fixture
def two_looks(files):
    """A model with a second look."""
    chunk = open_source("families.fasta", label_pattern=r"family=(\w+)").read()
    clf = library.KreinClassifier("smith-waterman", n_landmarks=10, neighbours=7, random_state=0)
    clf.fit(chunk.objects, chunk.labels).save("two.krein")
    return "two.krein"


def test_answers_match_the_library(files, model):
    chunk = open_source("new.fasta").read()
    clf = library.load(model)
    P = clf.predict_proba(chunk.objects)
    with served(model) as port:
        status, found = ask(port, {"objects": chunk.objects, "names": chunk.names})
        assert status == 200
        one = ask(port, {"object": chunk.objects[3]})[1]
    rows = found["predictions"]
    assert [row["name"] for row in rows] == chunk.names
    assert [row["label"] for row in rows] == clf.predict(chunk.objects).tolist()
    assert {row["status"] for row in rows} == {"known"}
    given = [[row["probabilities"][c] for c in clf.classes_.tolist()] for row in rows]
    np.testing.assert_allclose(given, P, rtol=1e-12)
    assert one["label"] == rows[3]["label"]
    assert one["probability"] == pytest.approx(rows[3]["probability"], rel=1e-12)


def test_an_unreadable_object_does_not_affect_the_others(files, model):
    good = open_source("new.fasta").read().objects[:40]
    with served(model) as port:
        status, found = ask(port, {"objects": [*good, "MK1", *good, ""]})
    assert status == 200
    rows = found["predictions"]
    bad = [i for i, row in enumerate(rows) if row["status"] == "unreadable"]
    assert bad == [len(good), 2 * len(good) + 1]
    assert "contains '1' at position 3" in rows[bad[0]]["reason"]
    assert rows[bad[0]]["label"] is None
    assert rows[bad[0]]["probabilities"] is None


@pytest.mark.parametrize("measure", ["manhattan", "msm", "precomputed-distance"])
def test_an_extreme_object_does_not_affect_the_others(measure, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) + np.repeat([0, 3], 20)[:, None]
    if measure == "precomputed-distance":
        X = np.abs(X[:, None] - X[None]).sum(axis=2)
    clf = library.KreinClassifier(measure, random_state=0)
    path = str(tmp_path / "m.krein")
    clf.fit(list(X) if measure == "msm" else X, np.repeat(["low", "high"], 20)).save(path)
    extreme = [1e300] * X.shape[1]
    with served(path) as port:
        alone = ask(port, {"object": X[0].tolist(), "names": ["1"]})[1]
        status, found = ask(port, {"objects": [extreme, X[0].tolist()]})
    assert status == 200
    first, second = found["predictions"]
    assert first["status"] == "unreadable"
    assert first["label"] is None
    for name in ("probabilities", "runner_up_probability", "probability"):
        assert second.pop(name) == pytest.approx(alone.pop(name), rel=1e-12)
    assert second == alone


@pytest.mark.parametrize("measure", ["rbf", "dtw"])
def test_numbers(tmp_path, measure):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) + np.repeat([0, 3], 20)[:, None]
    clf = library.IKFD(measure, random_state=0).fit(
        X if measure == "rbf" else list(X), np.repeat(["low", "high"], 20)
    )
    path = str(tmp_path / "m.krein")
    clf.save(path)
    with served(path) as port:
        status, found = ask(port, {"objects": X[:3].tolist()})
        assert status == 200
        expected = clf.predict(X[:3] if measure == "rbf" else list(X[:3])).tolist()
        assert [row["label"] for row in found["predictions"]] == expected
        wrong = ["text", [1, None], [[1], [2, 3]], [float("nan")], 5, [], [10**400]]
        if measure == "rbf":
            wrong += [[1.0, 2.0], [[1.0] * 6]]
        status, found = ask(port, {"objects": [*wrong, X[0].tolist()]})
        assert status == 200
        *bad, good = found["predictions"]
        assert {row["status"] for row in bad} == {"unreadable"}
        assert bad[0]["reason"] == "object 0: is not a list of finite numbers"
        assert good["label"] == expected[0]
        if measure == "rbf":
            assert bad[-1]["reason"] == "object 8: has 6 numbers; 6 are expected"


def test_text_that_the_measure_stores_as_bytes(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list(letters), 80)) for letters in ("abcd", "wxyz") * 20]
    clf = library.KreinClassifier("compression", random_state=0).fit(texts, ["early", "late"] * 20)
    clf.save("m.krein")
    new = [texts[0][10:] + texts[2][:10], texts[1][10:] + texts[3][:10]]
    (tmp_path / "new.csv").write_text("text\n" + "\n".join(new) + "\n")
    code, out, err = run("predict", "m.krein", "new.csv", "--format", "jsonl")
    assert code == 0, err
    expected = [json.loads(line) for line in out.splitlines()]
    with served("m.krein") as port:
        assert json.loads(call(port, "GET", "/model")[1])["takes"] == "text"
        status, found = ask(port, {"objects": new})
        assert status == 200
        assert ask(port, {"object": [1.0, 2.0]})[1]["status"] == "unreadable"
    shared = ("label", "probability", "novelty", "status")
    for row, same in zip(found["predictions"], expected, strict=True):
        assert [row[field] for field in shared] == [same[field] for field in shared]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"[1]", 400),
        (b"{}", 400),
        (b'{"object": "MK", "objects": ["MK"]}', 400),
        (b'{"objects": []}', 400),
        (b'{"objects": "MK"}', 400),
        (b'{"objects": ["MK"], "names": []}', 400),
        (b'{"object": "MK", "other": 1}', 400),
        (json.dumps({"objects": ["MK"] * 6}).encode(), 413),
        (json.dumps({"object": "M" * 300_000}).encode(), 413),
    ],
)
def test_invalid_requests_are_refused(files, model, body, status):
    with served(model, Limits(bytes=200_000, objects=5)) as port:
        found, answer = ask(port, body)
        assert (found, set(answer)) == (status, {"error"})
        assert ask(port, {"object": "MKVLAGHWKL"})[0] == 200  # the service keeps running


def test_only_json_and_local_host_names_are_accepted(files, model):
    body = b'{"object": "MKVLAGHWKL"}'
    with served(model) as port:
        refused = [
            (415, call(port, "POST", "/predict", body, {})),
            (415, call(port, "POST", "/predict", body, {"Content-Type": "text/plain"})),
            (400, call(port, "GET", "/model", headers={"Host": "evil.example"})),
            (400, call(port, "GET", "/model", headers={"Host": "[::1]evil.example:80"})),
            (405, call(port, "GET", "/predict")),
            (404, call(port, "GET", "/nowhere")),
        ]
        for expected, (status, content, headers) in refused:
            assert status == expected
            assert set(json.loads(content)) == {"error"}  # all errors have one form
            assert headers["Content-Type"] == "application/json"
        for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}"):
            assert call(port, "GET", "/model", headers={"Host": host})[0] == 200
    with served(model, hosts=None) as port:
        assert call(port, "GET", "/model", headers={"Host": "models.example"})[0] == 200


def test_a_fasta_file_is_answered_like_a_list(files, model):
    """`curl --data-binary @x.fasta` says that the file is a form, which a page could send too."""
    fasta = b"\n>one about it\nMKVLAG\nHWKL\n> two\r\nMKVLAGHWKV\r\n>\nMKV LAGHWKV\n>bad\n"
    asked = {
        "names": ["one", "two", "2", "bad"],
        "objects": ["MKVLAGHWKL", "MKVLAGHWKV", "MKVLAGHWKV", ""],
    }
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with served(model, Limits(objects=4)) as port:
        _, expected = ask(port, asked)
        for headers in (form, {}, {"Content-Type": "text/x-fasta"}):
            status, content, _ = call(port, "POST", "/predict", fasta, headers)
            assert (status, json.loads(content)) == (200, expected)
        for sender in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert call(port, "POST", "/predict", fasta, form | sender)[0] == 415
        assert call(port, "POST", "/predict", fasta + b">more\nMKV", form)[0] == 413
        assert call(port, "POST", "/predict", b">\xff\nMKV", form)[0] == 400


def wait_for_an_answer(port):
    """Ask until a request is answered in time, which may take some of them on a busy machine."""
    until = time.monotonic() + 60
    while (status := ask(port, {"object": "MKVLAGHWKL"})[0]) != 200:
        assert time.monotonic() < until, status


def test_a_slow_request_times_out(files, model, monkeypatch):
    go_on, begun = threading.Event(), []
    plain = Predictor.rows_of

    def slow(self, chunk, until=None):
        begun.append(len(chunk))
        go_on.wait(60)
        return plain(self, chunk, until)

    with served(model, Limits(seconds=0.5), threads=1) as port:
        monkeypatch.setattr(Predictor, "rows_of", slow)
        # the first occupies the only thread, the second waits for it
        for _ in range(2):
            status, answer = ask(port, {"objects": ["MKVLAGHWKL"] * 100})
            assert status == 503
            assert "took too long" in answer["error"]
        assert call(port, "GET", "/health")[0] == 200
        go_on.set()
        wait_for_an_answer(port)
    assert begun[0] == 32
    assert set(begun[1:]) == {1}  # work on late requests stops


def slow_alignments(monkeypatch, seconds):
    """Let every comparison of a block of alignments wait, and return the list of their numbers."""
    begun, block = [], SmithWaterman.block

    def slow(self, A, B):
        begun.append(len(A) * len(B))
        time.sleep(seconds * len(A) * len(B))
        return block(self, A, B)

    monkeypatch.setattr(SmithWaterman, "block", slow)
    return begun


def test_work_stops_when_the_time_is_over(files, model, monkeypatch):
    with served(model, Limits(seconds=1.0), threads=1) as port:
        with monkeypatch.context() as slowly:
            begun = slow_alignments(slowly, 0.05)
            status, answer = ask(port, {"objects": ["MKVLAGHWKL"] * 30})
            assert (status, set(answer)) == (503, {"error"})
        # the only thread is free: otherwise, requests would wait for it more than two minutes
        wait_for_an_answer(port)
    assert sum(begun) < 30 * 20  # of a hundred comparisons for each object


def test_a_request_that_would_take_too_long_is_not_begun(files, model, monkeypatch):
    sequence = "MKVLAGHWKL" * 6
    with monkeypatch.context() as slowly:
        slow_alignments(slowly, 0.001)
        service = Service(ModelOptions(str(model)), Limits(seconds=1.0))
    costs = service.costs([sequence] * 200)
    assert costs == service.costs([sequence]) * 200
    assert costs[0] > 0
    service._rate = 0.01 / len(sequence), 10**9
    with served(model, service=service) as port:
        begun = slow_alignments(monkeypatch, 0)
        status, answer = ask(port, {"objects": [sequence] * 200})
        assert (status, begun) == (413, [])
        assert "would take about 2 s, and 1 s are allowed" in answer["error"]
        # an object of another kind is not compared, so its length does not count
        status, answer = ask(port, {"objects": [sequence, sequence * 1000]})
        assert status == 200
        assert [row["status"] for row in answer["predictions"]][1] == "novel"


def test_a_long_request_does_not_keep_others_waiting(files, model, monkeypatch):
    first, go_on, order = threading.Event(), threading.Event(), []
    plain = Predictor.rows_of

    def recorded(self, chunk, until=None):
        order.append(len(chunk))
        first.set()
        go_on.wait(60)
        return plain(self, chunk, until)

    with served(model, threads=1) as port:
        monkeypatch.setattr(Predictor, "rows_of", recorded)
        answers = []
        long = threading.Thread(
            target=lambda: answers.append(ask(port, {"objects": ["MKVLAGHWKL"] * 200}))
        )
        long.start()
        assert first.wait(60)
        short = threading.Thread(target=lambda: answers.append(ask(port, {"object": "MKVLAGHWKL"})))
        short.start()
        while b"requests_in_progress 2.0" not in call(port, "GET", "/metrics")[1]:
            time.sleep(0.01)
        go_on.set()
        long.join(60)
        short.join(60)
    assert [status for status, _ in answers] == [200, 200]
    assert "predictions" in answers[1][1]  # the short one is answered first
    assert 1 in order[1:3]


def test_too_many_requests_are_told_to_come_back(files, model, monkeypatch):
    go_on, plain = threading.Event(), Predictor.rows_of

    def slow(self, chunk, until=None):
        go_on.wait(60)
        return plain(self, chunk, until)

    with served(model, Limits(requests=2), threads=1) as port:
        monkeypatch.setattr(Predictor, "rows_of", slow)
        assert call(port, "GET", "/ready")[0] == 200
        statuses = []
        waiting = [
            threading.Thread(target=lambda: statuses.append(ask(port, {"object": "MKVLAGHWKL"})[0]))
            for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        while b"requests_in_progress 2.0" not in call(port, "GET", "/metrics")[1]:
            time.sleep(0.01)
        status, content, headers = call(port, "POST", "/predict", b'{"object": "MKVLAGHWKL"}')
        assert status == 503
        assert set(json.loads(content)) == {"error"}
        assert int(headers["Retry-After"]) >= 1
        assert call(port, "GET", "/ready")[0] == 503
        assert call(port, "GET", "/health")[0] == 200
        go_on.set()
        for thread in waiting:
            thread.join(60)
        assert statuses == [200, 200]
        assert call(port, "GET", "/ready")[0] == 200


def test_an_object_that_is_too_long_gets_a_row(files, model):
    with served(model, Limits(length=100)) as port:
        status, found = ask(port, {"objects": ["MKVLAGHWKL", "M" * 101, 5]})
    assert status == 200
    good, long, number = found["predictions"]
    assert good["status"] != "unreadable"
    assert long["reason"] == "object 1: has 101 letters; at most 100 are allowed"
    assert number["reason"] == "object 2: is not a string, but the model expects one"
    assert {long["status"], number["status"]} == {"unreadable"}


def test_metrics_and_the_access_log(files, model, capsys):
    parser = pytest.importorskip("prometheus_client.parser")
    with served(model, access_log=True) as port:
        ask(port, {"objects": ["MKVLAGHWKL", "M1"]})
        call(port, "GET", "/nowhere/\x1b[31m".replace("\x1b", "%1b"))
        call(port, "GET", "/health")
        status, text, headers = call(port, "GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    found = {
        (one.name, *sorted(one.labels.values())): one.value
        for family in parser.text_string_to_metric_families(text.decode())
        for one in family.samples
    }
    assert found["krein_requests_total", "/predict", "200"] == 1
    assert found["krein_requests_total", "404", "other"] == 1
    assert found["krein_request_seconds_count", "/predict"] == 1
    assert found["krein_objects_total", "unreadable"] == 1
    log = capsys.readouterr().out.splitlines()
    assert len(log) == 2  # probes are not logged
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ 127.0.0.1 POST /predict 200 [\d,]+ bytes [\d.]+ ms",
        log[0],
    )
    assert "/nowhere/\\x1b[31m 404" in log[1]


def test_thresholds_are_options(files, model):
    objects = open_source("new.fasta").read().objects[:3]
    details = Details(ambiguous_below=1.0)
    with served(model, service=Service(ModelOptions(str(model)), Limits(), details)) as port:
        found = ask(port, {"objects": objects})[1]["predictions"]
        assert {row["status"] for row in found} == {"ambiguous"}
        assert json.loads(call(port, "GET", "/model")[1])["ambiguous_below"] == 1.0


def test_the_command_stops_in_the_middle_of_a_request(files, model, environment):
    slow = (
        "import sys, time; from krein.cli import main; "
        "from krein.measures.sequences import SmithWaterman as S; from krein.cli import web; "
        "make = web.make_app; "
        "wait = lambda self, A, B: print('begun', flush=True) or time.sleep(600); "
        "web.make_app = lambda *a, **k: setattr(S, 'block', wait) or make(*a, **k); "
        f"sys.argv = ['krein', 'serve', {model!r}, '--port', '0', '--no-access-log']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=files,
    )  # fmt: skip
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(ask(port, {"object": "MKVLAGHWKL"}))
        )
        asking.start()
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        asking.join(60)
        assert answers == [(503, {"error": "the service is being stopped"})]
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_service_describes_itself(files, model):
    with served(model) as port:
        status, health, _ = call(port, "GET", "/health")
        assert (status, json.loads(health)) == (200, {"status": "ok"})
        about = json.loads(call(port, "GET", "/model")[1])
        assert about["classes"] == ["actin", "globin", "kinase"]
        assert about["model"] == "model.krein"
        assert about["takes"] == "text"
        document = json.loads(call(port, "GET", "/openapi.json")[1])
        assert document["openapi"].startswith("3.1")
        for path, methods in document["paths"].items():
            for method in methods:
                body = b'{"object": "MKVLAGHWKL"}' if method == "post" else None
                assert call(port, method.upper(), path, body)[0] == 200
        schemas = document["components"]["schemas"]
        answer = ask(port, {"object": "MKVLAGHWKL"})[1]
        assert set(answer) == set(schemas["Prediction"]["properties"])
        assert set(answer["evidence"][0]) == set(schemas["KnownObject"]["properties"])
        assert schemas["Object"] == {"type": "string"}
        assert schemas["ManyObjects"]["properties"]["objects"]["maxItems"] == 1000
        refs = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
        assert refs == set(schemas)


@pytest.mark.parametrize("number", ["1" + 400 * "0", "1e400", "NaN"])
def test_numbers_that_are_too_large_are_the_clients_errors(tmp_path, number):
    X = np.random.default_rng(0).normal(size=(20, 2))
    library.IKFD("elm").fit(X, np.arange(20) % 2).save(tmp_path / "m.krein")
    with served(str(tmp_path / "m.krein")) as port:
        for body in (f'{{"object": [1, {number}]}}', f'{{"objects": [[1, 2], [{number}, 2]]}}'):
            status, answer = ask(port, body.encode())
            row = answer["predictions"][1] if "predictions" in answer else answer
            assert (status, row["status"]) == (200, "unreadable")
            assert "finite numbers" in row["reason"]
        assert ask(port, {"object": [1, 2]})[0] == 200


def test_half_sent_headers_do_not_keep_a_connection(files, model, environment):
    command = [sys.executable, "-m", "krein", "serve", model, "--port", "0", "--max-seconds", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        cwd=files,
    )  # fmt: skip
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        half_sent = {}
        for start in (b"", b"POST /predict HT", whole + b"GET /"):
            half_sent[start] = socket.create_connection(("127.0.0.1", port), timeout=60)
            half_sent[start].sendall(start)
        used = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(2):  # whole requests can share a connection
            used.request("GET", "/health")
            response, kept = used.getresponse(), used.sock
            assert (response.status, response.read()) == (200, b'{"status":"ok"}')
            assert used.sock is kept is not None
        used.close()
        for start, connection in half_sent.items():
            with connection:
                received = b""
                while part := connection.recv(4096):  # until the service closes the connection
                    received += part
            assert received.count(b'{"status":"ok"}') == start.count(b"health")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_command_serves_until_it_is_stopped(files, model, environment):
    process = subprocess.Popen(
        [sys.executable, "-m", "krein", "serve", model, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=files,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        port = int(re.fullmatch(r"serving +http://127\.0\.0\.1:(\d+)\n", line)[1])
        assert ask(port, {"object": "MKVLAGHWKL"})[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_port_in_use_is_reported(files, model, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("serve", model, "--port", port)
    assert code == 1
    assert err.startswith(f"krein: error: cannot listen on 127.0.0.1, port {port}")


def test_the_evidence_matches_the_library(files, model):
    (sequence, *_) = open_source("new.fasta").read().objects
    with served(model) as port:
        found = ask(port, {"objects": [sequence, "M1"]})[1]["predictions"]
    near = library.load(model).explain([sequence])[0].nearest
    assert found[0]["evidence"] == [
        {"name": known.name, "label": known.label, "value": known.value} for known in near
    ]
    assert len(near) == 3
    assert found[1]["evidence"] is None


def test_the_comparisons_of_an_answer_are_counted(files, two_looks):
    clf = library.load(two_looks)
    objects = open_source("new.fasta").read().objects
    clf.assess(objects)
    expected = clf.last_comparisons_ / len(objects)
    assert len(clf.landmarks_) < expected
    with served(two_looks) as port:
        assert json.loads(call(port, "GET", "/model")[1])["comparisons_per_answer"] == expected


def test_given_values_take_no_comparisons(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)) + np.repeat([0, 3], 20)[:, None]
    clf = library.KreinClassifier("precomputed", random_state=0)
    clf.fit(X @ X.T, np.repeat(["low", "high"], 20)).save(tmp_path / "m.krein")
    with served(str(tmp_path / "m.krein")) as port:
        assert json.loads(call(port, "GET", "/model")[1])["comparisons_per_answer"] is None


def test_a_model_without_evidence_gives_none(files, run):
    run("fit", "families.fasta", *PATTERN, "--model", "ikfd", "--no-calibrate", "-o", "ikfd.krein")
    with served("ikfd.krein") as port:
        status, found = ask(port, {"object": "MKVLAMKVLA"})
    assert status == 200
    assert "evidence" not in found


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_the_page_in_a_browser(files, model, two_looks):
    sync_api = pytest.importorskip("playwright.sync_api")
    wrong = []
    hostile = "<img src=x onerror=alert(1)>"
    with served(model) as port, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.on("console", lambda m: wrong.append(m.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        home = f"http://127.0.0.1:{port}/"
        page.on("request", lambda r: None if r.url.startswith(home) else wrong.append(r.url))
        page.goto(home)
        page.get_by_text("KreinClassifier with 3 classes, measure smith-waterman").wait_for()
        chunk = open_source("new.fasta").read()
        expected = library.load(model).predict(chunk.objects).tolist()

        def answered(text):
            page.get_by_label("Object to classify").fill(text)
            with page.expect_response("**/predict"):
                page.get_by_role("button").click()
            page.locator("#answer h2").first.wait_for()
            return page.locator("#answer h2").all_inner_texts()

        assert answered(chunk.objects[0]) == [f"{expected[0]} known"]
        assert len(page.locator("#answer table:not(.evidence) tr").all()) == 3
        near = library.load(model).explain(chunk.objects[:1])[0].nearest
        shown = page.locator("#answer .evidence tr td:first-child").all_inner_texts()
        assert shown == [known.name for known in near]
        assert page.locator("#answer .number").first.inner_text().endswith(" %")
        fasta = (
            f">{chunk.names[1]} more\n{chunk.objects[1][:30]}\n{chunk.objects[1][30:]}\n>b\nM1\n"
        )
        assert answered(fasta) == ["2 objects", f"{chunk.names[1]} known", "b unreadable"]
        rows = page.locator("#answer .overview tbody tr").all()
        cells = [row.locator("td").all_inner_texts() for row in rows]
        assert cells[0][:2] == [chunk.names[1], expected[1]]
        assert cells[1] == ["b", "none", "", "unreadable"]
        assert answered(hostile) == ["Unreadable unreadable"]
        # a novel object is not headed by a class, and improbable classes are folded
        assert answered("ACGTTGCAGG" * 4) == ["None of the classes novel"]
        answered(chunk.objects[0])
        probable = library.load(model).predict_proba(chunk.objects[:1])[0] >= 0.0005
        assert page.locator("#answer > section > table.classes tr").count() == probable.sum()
        assert page.locator("#answer img").count() == 0
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400
        with served(two_looks) as another:
            home = f"http://127.0.0.1:{another}/"
            page.goto(home)
            page.get_by_text("smith-waterman, 17 comparisons per prediction").wait_for()
        browser.close()
    assert wrong == []


def test_the_command_serves_a_model_with_the_users_own_measure(files, run, environment):
    (files / "own.py").write_text(
        "def letters(a, b):\n    return float(len(set(a.lower()) ^ set(b.lower())))\n"
    )
    own = ["--measure", "own.py:letters"]
    fit = ["fit", "words.csv", "--labels", "language", "-o", "own.krein"]
    assert run(*fit, *own, "--measure-param", "kind=dissimilarity")[0] == 0
    (files / "new.txt").write_text("house\n")
    code, out, err = run("predict", "own.krein", "new.txt", *own, "--format", "jsonl")
    assert code == 0, err
    expected = json.loads(out)
    process = subprocess.Popen(
        [sys.executable, "-m", "krein", "serve", "own.krein", "--port", "0", *own],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=files,
    )  # fmt: skip
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        code, found = ask(port, {"object": "house"})
        assert code == 200
        assert found["label"] == expected["label"]
    finally:
        process.kill()
        process.communicate()
    code, _, err = run("serve", "own.krein", "--port", "0")
    assert code != 0
    assert "pass it with --measure FILE.py:FUNCTION" in err


def received_by(port, *parts, wait=0.0):
    """Send bytes, some seconds apart, and return the status and the body of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(wait)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, json.loads(response.read()), response.headers


@contextlib.contextmanager
def run_service(files, environment, *options):
    """Run the command; yield the process and the port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "krein", "serve", *options, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=files,
    )  # fmt: skip
    try:
        yield process, int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET\r\n\r\n"])
def test_what_is_not_http_is_answered_in_json(sent, files, model, environment):
    with run_service(files, environment, model) as (_, port):
        status, found, headers = received_by(port, sent)
    assert status == 400
    assert set(found) == {"error"}
    assert headers["Content-Type"] == "application/json"


@pytest.fixture
def hangups():
    """Hangups have their default effect on child processes, even if nohup started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
@pytest.mark.usefixtures("hangups")
def test_a_hangup_stops_the_service_as_a_termination_does(files, model, environment):
    with run_service(files, environment, model) as (process, port):
        assert ask(port, {"object": "MKVLAGHWKL"})[0] == 200
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 128 + signal.SIGHUP
        assert process.stderr.read() == "krein: stopped\n"


def test_any_loopback_address_is_local(files, model, environment, run):
    with run_service(files, environment, model, "--host", "127.0.0.2") as (_, port):
        for host, status in {"evil.example": 400, "127.0.0.2": 200, "localhost": 200}.items():
            connection = http.client.HTTPConnection("127.0.0.2", port, timeout=60)
            connection.request("GET", "/model", headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()
    code, _, err = run("serve", model, "--host", "")
    assert code == 2
    assert "--host '': name an address" in err


def test_slow_bodies_do_not_keep_others_waiting(files, model, monkeypatch):
    """As many as there may be requests; a body that arrives in parts is read."""
    monkeypatch.setattr(web, "BODY_SECONDS", 1.0)
    body = b'{"object": "MKVLAGHWKL"}'
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with served(model, Limits(requests=3, seconds=60.0)) as port:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(3)]
        for connection in slow:
            connection.sendall(head + b"Content-Length: 100000\r\n\r\n{")
        began = time.monotonic()
        while call(port, "GET", "/ready")[0] == 503 or time.monotonic() < began + 1:
            assert time.monotonic() < began + 30  # far less than a request may take
            time.sleep(0.05)
        for connection in slow:
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == 408
            assert "too slowly" in json.loads(response.read())["error"]
            assert connection.recv(1) == b""  # it is closed
            connection.close()
        monkeypatch.setattr(web, "BODY_SECONDS", 60.0)
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        status, found, _ = received_by(port, head + length, body[:5], body[5:], wait=0.1)
    assert status == 200
    assert found["label"] is not None


def test_the_log_says_why_the_service_failed(files, model, monkeypatch, capsys):
    with served(model) as port:
        monkeypatch.setattr(Service, "answer", lambda *args: 1 / 0)
        status, found = ask(port, {"object": "MKVLAGHWKL"})
    assert status == 500
    assert "its log says why" in found["error"]
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
