"""Threads that wait: they let others pass, in turn, and they do not hold the interpreter lock."""

import statistics
import threading
import time

import torch
from harness import ParallelTest, wait_until

MOST_POLLS = 10  # by each thread, while one addition waits; without fairness it is thousands, or no end


class Waits:
    """Its finalizer starts a thread, and waits for it."""

    def __init__(self, work):
        self.work = work

    def __del__(self):
        thread = threading.Thread(target=self.work)
        thread.start()
        thread.join()


class Waiting(ParallelTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.synchronize)

    def test_pollers(self):
        """All threads but one poll a number; that one adds to it. Who polls later does not pass it: of each thread that is the poll in
        flight, and those before the writer was scheduled. Each of them sees the last number."""
        device, last = self.settings.device, float(self.settings.iterations)
        flag, polls, passed = torch.zeros(1, device=device), [0] * self.settings.threads, []

        def work(i):
            if i == 0:
                for _ in range(self.settings.iterations):
                    before = sum(polls)
                    flag.add_(1)
                    passed.append(sum(polls) - before)
                    self.done()
                self.compare(flag.cpu(), torch.tensor([last]), "the writer")
                self.counts.add(answers=self.settings.iterations - 1)
                return
            seen = 0.0
            while seen < last:
                seen, before = flag.item(), seen
                polls[i] += 1
                if seen < before:
                    raise AssertionError(f"{seen} after {before}")
            self.compare(torch.tensor(seen), torch.tensor(last), f"thread {i}")
            for _ in range(self.settings.iterations):
                self.done()
            self.counts.add(answers=self.settings.iterations - 1)

        self.together(work)
        # The median, as the writer may lose its processor before it comes to the tensor.
        self.counts.facts["polls while it wrote, by each thread"] = each = statistics.median(passed) / (self.settings.threads - 1)
        self.assertLessEqual(each, MOST_POLLS, f"polls that each thread did while the writer waited: {passed}, of all of them")

    def test_polled_handlers(self):
        """An event and a stream are polled while handlers of what they come after need the interpreter lock. Nobody commits the stream's."""
        self.need(torch.mps, "Stream")
        extension, called = self.need_extension(), []
        tensor, stream = torch.zeros(4, device="mps"), torch.mps.Stream()
        for i in range(self.settings.iterations):
            event = torch.mps.Event()
            with torch.mps.stream(stream):
                tensor.add_(1)
                extension.on_completion(lambda: called.append(None))
                if i % 2 == 0:
                    event.record()
            polled = stream.query if i % 2 else event.query
            while not polled():
                pass
            self.done()
        self.synchronize()
        self.compare(tensor.cpu(), torch.full((4,), float(self.settings.iterations)), "the sum")
        # Metal calls the last handlers when the stream is done already
        wait_until(lambda: len(called) == self.settings.iterations, seconds=10)
        self.assertEqual(len(called), self.settings.iterations, "handlers that were called")
        self.counts.add(expected=self.settings.iterations, answers=self.settings.iterations - 1)

    def test_exhausted_indexing(self):
        """More threads than streams, which wait for one; the first thing that each does is to index or to assign a number."""
        self.need(torch.mps, "release_stream_slot")
        device = self.settings.device
        here = torch.arange(64.0)
        there = [here.to(device) for _ in range(self.settings.threads)]

        def work(i):
            if i % 2:
                value = there[i][i]
                self.compare(value.cpu(), here[i], f"thread {i}")
            else:
                there[i][0] = 5.0
                self.compare(there[i][:2].cpu(), torch.tensor([5.0, 1.0]), f"thread {i}")
            self.done()

        self.together(work, operations=1, stay=False)

    def test_no_global_callback(self):
        """Several streams cost the operators of other devices nothing: no callback of all operators is there."""
        self.need_mps()
        self.assertFalse(self.has_callbacks(), "before any stream")

        def work(i):
            self.compare((torch.ones(4, device="mps") * i).cpu(), torch.full((4,), float(i)), f"thread {i}")
            self.assertFalse(self.has_callbacks(), f"thread {i}, which has a stream")
            self.done()

        self.together(work, operations=1)
        self.assertFalse(self.has_callbacks(), "after the threads")

    def test_synchronize_together(self):
        """Two threads of one stream wait for the device. What the second waits for is committed already, and the first waits for it."""
        device, size = self.settings.device, 1 << 12
        weights = torch.full((600, 600), 1 / 600, device=device)
        self.synchronize()
        self.counts.add(expected=self.settings.iterations)

        def begin(_):
            value = weights
            for _ in range(6):
                value = value @ weights
            here.copy_((value[0, :1] * 0 + iteration + 1).expand(size).contiguous(), non_blocking=True)
            given.set()
            self.synchronize()

        def join(_):
            given.wait()
            time.sleep(0.002)  # so that the other thread waits already; a hope, and no order
            self.synchronize()
            self.compare(here.clone(), torch.full((size,), iteration + 1.0), f"iteration {iteration}")
            self.done()

        for iteration in range(self.settings.iterations):
            here, given = torch.zeros(size), threading.Event()
            threads = [threading.Thread(target=target, args=(0,)) for target in (begin, join)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def test_sub_interpreter(self):
        """Once there is a sub-interpreter, Python no longer says of each thread whether it holds the interpreter lock."""
        try:
            import _interpreters as interpreters  # 3.13
        except ImportError:
            import _xxsubinterpreters as interpreters
        interpreters.create()
        self.counts.add(expected=self.settings.iterations)
        for iteration in range(self.settings.iterations):
            value = torch.full((8,), float(iteration), device=self.settings.device)
            self.compare((value + 1).cpu(), torch.full((8,), iteration + 1.0), f"iteration {iteration}")
            self.done()

    def test_finalizers(self):
        """A storage dies in an operator that replaces it, or when a later copy finds it written. Its finalizer waits for a thread that uses
        the operator's tensors: first the only other thread that ever did, then one of several."""
        device = self.settings.device
        other = torch.ones(64, device=device)
        self.counts.add(expected=2 * 2)

        def owned(tensor, what):
            def work():
                other.add_(1)
                self.compare(other.cpu(), torch.full((64,), other[0].item()), what)
                self.done()

            tensor.untyped_storage().finalizer = Waits(work)
            return tensor

        def replace():
            owned(torch.zeros(64, device=device), "within set_").set_(other.untyped_storage(), 0, (64,), (1,))

        def drop():
            owned(torch.zeros(64), "within a copy").copy_(other, non_blocking=True)
            self.synchronize()
            other.cpu()  # the later copy

        for _ in range(2):
            replace()
            drop()
        self.compare(other.cpu(), torch.full((64,), 5.0), "additions of all finalizers", answer=False)
