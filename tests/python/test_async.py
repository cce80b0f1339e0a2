"""Coroutines, tasks, generators: waiting is kept apart and nothing tangles."""


def test_a_coroutine_that_waits_and_works_shows_both(run):
    answer = run(
        """
        import asyncio, time, sonde
        def work(s):
            end = time.thread_time() + s
            while time.thread_time() < end: pass
        @sonde.profile
        async def decorated():
            work(0.01)
            await asyncio.sleep(1)
        async def main():
            with sonde.zone("block"):
                work(0.01)
                await asyncio.sleep(1)
            await decorated()
        asyncio.run(main())
        """
    )
    for name in ("block", "decorated"):
        span = answer.one(name, "span")
        active = span["total_s"] - span["suspended_s"]
        assert span["count"] == 1
        assert span["suspended_s"] >= 0.98, name
        assert 0.009 <= active < 0.5 * span["total_s"], name  # the sleep is not in it
    assert answer.balanced()


def test_the_zones_of_many_tasks_never_tangle(run):
    answer = run(
        """
        import asyncio, random, sonde
        async def job(i):
            with sonde.zone("job"):
                for _ in range(5):
                    with sonde.zone(f"part {i % 3}"):
                        await asyncio.sleep(random.random() / 1000)
                    def plain():
                        with sonde.zone("plain"):
                            pass
                    plain()
        async def main():
            await asyncio.gather(*(job(i) for i in range(60)))
        random.seed(1)
        with sonde.zone("whole"):
            asyncio.run(main())
        """
    )
    assert answer.one("job", "span")["count"] == 60
    assert sum(answer.one(f"part {i}", "span")["count"] for i in range(3)) == 300
    assert answer.paths()[("whole", "plain")] == 300
    assert answer.balanced()


def test_plain_work_inside_a_coroutine_nests_and_has_a_phase(run):
    answer = run(
        """
        import asyncio, contextlib, time, sonde
        async def handle(n):
            with sonde.zone("request"):               # awaits: a span
                await asyncio.sleep(0)
                with sonde.zone("model", phase="forward"):
                    try:
                        with sonde.zone("layer"):
                            time.sleep(0.002)
                    except ValueError:
                        pass
                    for _ in range(2):
                        with sonde.zone("loop"): pass
                with sonde.zone("same"):
                    await asyncio.sleep(0)
                    with sonde.zone("same"):          # plain, inside a span of its name
                        pass
                    await asyncio.sleep(0)
                with sonde.zone("try"):
                    try:
                        time.sleep(0)
                        raise KeyError
                    except KeyError:
                        await asyncio.sleep(0)        # an await in a handler inside
                with sonde.zone("nested"):
                    with contextlib.suppress(ValueError):
                        for _ in range(2):
                            await asyncio.sleep(0)
                with sonde.zone("comes back"):
                    return n
        async def main():
            assert await asyncio.gather(*(handle(n) for n in range(20))) == list(range(20))
        asyncio.run(main())
        """
    )
    kinds = {(o["name"], o["kind"]): o["count"] for o in answer["operations"]}
    for name in ("request", "try", "nested"):
        assert kinds[name, "span"] == 20 and (name, "zone") not in kinds, name
    for name in ("model", "layer", "comes back"):
        assert kinds[name, "zone"] == 20 and (name, "span") not in kinds, name
    assert kinds["same", "span"] == 20 and kinds["same", "zone"] == 20
    assert answer.paths()[("model", "layer")] == 20
    assert answer.paths()[("model", "loop")] == 40
    assert answer.phase("forward") >= 0.04
    assert answer.balanced()


def test_cancelled_and_failing_tasks_end_their_zones(run):
    answer = run(
        """
        import asyncio, sonde
        async def waits():
            with sonde.zone("cancelled"):
                await asyncio.sleep(60)
        async def fails():
            with sonde.zone("failed"):
                await asyncio.sleep(0)
                raise ValueError("mine")
        @sonde.profile
        async def both():
            try:
                await fails()
            except ValueError as e:
                assert str(e) == "mine"
            task = asyncio.ensure_future(waits())
            await asyncio.sleep(0.01)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return "done"
        assert asyncio.run(both()) == "done"
        """
    )
    for name in ("cancelled", "failed", "both"):
        assert answer.one(name, "span")["count"] == 1
        assert answer.one(name, "span")["open"] == 0


def test_eager_tasks_wait_too(run):
    answer = run(
        """
        import asyncio, sys, sonde
        async def job(n):
            with sonde.zone("eager"):
                await asyncio.sleep(0.1)
            return n
        async def main():
            factory = getattr(asyncio, "eager_task_factory", None)
            if factory:  # 3.12 and later
                asyncio.get_running_loop().set_task_factory(factory)
            with sonde.zone("outer"):
                return await asyncio.gather(*(job(n) for n in range(5)))
        assert asyncio.run(main()) == [0, 1, 2, 3, 4]
        """
    )
    span = answer.one("eager", "span")
    assert span["count"] == 5 and span["suspended_s"] > 0.9 * span["total_s"] > 0.4
    outer = answer.one("outer", "span")
    assert outer["suspended_s"] > 0.5 * outer["total_s"]
    assert answer.balanced()


