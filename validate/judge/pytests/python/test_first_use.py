"""What is made at first use, and caches that are emptied while in use."""

import threading

import operations
import torch
from harness import ParallelTest

KINDS = [operations.Tensors, operations.Linear, operations.Sequential, operations.Conv1d, operations.LayerNorm, operations.Softmax]


class FirstUse(ParallelTest):
    def test_cold_start(self):
        """All threads use the device for the first time at once, each beginning with another operation."""
        device = self.settings.device
        results = [{} for _ in range(self.settings.threads)]

        def compute(kind):
            operation = kind(device)
            return operation(*[tensor.to(device) for tensor in operation.inputs(0)]).cpu()

        def work(i):
            with torch.no_grad():
                for step in range(len(KINDS)):
                    kind = KINDS[(i + step) % len(KINDS)]
                    results[i][kind] = compute(kind)
                    self.done()

        with torch.no_grad():
            if self.settings.warmup:
                for kind in KINDS:
                    compute(kind)
            self.together(work, operations=len(KINDS))
            for kind in KINDS:
                expected = compute(kind)
                cpu = kind("cpu")
                self.compare(expected, cpu(*cpu.inputs(0)), f"{kind.__name__}, alone against the CPU", 1e-4, answer=False)
                for i, found in enumerate(results):
                    if kind in found:
                        self.compare(found[kind], expected, f"{kind.__name__}, thread {i}")

    def test_empty_cache(self):
        """The main thread's helper empties the cache again and again while threads run graphs."""
        self.need_mps()
        stop = threading.Event()

        def empty():
            while not stop.wait(0.001):
                torch.mps.empty_cache()

        thread = threading.Thread(target=empty)
        thread.start()
        try:
            self.parallel(operations.Softmax)
        finally:
            stop.set()
            thread.join()

    def test_graph_cache_bound(self):
        """Threads see more shapes than graphs may be kept. Then one comes back to few shapes, and compiles each of them once."""
        self.need_mps()

        def total(size: int, what: str, answer: bool = True):
            self.compare(torch.ones(size, device="mps").sum().cpu(), torch.tensor(float(size)), what, answer=answer)

        def work(i: int):
            for iteration in range(self.settings.iterations):
                total(10 + i + self.settings.threads * iteration, f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)
        compiled = []
        for turn in range(3):
            for size in range(1, 4):
                total(size, f"turn {turn}", answer=False)
            compiled.append(torch.mps.graph_cache_stats()["compiled"])
        self.assertEqual(compiled[1:], compiled[:1] * 2, "graphs compiled after each turn")
