"""Production monitoring: latencies, violations, hours, workers, WSGI and ASGI."""

import asyncio
import multiprocessing
import os
import random
import threading
import time

import pytest

import sonde
from sonde._histogram import HOURS, HourFile, bucket_of, middle_of, read_hours
from sonde._requests import arrival


@pytest.fixture
def monitor(tmp_path):
    return sonde.requests(sla_s=0.05, directory=tmp_path / "requests")


def test_each_request_is_counted_and_violations_are_called_out(tmp_path):
    seen = []
    monitor = sonde.requests(0.05, seen.append, tmp_path / "r")
    for wait in (0, 0, 0.06):
        with monitor.request("predict", request_id="7") as request:
            time.sleep(wait)
    assert request.user_facing_latency >= request.internal_latency >= 0.06
    report = monitor.report()
    assert report["requests_processed"] == 3 and report["sla_violations"] == 1
    assert report["failures"] == 0
    assert seen[0]["request_id"] == "7" and seen[0]["user_facing_latency"] > 0.05
    assert seen[0]["memory_mb"] > 1
    assert report["by_hour"][-1]["requests_processed"] == 3
    assert monitor.hourly_report()["requests_processed"] == 3


def test_a_failing_callback_and_a_failing_handler_are_survived(tmp_path):
    monitor = sonde.requests(0.001, lambda r: 1 / 0, tmp_path / "r")
    with pytest.raises(KeyError), monitor.request("x"):
        time.sleep(0.01)
        raise KeyError
    assert monitor.report()["failures"] == 1


def test_percentiles_are_within_a_percent(monitor):
    rng = random.Random(1)
    times = sorted(rng.lognormvariate(-4, 1) for _ in range(20_000))
    for t in times:
        monitor.log_metrics(t / 2, t)
    report = monitor.report()
    assert report["average_latency"] == pytest.approx(sum(times) / len(times), rel=1e-3)
    for key, q in (("p50_latency", 0.50), ("p95_latency", 0.95), ("p99_latency", 0.99)):
        assert report[key] == pytest.approx(times[int(q * len(times)) - 1], rel=0.011)
    assert report["internal"]["p50_s"] == pytest.approx(
        report["p50_latency"] / 2, rel=0.025
    )


def test_buckets_cover_nanoseconds_to_days():
    for ns in (1, 1e3, 1e6, 1e9, 3600e9):
        assert middle_of(bucket_of(ns)) == pytest.approx(max(ns, 1e3), rel=0.011)
    assert bucket_of(1e30) == bucket_of(1e15)


def test_hours_are_kept_apart_and_old_ones_make_room(tmp_path):
    file = HourFile(tmp_path)
    for hour in range(1000, 1000 + HOURS + 5):
        file.add(hour, 10**6, 2 * 10**6, False, False)
    hours = read_hours(tmp_path)
    assert sorted(hours) == list(range(1005, 1000 + HOURS + 5))
    assert all(h.summary()["requests_processed"] == 1 for h in hours.values())
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) < 2**20


def test_damaged_files_are_passed_over(monitor):
    monitor.log_metrics(0.1, 0.1)
    (monitor.directory / "requests-1-x.hours").write_bytes(b"nonsense")
    assert monitor.report()["requests_processed"] == 1


def worker(monitor, count):
    for _ in range(count):
        monitor.log_metrics(0.01, 0.02)


def test_forked_workers_are_merged():
    monitor = sonde.requests(sla_s=0.015)  # a directory of its own
    worker(monitor, 10)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=worker, args=(monitor, 25)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    report = monitor.report()
    assert report["requests_processed"] == 85 and report["sla_violations"] == 85
    directory = monitor.directory
    del monitor
    assert not directory.exists()


def test_spawned_workers_are_merged():
    monitor = sonde.requests(sla_s=0.015)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(worker, (monitor, 5))
        pool.close()
        pool.join()
    assert monitor.report()["requests_processed"] == 5


