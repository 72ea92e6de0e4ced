"""Tensors that go from thread to thread without any synchronise: right on stock, where one queue orders everything.

The numbers are small whole ones, so that every result is exact.
"""

import gc
import queue
import threading
import time

import torch
from harness import ParallelTest, numbers, wait_until


class HandOver(ParallelTest):
    def test_hand_over(self):
        """A ring: each thread adds to what the one before it made, and passes the result on."""
        threads, device = self.settings.threads, self.settings.device
        ring = [queue.SimpleQueue() for _ in range(threads)]
        results = queue.SimpleQueue()

        def work(i):
            for iteration in range(self.settings.iterations):
                tensor = torch.full((4096,), float(iteration), device=device) if i == 0 else ring[i].get(timeout=60)
                tensor = (tensor + 1) * 2
                if i + 1 < threads:
                    ring[i + 1].put(tensor)
                results.put((i, iteration, tensor))
                self.done()

        self.together(work)
        self.read(results)

    def read(self, results):
        while not results.empty():
            i, iteration, tensor = results.get()
            value = float(iteration)
            for _ in range(i + 1):
                value = (value + 1) * 2
            self.compare(tensor.cpu(), torch.full((4096,), value), f"thread {i}, iteration {iteration}")

    def test_cross_stream(self):
        """The main thread makes weights that all threads use at once; it adds up their results after join."""
        device, size = self.settings.device, 64
        weight = torch.eye(size).to(device) * 2
        weight += 1
        results = [None] * self.settings.threads

        def work(i):
            total = torch.zeros(size, size, device=device)
            for iteration in range(self.settings.iterations):
                total += torch.mm(torch.full((size, size), float(i + iteration % 4), device=device), weight)
                self.done()
            results[i] = total

        self.together(work)
        row = size + 2.0
        for i, total in enumerate(results):
            expected = sum((i + iteration % 4) * row for iteration in range(self.settings.iterations))
            self.compare((total + 0).cpu(), torch.full((size, size), expected), f"thread {i}")
        # One result is the sum over all the operations.
        self.counts.add(answers=self.settings.threads * (self.settings.iterations - 1))

    def test_other_memory(self):
        """A tensor gets other memory, by .data, while another thread's operator waits for its other argument: it uses the old numbers, or the new."""
        self.need_mps()

        def commit():
            torch.mps.event.Event().record()

        for iteration in range(self.settings.iterations):
            changed, awaited = torch.zeros(1000, device="mps"), torch.zeros(1000, device="mps")
            self.synchronize()
            begun = threading.Event()

            def work(i, changed=changed, awaited=awaited, begun=begun, iteration=iteration):
                if i == 0:
                    for _ in range(40):
                        awaited.add_(1)
                        commit()
                    begun.set()
                    time.sleep(0.002)
                    other = torch.full((1000,), 3.0, device="mps")
                    for _ in range(4):
                        other = other + 1
                        commit()
                    changed.data = other
                    self.compare(awaited.cpu(), torch.full((1000,), 40.0), f"the other argument, iteration {iteration}")
                else:
                    begun.wait(60)
                    found = (changed + awaited).cpu()
                    self.compare(found, torch.full((1000,), 47.0 if found[0] > 43 else 40.0), f"the sum, iteration {iteration}")
                self.done()

            self.together(work, operations=1)

    def test_in_place(self):
        """All threads read one tensor; between two rounds the main thread changes it in place."""
        device = self.settings.device
        shared = torch.zeros(4096, device=device)
        for round_ in range(self.settings.iterations):
            results = [None] * self.settings.threads

            def work(i, results=results, shared=shared):
                results[i] = shared + i
                self.done()

            self.together(work, operations=1)
            shared += 1
            for i, result in enumerate(results):
                self.compare(result.cpu(), torch.full((4096,), float(round_ + i)), f"thread {i}, round {round_}")

    def test_device_synchronize(self):
        """The main thread synchronises the device again and again while threads compute."""
        device, stop = self.settings.device, threading.Event()
        results = queue.SimpleQueue()

        def work(i):
            for iteration in range(self.settings.iterations):
                tensor = torch.full((4096,), float(iteration), device=device)
                for _ in range(i + 1):
                    tensor = (tensor + 1) * 2
                results.put((i, iteration, tensor))
                self.done()

        def synchronize():
            while not stop.is_set():
                self.synchronize()

        thread = threading.Thread(target=synchronize)
        thread.start()
        self.together(work)
        stop.set()
        thread.join()
        self.synchronize()
        self.read(results)

    def test_buffer_reuse(self):
        """Threads make and drop tensors of one size all the time: memory that one frees is not given out while in use."""
        device = self.settings.device

        def work(i):
            for iteration in range(self.settings.iterations):
                first = torch.full((8192,), float(100 * i + iteration), device=device)
                for _ in range(3):
                    first = first + 1
                self.compare(first.cpu(), torch.full((8192,), 100.0 * i + iteration + 3), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_scalars(self):
        """Numbers that a graph is fed with lie in buffers of their own, which are free again when the work is complete."""
        self.need_mps()

        def allocated():
            self.synchronize()
            gc.collect()
            return torch.mps.current_allocated_memory()

        before = allocated()

        def work(i):
            for iteration in range(self.settings.iterations):
                x, beta = numbers(100 * i + iteration, 16), 1.0 + i
                y = torch.nn.functional.softplus(x.to("mps"), beta)
                self.compare(y.cpu(), torch.nn.functional.softplus(x, beta), f"thread {i}, iteration {iteration}", tolerance=1e-6)
                self.done()

        self.together(work)
        # the functions that free them may run a little after the work is complete
        wait_until(lambda: allocated() <= before, seconds=10)
        self.assertLessEqual(allocated(), before, "bytes of memory allocated")

    def test_idle_consumer(self):
        """Each of many streams uses one tensor, and nobody waits for it: the tensor's memory comes back all the same."""
        self.need_mps()
        self.need(torch.mps, "Stream", "stream")
        count, size = self.settings.iterations, 1 << 22  # of bytes
        consumers = [torch.mps.Stream() for _ in range(count)]
        totals = []

        def work(i):
            base = torch.mps.driver_allocated_memory()
            for iteration, consumer in enumerate(consumers):
                tensor = torch.full((size // 4,), float(iteration), device="mps")
                with torch.mps.stream(consumer):
                    totals.append(tensor.sum())
                del tensor
                time.sleep(0.05)  # many times what the sum takes
            grown = torch.mps.driver_allocated_memory() - base
            self.counts.facts["tensors that are kept"] = grown // size
            self.assertLess(grown, count * size * 3 // 4, "bytes of growth")
            for iteration, total in enumerate(totals):
                self.compare(total.cpu(), torch.tensor(float(iteration * size // 4)), f"iteration {iteration}")
                self.done()

        self.together(work)
