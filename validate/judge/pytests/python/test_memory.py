"""Memory and compiled graphs, against what the same program takes with one stream, or what is alive at once."""

import gc
import os
import sys
import threading
from collections.abc import Callable

import torch
from harness import ParallelTest, resident, wait_until

MB = 1 << 20
# The allocator takes tensors of this size from heaps of 32 MB, larger ones from heaps of 1 GB, which would hide what they take.
BYTES = 8 * MB
NUMBERS = 1 << 18  # of a copy to the CPU


class Memory(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.addCleanup(self.synchronize)

    def peak(self, steps: int, step: Callable[[int], None]) -> int:
        """The most bytes that the driver counts after a step, beyond those before the first one."""
        self.synchronize()
        torch.mps.empty_cache()
        before, most = torch.mps.driver_allocated_memory(), 0
        for i in range(steps):
            step(i)
            most = max(most, torch.mps.driver_allocated_memory() - before)
        return most

    def test_uploads(self):
        """Copies to MPS that do not block, given while the GPU is behind, take no more than 64 MB beyond the tensors."""
        size = 32 * MB
        sources = [torch.full((size // 4,), float(i)) for i in range(4)]
        target = torch.zeros(size // 4, device="mps")
        self.synchronize()
        before, most, behind = resident(), 0, torch.mps.event.Event()

        def upload(i: int) -> None:
            nonlocal most
            if i == 0:
                for _ in range(64):  # for longer than some uploads take
                    self.busy()
                behind.record()
            target.copy_(sources[i % len(sources)], non_blocking=True)
            most = max(most, resident() - before)
            if i == 1:
                self.assertFalse(behind.query(), "the GPU was not behind, so that this shows nothing")

        counted = self.peak(self.settings.iterations, upload)
        self.counts.facts["bytes resident"], self.counts.facts["bytes counted"] = most, counted
        self.assertLessEqual(counted, (64 + 32) * MB, "bytes that the driver counts, with the heaps of busy()")
        self.assertLessEqual(most, (64 + 32) * MB, "bytes of the process")
        last = (self.settings.iterations - 1) % len(sources)
        self.compare(target.cpu(), torch.full((size // 4,), float(last)), "the last upload")
        self.counts.add(expected=1, operations=1)

    def test_written_targets(self):
        """What a copy to the CPU has written is let go by each kind of wait, and by a query that finds it done."""
        self.need(torch.mps, "current_stream")
        source = torch.arange(NUMBERS, dtype=torch.float32, device="mps")

        def event(act: str) -> None:
            recorded = torch.mps.Event()
            recorded.record()
            if act == "query":
                while not recorded.query():
                    pass
            else:
                recorded.synchronize()

        waits = {
            "synchronize": torch.mps.synchronize,
            "an event": lambda: event("synchronize"),
            "an event's query": lambda: event("query"),
            "a stream": lambda: torch.mps.current_stream().synchronize(),
            "item": lambda: source[0].item(),
            "empty_cache": torch.mps.empty_cache,
        }
        for _ in range(self.settings.iterations):
            for what, wait in waits.items():
                memory = bytearray(4 * NUMBERS)
                references = sys.getrefcount(memory)
                target = torch.frombuffer(memory, dtype=torch.float32)
                target.copy_(source, non_blocking=True)
                wait()
                self.compare(target.clone(), torch.arange(NUMBERS, dtype=torch.float32), what)
                del target
                gc.collect()
                self.assertEqual(sys.getrefcount(memory), references, f"references to the memory after {what}")
                self.counts.add(expected=1, operations=1)

    def test_idle_target(self):
        """What a copy to the CPU has written is let go soon, with no further call of the program: nothing keeps the last one."""
        source = torch.arange(NUMBERS, dtype=torch.float32, device="mps")
        self.synchronize()
        for iteration in range(self.settings.iterations):
            memory = bytearray(4 * NUMBERS)
            references = sys.getrefcount(memory)
            target = torch.frombuffer(memory, dtype=torch.float32)
            target.copy_(source, non_blocking=True)
            del target
            wait_until(lambda: sys.getrefcount(memory) == references, seconds=60)
            self.assertEqual(sys.getrefcount(memory), references, f"references to the memory, iteration {iteration}")
            self.synchronize()  # stock lets go before it has written
            self.compare(torch.frombuffer(memory, dtype=torch.float32).clone(), source.cpu(), f"what was written, iteration {iteration}")
            self.counts.add(expected=1, operations=1)

    def emptied(self, to: int) -> int:
        """The bytes that Metal has given once the cache is emptied. Metal lets go of a heap some time after the last command buffer that
        used it, so this looks for 10 seconds whether they come down to a number of bytes."""
        self.synchronize()
        torch.mps.empty_cache()
        wait_until(lambda: torch.mps.driver_allocated_memory() <= to, seconds=10)
        return torch.mps.driver_allocated_memory()

    def test_oversized(self):
        """What is longer than Metal's longest buffer raises with the cause and leaves nothing behind."""
        if "MPSFORGE_METAL_MAX_BUFFER_MB" not in os.environ:
            self.skipTest("needs MPSFORGE_METAL_MAX_BUFFER_MB, which only a host build reads")
        limit, page = int(os.environ["MPSFORGE_METAL_MAX_BUFFER_MB"]) * MB, 1 << 14
        fits = torch.ones(limit // 4 - 16)
        before = 0
        for iteration in range(self.settings.iterations):
            before = self.emptied(before)
            with self.assertRaisesRegex(RuntimeError, "Invalid buffer size"):
                torch.empty(limit // 4 + 1, device="mps")
            # Metal's buffers over the CPU's memory begin and end at pages
            memory = torch.full((limit // 4 + page // 4,), 2.0)
            start = (128 - memory.data_ptr()) % page // 4
            unaligned = memory[start : start + fits.numel()]
            tensor = torch.empty(fits.numel(), device="mps")
            with self.assertRaisesRegex(RuntimeError, "no buffer over"):
                tensor.copy_(unaligned)
            with self.assertRaisesRegex(RuntimeError, "no buffer over"):
                unaligned.copy_(tensor)
            del tensor
            self.assertLessEqual(self.emptied(before), before, f"bytes after the errors of iteration {iteration}")
            self.compare(fits[:8].to("mps").cpu(), fits[:8], "a copy after them")
            self.counts.add(expected=1, operations=1)

    def temporaries(self, size: int, count: int) -> None:
        """Temporaries of size bytes that are alive at once."""
        parts = [torch.full((size // 4,), 1.0, device="mps")]
        while len(parts) < count:
            parts.append(parts[-1] + 1)
        self.total = parts[-1].sum()

    def turns(self, size: int, count: int, heaps: int) -> None:
        """Threads that take turns with temporaries take at most 1.25 times what is alive at once, and what heaps hold beside it."""
        self.temporaries(size, 5 * count)  # a peak from before the cache is emptied counts no more
        alone = self.peak(self.settings.threads, lambda _: self.temporaries(size, count))
        self.temporaries(size, count)  # beside what is in the cache of the main thread
        started: list[threading.Thread] = []
        turns = [threading.Event() for _ in range(self.settings.threads + 1)]
        end = threading.Event()

        def turn(i: int) -> None:
            turns[i].wait()
            self.temporaries(size, count)
            turns[i + 1].set()
            end.wait()  # with its stream

        def step(i: int) -> None:
            started.append(threading.Thread(target=turn, args=(i,)))
            started[i].start()
            if i == 0:
                turns[0].set()
            turns[i + 1].wait()

        together = self.peak(self.settings.threads, step)
        end.set()
        for thread in started:
            thread.join()
        self.counts.facts["bytes alone"], self.counts.facts["bytes in turn"] = alone, together
        self.assertLessEqual(together, size * count * 5 // 4 + heaps, f"bytes in turn; alone: {alone}")
        self.compare(self.total.cpu(), torch.tensor(float(count) * size / 4), "the last sum")
        self.counts.add(expected=1, operations=1)

    def test_turns(self):
        """48 MB of temporaries in tensors of 8 MB."""
        self.turns(BYTES, 6, 32 * MB)

    def test_small_turns(self):
        """48 MB of temporaries in tensors of 1 MB, which the allocator takes from heaps of 8 MB."""
        self.turns(MB, 48, 16 * MB)

    def test_producer(self):
        """A producer on one thread, a consumer on another: memory stays within 1.25 times what is alive at once."""
        size, waiting = BYTES // 4, 2  # numbers; tensors between the two
        room, ready, between = threading.Semaphore(waiting), threading.Semaphore(0), []
        sums: list[torch.Tensor] = []

        def consume() -> None:
            for _ in range(self.settings.iterations):
                ready.acquire()
                tensor = between.pop(0)
                sums.append((tensor * 2)[:4].clone())
                del tensor
                room.release()

        consumer = threading.Thread(target=consume)
        consumer.start()

        def produce(i: int) -> None:
            room.acquire()
            between.append(torch.full((size,), float(i), device="mps"))
            ready.release()

        most = self.peak(self.settings.iterations, produce)
        consumer.join()
        alive = (waiting + 2) * BYTES  # and the product
        self.counts.facts["bytes"] = most
        self.assertLessEqual(most, alive * 5 // 4 + 32 * MB, f"bytes; alive at once are at most {alive}, and heaps have 32 MB")
        for i, found in enumerate(sums):
            self.compare(found.cpu(), torch.full((4,), 2.0 * i), f"step {i}")
        self.counts.add(expected=1, operations=1)

    def test_small_from_large(self):
        """Small tensors of a producer, freed by a consumer that is behind, are not replaced by large blocks: what tensors take stays
        within 1.25 times what is alive at once."""
        small, large, waiting = 5 * MB // 4, 28 * MB, 16
        room, ready, between = threading.Semaphore(waiting), threading.Semaphore(0), []
        sums: list[torch.Tensor] = []
        cache = [torch.ones(small // 4, device="mps") for _ in range(2 * waiting)]
        cache += [torch.ones(large // 4, device="mps") for _ in range(2)]
        self.synchronize()
        before = torch.mps.current_allocated_memory() - 2 * waiting * small - 2 * large
        del cache

        def consume() -> None:
            held: list[torch.Tensor] = []
            for i in range(self.settings.iterations):
                ready.acquire()
                held.append(between.pop(0))
                if len(held) == waiting or i + 1 == self.settings.iterations:
                    self.busy()
                    sums.extend(tensor[:4] * 2 for tensor in held)
                    held.clear()
                    for _ in range(waiting):
                        room.release()

        consumer = threading.Thread(target=consume)
        consumer.start()
        most = 0
        for i in range(self.settings.iterations):
            room.acquire()
            temporary = torch.full((large // 4,), float(i), device="mps")
            number = temporary[:1].clone()
            del temporary
            between.append(torch.zeros(small // 4, device="mps").add_(number))
            most = max(most, torch.mps.current_allocated_memory() - before)
            ready.release()
        consumer.join()
        alive = (2 * waiting + 1) * small + large
        self.counts.facts["bytes"] = most
        self.assertLessEqual(most, alive * 5 // 4, f"bytes of tensors; alive at once are at most {alive}")
        for i, found in enumerate(sums):
            self.compare(found.cpu(), torch.full((4,), 2.0 * i), f"step {i}")
        self.counts.add(expected=1, operations=1)

    def test_come_and_go(self):
        """Threads that come, compute and go, in waves, leave nothing behind: after the first quarter of the waves the process does not grow.
        The software Metal notes some hundred bytes for each thread and signal, which its checker of order needs."""
        early = 0

        def work(i: int) -> None:
            x = torch.full((16, 16), float(i), device="mps")
            self.compare((x @ x + 1).cpu(), torch.full((16, 16), 16.0 * i * i + 1), f"thread {i}")
            self.done()

        for wave in range(self.settings.iterations):
            self.together(work, operations=1, stay=False)
            if wave == self.settings.iterations // 4:
                early = resident()
        grown = resident() - early
        self.counts.facts["bytes grown"], self.counts.facts["threads"] = grown, self.settings.iterations * self.settings.threads
        self.assertLessEqual(grown, 8 * MB, "bytes that the process grew by after the first quarter of the threads")

    def limit(self, size: int) -> None:
        """Leaves the process room for so many bytes more than the driver counts now, with nothing in the cache."""
        self.synchronize()
        torch.mps.empty_cache()
        limit = torch.mps.driver_allocated_memory() + size
        torch.mps.set_per_process_memory_fraction(limit / torch.mps.recommended_max_memory())
        self.addCleanup(torch.mps.set_per_process_memory_fraction, 1.7)

    def test_uploads_at_limit(self):
        """One thread uploads, without blocking, as much as its limit has room for once, again and again: it never runs out of memory."""
        source = torch.ones(BYTES // 4)
        self.limit(144 * MB)  # 12 parts in up to 4 heaps of 32 MB, and a heap of 8 MB for what is small
        for iteration in range(self.settings.iterations):
            for _ in range(64 if iteration % 10 == 0 else 1):  # for longer than the uploads take, at times
                self.busy()
            parts = [torch.empty(BYTES // 4, device="mps").copy_(source, non_blocking=True) for _ in range(12)]
            total = torch.stack([part[:4] for part in parts]).sum()
            del parts
            if iteration % 10 == 9:
                self.compare(total.cpu(), torch.tensor(48.0), f"iteration {iteration}")
        self.counts.add(expected=1, operations=1)

    def test_limit_in_turns(self):
        """Threads take turns under a lock, each with what the limit leaves room for once: none runs out of memory."""
        self.limit(128 * MB)
        lock = threading.Lock()

        def work(i: int) -> None:
            for iteration in range(self.settings.iterations):
                with lock:
                    parts = [torch.full((BYTES // 4,), float(i), device="mps") for _ in range(12)]
                    total = torch.stack([part[:4] for part in parts]).sum()
                    del parts
                self.compare(total.cpu(), torch.tensor(48.0 * i), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_cyclic_graphs(self):
        """A program with more shapes than the default bound of graphs compiles each once in steady state, and empty_cache() keeps them."""
        self.need(torch.mps, "graph_cache_stats")
        shapes, compiled = 600, []
        for turn in range(4):
            for size in range(1, shapes + 1):
                x = torch.full((size,), 2.0, device="mps")
                y = x.sum()
            self.compare(y.cpu(), torch.tensor(2.0 * shapes), f"turn {turn}")
            torch.mps.empty_cache()
            compiled.append(torch.mps.graph_cache_stats()["compiled"])
        self.counts.add(expected=1, operations=1)
        self.counts.facts["graphs in the first turn"] = compiled[0]
        self.assertEqual(compiled[3] - compiled[2], 0, f"graphs compiled in the last turn, after {compiled}")
        self.assertGreaterEqual(compiled[0], shapes)
