"""Threads and the streams that they lease: how many, which, and what happens when there are no more."""

import gc
import os
import threading
import time

import operations
import torch
from harness import ParallelTest, numbers, resident


class Streams(ParallelTest):
    def test_boundary(self):
        """All threads hold what they lease at once."""
        self.parallel(operations.Linear)

    def test_churn(self):
        """Threads that come and go: each does one operation and ends; first alone, then in groups."""
        operation, device = operations.MLP(self.settings.device), self.settings.device
        expected = operation(operation.inputs(0)[0].to(device)).detach().cpu()
        results = []

        def work(_):
            with torch.no_grad():
                results.append(operation(operation.inputs(0)[0].to(device)).cpu())
            self.done()

        for threads in (1, self.settings.threads):
            for _ in range(self.settings.iterations):
                self.together(work, operations=1, threads=threads, stay=False)
        for i, result in enumerate(results):
            self.compare(result, expected, f"thread {i}")

    def test_over_subscription(self):
        """More threads than streams: those that get none share the default one."""
        self.parallel(operations.Linear)

    def test_over_subscription_wait(self):
        """More threads than streams: a thread waits until another has ended."""
        self.need(torch.mps, "release_stream_slot")
        self.parallel(operations.Linear, stay=False)

    def test_over_subscription_error(self):
        """More threads than streams: a thread gets a normal exception that names the variable, and the others go on."""
        self.need_mps()
        self.need(torch.mps, "release_stream_slot")
        if os.environ.get("PYTORCH_MPS_STREAM_POOL_EXHAUSTED") != "error":
            self.skipTest("needs PYTORCH_MPS_STREAM_POOL_EXHAUSTED=error, and PYTORCH_MPS_STREAM_POOL_SIZE")
        workers = int(os.environ["PYTORCH_MPS_STREAM_POOL_SIZE"]) - 1
        held, refused = threading.Barrier(workers + 1), []

        def work(_):
            tensor = numbers(1, 16)
            self.compare((tensor.to("mps") + 1).cpu(), tensor + 1, "a thread with a stream")
            held.wait()
            held.wait()
            self.compare((tensor.to("mps") + 2).cpu(), tensor + 2, "a thread with a stream, later")
            self.done()

        def late():
            try:
                held.wait()
                torch.ones(1, device="mps").cpu()
            except RuntimeError as error:
                refused.append(str(error))
            finally:
                held.wait()

        thread = threading.Thread(target=late)
        thread.start()
        self.together(work, operations=1, threads=workers)
        thread.join()
        self.assertEqual(len(refused), 1, "the thread without a stream was not refused")
        self.assertIn("PYTORCH_MPS_STREAM_POOL", refused[0])

    def test_stream_assignment(self):
        """The main thread has the default stream; threads that live at once have streams of their own."""
        self.need(torch.mps, "current_stream", "default_stream")
        streams = {}

        def work(i):
            x = numbers(i, 16)
            self.compare((x.to("mps") * 2).cpu(), x * 2, f"thread {i}")
            streams[i] = torch.mps.current_stream().stream_id
            self.done()

        self.together(work, operations=1)
        main = torch.mps.current_stream().stream_id
        self.assertEqual(main, torch.mps.default_stream().stream_id)
        self.assertEqual(len({main, *streams.values()}), self.settings.threads + 1, f"main thread {main}, threads {streams}")

    def test_release_slot(self):
        """A thread that gives its stream back leases one again with its next operation."""
        self.need(torch.mps, "release_stream_slot")

        def work(i):
            for iteration in range(self.settings.iterations):
                x = numbers(100 * i + iteration, 16)
                y = x.to("mps") + 1
                torch.mps.release_stream_slot()
                self.compare((y * 2).cpu(), (x + 1) * 2, f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_explicit_streams(self):
        """Each thread switches to a stream that it asked for and back, through an exception, too."""
        self.need(torch.mps, "Stream", "stream", "current_stream")

        def work(i):
            before = torch.mps.current_stream().stream_id
            stream = torch.mps.Stream()
            for iteration in range(self.settings.iterations):
                x = numbers(100 * i + iteration, 16)
                try:
                    with torch.mps.stream(stream):
                        if iteration == 0:
                            self.busy()
                        y = x.to("mps") * 3
                        if iteration % 2:
                            raise KeyError
                except KeyError:
                    pass
                stream.synchronize()
                if self.settings.threads <= 32 and not stream.query():  # more threads share streams
                    raise AssertionError("a stream that was waited for has work left")
                if torch.mps.current_stream().stream_id != before:
                    raise AssertionError("another stream than before")
                self.compare(y.cpu(), x * 3, f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_events(self):
        """Each thread records events, waits for them and asks for the time between them."""
        self.need_mps()

        def work(i):
            for iteration in range(self.settings.iterations):
                x = numbers(100 * i + iteration, 16)
                start, end = torch.mps.event.Event(enable_timing=True), torch.mps.event.Event(enable_timing=True)
                start.record()
                y = x.to("mps") + 1
                end.record()
                end.synchronize()
                if start.elapsed_time(end) < 0:
                    raise AssertionError(f"{start.elapsed_time(end)} ms between two events")
                self.compare(y.cpu(), x + 1, f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_elapsed_time(self):
        """The time between two events is in milliseconds, and no longer than what the CPU measures around them."""
        self.need_mps()
        pause = 0.05  # seconds
        for iteration in range(self.settings.iterations):
            begin, end = torch.mps.event.Event(enable_timing=True), torch.mps.event.Event(enable_timing=True)
            started = time.perf_counter()
            begin.record()
            begin.synchronize()
            time.sleep(pause)
            end.record()
            end.synchronize()
            found, most = begin.elapsed_time(end), 1e3 * (time.perf_counter() - started)
            self.assertTrue(1e3 * pause <= found <= most, f"iteration {iteration}: {found} ms, within {most} ms of the CPU")
            self.compare(torch.ones(16, device="mps").cpu(), torch.ones(16), f"iteration {iteration}")
            self.counts.add(expected=1, operations=1)

    def test_profiled_stream(self):
        """A stream that begins within torch.mps.profiler.profile() keeps no command buffers later."""
        self.need_mps()
        if resident() < 0:
            self.skipTest("needs the memory of the process from /proc")
        weights = torch.ones(16, device="mps")
        self.compare(weights.cpu(), torch.ones(16), "before the threads", answer=False)

        def work(i):
            with torch.mps.profiler.profile():
                self.compare((weights + i).cpu(), torch.full((16,), 1.0 + i), f"thread {i}, profiled")
            held = []
            for part in range(3):
                for _ in range(self.settings.iterations):
                    value = weights
                    for _ in range(20):
                        value = value + 1
                    torch.mps.Event().record()
                self.compare(value.cpu(), torch.full((16,), 21.0), f"thread {i}, part {part}", answer=False)
                self.synchronize()
                gc.collect()
                held.append(resident())
            self.counts.facts["bytes of growth"] = held[2] - held[1]
            self.assertLess(held[2] - held[1], 1 << 20, f"growth by {self.settings.iterations} rounds of 20 operators, of {held}")
            self.done()

        self.together(work, operations=1, threads=1)

    def test_device_functions(self):
        """What takes a device takes the one of MPS, by name, number or as the current one, and refuses every other."""
        self.need_mps()
        mps = torch.mps
        functions = [mps.set_device, mps.current_stream, mps.default_stream, mps.Stream]

        def work(i: int):
            for iteration in range(self.settings.iterations):
                for function in functions:
                    for device in ("mps", "mps:0", torch.device("mps"), 0, -1, None):
                        function(device)
                    for device in ("cpu", "mps:1", 1, 255, 256, 1000):
                        with self.assertRaises(ValueError, msg=f"{function.__name__}({device!r})"):
                            function(device)
                self.assertEqual(mps.current_device(), 0)
                self.compare((torch.ones(16, device="mps") + i).cpu(), torch.full((16,), 1.0 + i), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)
