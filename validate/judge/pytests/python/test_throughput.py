"""What the stage bench measures beside the tests' own speeds: batches, steps against a lock, and what operators of the CPU pay."""

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
import timeit

import operations
import torch
from harness import ParallelTest, numbers, resident

BATCHES = (1, 8, 64, 256)
WARM_STEPS = 5
STEPS_FACT = "steps a second"
THREAD_BYTES_FACT = "bytes a thread"
STREAMS_FACT = "streams"
CPU_COSTS = ("add_", "view")


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

    def test_steps_16(self):
        """Small steps of a model by each thread: the host's work counts."""
        self.steps(16)

    def test_steps_512(self):
        """Larger ones."""
        self.steps(512)

    def steps(self, width: int):
        """Each thread has its own input and all have the same weights. With MPSFORGE_ONE_AT_A_TIME=1 a lock of the program's own lets
        one thread do a step at a time, without which stock dies. The steps a second of all threads, once all are warm, are a fact."""
        device, iterations = self.settings.device, self.settings.iterations
        lock = threading.Lock() if os.environ.get("MPSFORGE_ONE_AT_A_TIME") == "1" else contextlib.nullcontext()
        threads = self.settings.threads
        meet, found, times = threading.Barrier(threads), {}, {}

        def step(x, weight):
            y = torch.relu(torch.mm(x, weight)) + x
            return torch.nn.functional.layer_norm(y, (width,)).abs().sum().item()

        def work(i):
            with torch.no_grad():
                with lock:
                    x = inputs[i].to(device)
                for _ in range(WARM_STEPS):
                    with lock:
                        step(x, weight)
                meet.wait()
                begin = time.perf_counter()
                found[i] = []
                for _ in range(iterations):
                    with lock:
                        found[i].append(step(x, weight))
                    self.done()
                times[i] = (begin, time.perf_counter())
                with lock:
                    del x

        with torch.no_grad():
            inputs, here = [numbers(i, 16, width) for i in range(threads)], numbers(99, width, width) * width**-0.5
            weight = here.to(device)
            self.together(work)
            for i, values in found.items():
                expected = torch.tensor(step(inputs[i], here)).expand(len(values))
                self.compare(torch.tensor(values), expected, f"thread {i}", 1e-4)
                self.counts.add(answers=len(values) - 1)
        self.note_speed(times)

    def note_speed(self, times: dict[int, tuple[float, float]]):
        """Makes the steps a second of all threads a fact, from when each began and ended; if one did not, there is none."""
        if len(times) == self.settings.threads:
            seconds = max(end for _, end in times.values()) - min(begin for begin, _ in times.values())
            self.counts.facts[STEPS_FACT] = self.settings.threads * self.settings.iterations / seconds

    def test_scale(self):
        """So many threads, each with a stream of its own, all at once; the steps a second of all, what the process grew by for each
        thread, and how many streams there are, are facts."""
        self.need_mps()
        device, iterations, threads = self.settings.device, self.settings.iterations, self.settings.threads
        meet, done, times = threading.Barrier(threads), threading.Barrier(threads), {}
        weight = numbers(0, 16, 16)
        expected = torch.relu(numbers(1, 4, 16) @ weight).sum()
        with torch.no_grad():
            on_device, x = weight.to(device), numbers(1, 4, 16).to(device)
            self.compare(torch.relu(x @ on_device).sum().cpu(), expected, "before the threads", 1e-4, answer=False)
            before = resident()

        def work(i):
            found = []
            with torch.no_grad():
                for step in range(WARM_STEPS + iterations):
                    if step == WARM_STEPS:
                        meet.wait()
                        begin = time.perf_counter()
                    found.append(torch.relu(x @ on_device).sum().cpu())
                    if step >= WARM_STEPS:
                        self.done()
            times[i] = (begin, time.perf_counter())
            if done.wait() == 0:  # all have their streams yet
                self.counts.facts[THREAD_BYTES_FACT] = (resident() - before) / threads
                self.counts.facts[STREAMS_FACT] = torch.mps.stream_pool_stats()["streams"]
            self.compare(torch.stack(found[WARM_STEPS:]), expected.expand(iterations), f"thread {i}", 1e-4)
            self.counts.add(answers=iterations - 1)

        self.together(work)
        self.note_speed(times)

    def test_cpu_cost(self):
        """What operators of the CPU cost in a process whose threads have used MPS, by what they cost in one where only the main
        thread has: two processes measure in turn, and the median of the blocks' ratios is a fact."""
        self.need_mps()
        programs = [subprocess.Popen([sys.executable, __file__, str(streams)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for streams in (0, 1)]

        def block(program):
            program.stdin.write("\n")
            program.stdin.flush()
            return [float(word) for word in program.stdout.readline().split()]

        try:
            for program in programs:
                block(program)  # what comes first is slower
            ratios = []
            for turn in range(self.settings.iterations):
                order = programs if turn % 2 == 0 else programs[::-1]
                times = {program: block(program) for program in order}
                before, after = times[programs[0]], times[programs[1]]
                ratios.append([a / b for a, b in zip(after, before, strict=True)])
                self.compare(torch.tensor(float(len(before))), torch.tensor(float(len(CPU_COSTS))), "measured")
                self.counts.add(expected=1)
                self.done()
            for i, name in enumerate(CPU_COSTS):
                self.counts.facts[f"{name} on the CPU, several streams by one"] = statistics.median(ratio[i] for ratio in ratios)
        finally:
            for program in programs:
                program.stdin.close()
                program.wait()


def measure_cpu():
    """The program of test_cpu_cost: for each line of its input it prints microseconds for each of CPU_COSTS."""
    tensor = torch.zeros(16)

    def use():
        torch.ones(4, device="mps").add_(1).cpu()

    use()
    if sys.argv[1] == "1":
        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
    calls = {"add_": lambda: tensor.add_(1), "view": lambda: tensor.view(4, 4)}
    assert tuple(calls) == CPU_COSTS
    for _ in sys.stdin:
        print(*[1e6 * min(timeit.repeat(call, number=2000, repeat=3)) / 2000 for call in calls.values()], flush=True)


if __name__ == "__main__":
    measure_cpu()
