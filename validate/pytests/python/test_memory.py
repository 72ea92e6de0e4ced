"""Memory and compiled graphs, against what the same program takes with one stream, or what is alive at once."""

import gc
import sys
import threading
from collections.abc import Callable

import torch
from harness import ParallelTest

MB = 1 << 20
# The allocator takes tensors of this size from heaps of 32 MB, larger ones from heaps of 1 GB, which would hide what they take.
BYTES = 8 * MB
NUMBERS = 1 << 18  # of a copy to the CPU


def resident() -> int:
    """Bytes of the process that are in memory, as Linux counts them."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


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
        before, most = resident(), 0

        def upload(i: int) -> None:
            nonlocal most
            if i == 0:
                for _ in range(8):
                    self.busy()
            target.copy_(sources[i % len(sources)], non_blocking=True)
            most = max(most, resident() - before)

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

    def temporaries(self) -> None:
        """48 MB in temporaries that are alive at once."""
        parts = [torch.full((BYTES // 4,), 1.0, device="mps")]
        while len(parts) < 6:
            parts.append(parts[-1] + 1)
        self.total = parts[-1].sum()

    def test_turns(self):
        """Threads that take turns with temporaries take at most 1.25 times what one thread takes."""
        alone = self.peak(self.settings.threads, lambda _: self.temporaries())
        self.temporaries()  # beside what is in the cache of the main thread
        started: list[threading.Thread] = []
        turns = [threading.Event() for _ in range(self.settings.threads + 1)]
        end = threading.Event()

        def turn(i: int) -> None:
            turns[i].wait()
            self.temporaries()
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
        self.assertLessEqual(together, alone * 5 // 4, f"bytes in turn; alone: {alone}")
        self.compare(self.total.cpu(), torch.tensor(6.0 * BYTES / 4), "the last sum")
        self.counts.add(expected=1, operations=1)

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

    def test_limit_in_turns(self):
        """Threads take turns under a lock, each with what the limit leaves room for once: none runs out of memory."""
        self.synchronize()
        torch.mps.empty_cache()
        limit = torch.mps.driver_allocated_memory() + 128 * MB
        torch.mps.set_per_process_memory_fraction(limit / torch.mps.recommended_max_memory())
        self.addCleanup(torch.mps.set_per_process_memory_fraction, 1.7)
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
