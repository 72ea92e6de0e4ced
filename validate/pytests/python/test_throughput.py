"""What is gained by batches: the bench stage's counterpart to threads."""

import time

import operations
import torch
from harness import ParallelTest, numbers

BATCHES = (1, 8, 64, 256)


class Throughput(ParallelTest):
    def test_batching(self):
        """One thread, one model, and batches of several sizes; the samples a second of each are facts."""
        device = self.settings.device
        with torch.no_grad():
            model, on_cpu = operations.MLP(device), operations.MLP("cpu")
            for batch in BATCHES:
                x = numbers(batch, batch, 64)
                on_device = x.to(device)
                model(on_device).cpu()
                begin = time.perf_counter()
                results = []
                for _ in range(self.settings.iterations):
                    results.append(model(on_device).cpu())
                    self.done()
                seconds = time.perf_counter() - begin
                self.counts.add(expected=self.settings.iterations, seconds=seconds)
                self.counts.facts[f"samples/s in batches of {batch}"] = batch * self.settings.iterations / seconds
                for result in results:
                    self.compare(result, on_cpu(x), f"batch of {batch}", 1e-4)