def test_threads_lose_no_request(monitor):
    threads = [threading.Thread(target=worker, args=(monitor, 500)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert monitor.report()["requests_processed"] == 2000


def test_threads_that_begin_at_once_share_a_file(tmp_path):
    for turn in range(20):
        folder = tmp_path / str(turn)
        monitor = sonde.requests(1, directory=folder)
        gate = threading.Barrier(8)

        def begin(monitor=monitor, gate=gate):
            gate.wait()
            worker(monitor, 3)

        threads = [threading.Thread(target=begin) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(list(folder.glob("requests-*.hours"))) == 1
        assert monitor.report()["requests_processed"] == 24


def test_a_file_that_is_being_made_is_not_merged_away(tmp_path):
    """Others clear away the files of the dead all the time."""
    from sonde import _histogram

    done = threading.Event()

    def clear():
        while not done.is_set():
            _histogram.merge_dead(tmp_path)

    clearing = [threading.Thread(target=clear) for _ in range(3)]
    for t in clearing:
        t.start()
    try:
        for _ in range(60):
            _histogram.HourFile(tmp_path).add(7, 10, 20, False, False)
    finally:
        done.set()
        for t in clearing:
            t.join()
    assert _histogram.read_hours(tmp_path)[7].summary()["requests_processed"] == 60


def test_async_handlers_overlap(monitor):
    @monitor.profile
    async def handle(n):
        await asyncio.sleep(0.3)
        return n

    async def main():
        return await asyncio.gather(*(handle(n) for n in range(100)))

    start = time.perf_counter()
    assert asyncio.run(main()) == list(range(100))
    assert time.perf_counter() - start < 100 * 0.3  # one after the other
    report = monitor.report()
    assert report["requests_processed"] == 100 and report["sla_violations"] == 100

    @monitor.profile(name="plain")
    def plain():
        return 5

    assert plain() == 5 and monitor.report()["requests_processed"] == 101


def test_requests_appear_in_the_run(run):
    answer = run(
        """
        import sonde
        monitor = sonde.requests()
        for _ in range(3):
            with monitor.request("predict"):
                pass
        """
    )
    span = answer.one("predict", "span")
    assert span["count"] == 3 and span["component"] == "requests"


def test_the_proxys_header_counts_as_waiting(monitor):
    now = time.time()
    for text in (f"t={now:.3f}", f"{now * 1e3:.0f}", f"t={now * 1e6:.0f}"):
        assert arrival(text) == pytest.approx(now, abs=0.01)
    assert (
        arrival("nonsense") is None and arrival(None) is None and arrival("5") is None
    )
    with monitor.request("x", arrived=time.time() - 1) as request:
        pass
    assert request.user_facing_latency >= 1 > request.internal_latency


# ---- Middleware ------------------------------------------------------------------------


def test_wsgi_counts_until_the_last_byte(monitor):
    def app(environ, start_response):
        start_response("500 Oops", [])

        def body():
            time.sleep(0.06)
            yield b"slow"

        return body()

    answer = monitor.wsgi(app)({"REQUEST_METHOD": "GET"}, lambda status, headers: None)
    assert b"".join(answer) == b"slow"
    answer.close()
    report = monitor.report()
    assert report["failures"] == report["sla_violations"] == 1
    # The sleep is in one and not in the other, however slow the machine is.
    assert report["user_facing"]["max_s"] > report["internal"]["max_s"] + 0.05


def test_a_real_server_tells_when_it_has_sent(monitor):
    import urllib.request
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"a", b"b"]

    with make_server("127.0.0.1", 0, monitor.wsgi(app), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            for _ in range(5):
                assert opener.open(url, timeout=30).read() == b"ab"
        finally:
            server.shutdown()
            thread.join()
    assert monitor.report()["requests_processed"] == 5


def test_wsgi_passes_exceptions(monitor):
    def app(environ, start_response):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        monitor.wsgi(app)({}, None)
    assert monitor.report()["failures"] == 1


def test_asgi_counts_http_and_leaves_the_rest_alone(monitor):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.sleep(0.06)
            await send({"type": "http.response.body", "body": b"x"})

    sent = []

    async def send(message):
        sent.append(message["type"])

    async def main():
        await monitor.asgi(app)({"type": "lifespan"}, None, send)
        await monitor.asgi(app)(
            {"type": "http", "method": "GET", "headers": []}, None, send
        )

    asyncio.run(main())
    assert sent == ["http.response.start", "http.response.body"]
    report = monitor.report()
    assert report["requests_processed"] == 1
    # The sleep is in one and not in the other, however slow the machine is.
    assert report["user_facing"]["max_s"] > report["internal"]["max_s"] + 0.05


def example(name):
    """An example as people copy it, loaded as a module."""
    import importlib.util

    from conftest import SOURCE

    path = SOURCE / "examples" / "python" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_flask_example():
    pytest.importorskip("flask", reason="Flask is not installed for this interpreter")
    module = example("flask_server.py")
    client = module.app.test_client()
    for _ in range(5):
        assert client.get("/predict").get_json() == {"prediction": 4.2}
    assert client.get("/slow").get_json() == {"prediction": None}
    report = client.get("/report").get_json()
    assert report["requests_processed"] == 6 and report["sla_violations"] == 1
    assert len(module.violations) == 1


def test_the_fastapi_example():
    pytest.importorskip(
        "fastapi", reason="FastAPI is not installed for this interpreter"
    )
    pytest.importorskip("httpx", reason="httpx is not installed for this interpreter")
    from fastapi.testclient import TestClient

    module = example("fastapi_server.py")
    client = TestClient(module.app)
    for _ in range(5):
        assert client.get("/predict").json() == {"prediction": 4.2}
    assert client.get("/slow").status_code == 200
    report = client.get("/report").json()
    assert report["requests_processed"] == 6 and report["sla_violations"] == 1


def test_memory_stays_fixed_for_many_requests(monitor):
    worker(monitor, 1000)
    size = sum(p.stat().st_size for p in monitor.directory.iterdir())
    worker(monitor, 20_000)
    assert sum(p.stat().st_size for p in monitor.directory.iterdir()) == size
    assert size < 2**20 and len(os.listdir(monitor.directory)) == 1


def through(monitor, app):
    """What a WSGI server does with an application."""
    answer = monitor.wsgi(app)({"REQUEST_METHOD": "GET"}, lambda status, headers: None)
    try:
        return b"".join(answer)
    finally:
        answer.close()


def test_a_wsgi_answer_that_breaks_off_is_a_failure(monitor):
    def app(environ, start_response):
        start_response("200 OK", [])
        yield b"a"
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        through(monitor, app)
    assert monitor.report()["failures"] == 1


def test_a_wsgi_application_that_is_a_generator_works_until_its_first_part(monitor):
    def app(environ, start_response):
        time.sleep(0.06)
        start_response("200 OK", [])
        yield b"x"

    assert through(monitor, app) == b"x"
    assert monitor.report()["internal"]["max_s"] >= 0.06


def test_one_part_keeps_its_length(monitor):
    answer = monitor.wsgi(lambda e, s: [b"hello"])({}, None)
    assert len(answer) == 1 and list(answer) == [b"hello"]


def test_handlers_that_are_generators_last_until_their_end(monitor):
    @monitor.profile
    def parts():
        got = yield 1
        time.sleep(0.06)
        yield got

    @monitor.profile
    async def async_parts():
        for i in range(2):
            await asyncio.sleep(0.03)
            yield i

    async def collect():
        return [x async for x in async_parts()]

    items = parts()
    assert next(items) == 1 and items.send(5) == 5
    items.close()
    assert asyncio.run(collect()) == [0, 1]
    report = monitor.report()
    assert report["requests_processed"] == report["sla_violations"] == 2
    assert report["failures"] == 0


def test_an_asynchronous_on_violation_is_awaited(tmp_path):
    seen = []

    async def tell(record):
        await asyncio.sleep(0)
        seen.append(record["name"])

    monitor = sonde.requests(1e-9, tell, tmp_path)

    async def main():
        async with monitor.request("in a loop"):
            pass
        await asyncio.sleep(0.05)

    asyncio.run(main())
    with monitor.request("without one"):
        pass
    assert seen == ["in a loop", "without one"]


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
def test_impossible_times_are_refused_and_not_counted(monitor, bad):
    for times in ((bad, 0.1), (0.1, bad)):
        with pytest.raises(ValueError, match="seconds"):
            monitor.log_metrics(*times)
    assert monitor.report()["requests_processed"] == 0


@pytest.mark.parametrize("bad", ["2", float("nan"), 0])
def test_an_impossible_sla_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match="sla_s"):
        sonde.requests(sla_s=bad)


def test_workers_that_come_and_go_leave_their_counts_and_no_files(monitor):
    context = multiprocessing.get_context("fork")
    worker(monitor, 5)
    for _ in range(6):
        process = context.Process(target=worker, args=(monitor, 10))
        process.start()
        process.join()
    assert monitor.report()["requests_processed"] == 65
    assert len(os.listdir(monitor.directory)) == 2  # ours, and that of the dead
    worker(monitor, 5)
    assert monitor.report()["requests_processed"] == 70


def test_the_middleware_has_the_names_that_are_documented(monitor):
    assert sonde.requests.AsgiMiddleware is sonde.AsgiMiddleware
    assert sonde.WsgiMiddleware(lambda e, s: [b"a"], monitor=monitor).monitor is monitor