def test_two_event_loops_in_two_threads(run):
    answer = run(
        """
        import asyncio, threading, sonde
        async def job():
            with sonde.zone("job"):
                for _ in range(10):
                    await asyncio.sleep(0.005)
        async def main():
            await asyncio.gather(*(job() for _ in range(10)))
        threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(2)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    span = answer.one("job", "span")
    assert span["count"] == 20 and span["suspended_s"] > 0.5 * span["total_s"]
    assert answer.balanced()


def test_a_dropped_task_goes_as_it_would_without_us(run):
    answer = run(
        """
        import asyncio, gc, weakref, sonde
        left = []
        async def waits(event):
            try:
                with sonde.zone("dropped"):
                    await event.wait()
            finally:
                left.append(True)
        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            task = asyncio.ensure_future(waits(asyncio.Event()))
            await asyncio.sleep(0)
            gone = weakref.ref(task)
            del task
            gc.collect()
            assert gone() is None and left == [True]
        asyncio.run(main())
        """
    )
    assert answer.one("dropped", "span")["open"] == 0


def test_an_await_in_an_executor_counts_as_waiting(run):
    answer = run(
        """
        import asyncio, time, sonde
        async def main():
            loop = asyncio.get_running_loop()
            with sonde.zone("asks"):
                await loop.run_in_executor(None, time.sleep, 0.3)
        asyncio.run(main())
        """
    )
    assert answer.one("asks", "span")["suspended_s"] > 0.25


def test_asynchronous_generators_and_their_protocol(run):
    answer = run(
        """
        import asyncio, inspect, sonde
        @sonde.profile
        async def numbers():
            got = []
            try:
                while True:
                    try:
                        got.append((yield len(got)))
                        await asyncio.sleep(0.01)
                    except KeyError:
                        got.append("key")
            finally:
                assert got in ([None, "a", "key"], [None, "a", "key", None]), got
        assert inspect.isasyncgenfunction(numbers)
        async def main():
            g = numbers()
            assert await g.asend(None) == 0
            assert await g.asend(None) == 1
            assert await g.asend("a") == 2
            assert await g.athrow(KeyError()) == 3
            await g.aclose()
            @sonde.profile
            async def three():
                for i in range(3):
                    yield i
                    await asyncio.sleep(0.05)
            assert [i async for i in three()] == [0, 1, 2]
        asyncio.run(main())
        """
    )
    span = answer.one("main.three", "span")
    assert span["count"] == 1 and span["suspended_s"] > 0.1
    assert answer.one("numbers", "span")["open"] == 0


def test_generators_keep_the_time_of_their_callers_apart(run):
    answer = run(
        """
        import inspect, time, sonde
        @sonde.profile(phase="data_loading")
        def loader(n):
            for i in range(n):
                with sonde.zone("read"):
                    time.sleep(0.02)
                got = yield i
                assert got is None or got == "sent"
            return "result"
        assert inspect.isgeneratorfunction(loader)
        seen = []
        for i in loader(5):
            seen.append(i)
            time.sleep(0.04)
        assert seen == [0, 1, 2, 3, 4]
        g = loader(1)
        next(g)
        try:
            g.send("sent")
        except StopIteration as stop:
            assert stop.value == "result"
        loader(2).close()
        """
    )
    span = answer.one("loader", "span")
    active = span["total_s"] - span["suspended_s"]
    assert span["suspended_s"] >= 0.19 and 0.11 <= active <= span["total_s"] - 0.19
    # Its stretches belong to a phase, and zones inside lie below them.
    assert answer.paths()[("loader", "read")] == 6
    assert answer.phase("data_loading") >= 0.11
    assert answer.balanced()


def test_contextmanagers_made_of_generators_nest(run):
    answer = run(
        """
        import contextlib, sonde
        @contextlib.contextmanager
        def timed():
            with sonde.zone("outer"):
                yield
        with timed():
            with sonde.zone("inner"):
                pass
        with contextlib.ExitStack() as stack:
            stack.enter_context(sonde.zone("stacked"))
            with sonde.zone("below"):
                pass
        """
    )
    assert answer.paths()[("outer", "inner")] == 1
    assert answer.paths()[("stacked", "below")] == 1


def test_operations_in_coroutines_have_records_too(run):
    run(
        """
        import asyncio, sonde
        async def one(n):
            with sonde.operation(f"op {n}") as op:
                await asyncio.sleep(0.05)
                op.metrics["n"] = n
                assert op.elapsed >= 0.04
            assert op.duration >= 0.05 and op.metrics == {"n": n}
            assert op.mem_after_mb > 1 and op.process_cpu_s is not None
            return op
        async def main():
            await asyncio.gather(*(one(i) for i in range(10)))
            async with sonde.operation("async with") as op:
                await asyncio.sleep(0)
            assert op.duration >= 0
        asyncio.run(main())
        """
    )


def test_an_awaiting_operation_has_tags_and_knows_what_it_waited(run):
    answer = run(
        """
        import asyncio, sonde
        monitor = sonde.requests()
        async def main():
            async with sonde.operation("aop", tagx="1"):
                await asyncio.sleep(0.1)
            async with monitor.request("req") as request:
                await asyncio.sleep(0.1)
            assert request.cpu_s is None
        asyncio.run(main())
        """
    )
    assert answer.one("aop")["tags"] == {"tagx": "1"}
    assert answer.one("aop")["suspended_s"] > 0.09
    assert answer.one("req")["suspended_s"] > 0.09
