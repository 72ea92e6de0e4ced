"""What PYTORCH_MPS_SANITIZE costs: ratios to a run without it. A program of its own: python3 sanitizer_cost.py [ROUNDS]

The variable is read once in a process, so each measurement is a process. Those of one round run one after another, and the
ratio is of the medians of all rounds. What is measured is the processors' time, which other programs change less than the
clock's; over the software Metal that of the GPU is part of it.
"""

import os
import statistics
import subprocess
import sys
import threading
import time

import torch

MODES = ("", "warn", "warn,waits", "poison", "warn,waits,poison")
STEPS = 500


def cases() -> dict:
    vector, square = torch.ones(4096, device="mps"), torch.ones(64, 64, device="mps")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16)).to("mps")
    return {"element-wise": lambda: vector * 2 + 1, "matmul": lambda: square @ square, "small model": lambda: model(square)}


def seconds(step, threads: int) -> float:
    """The processors' time of STEPS steps on each thread; with one, on the main thread, so that there is one stream."""

    def run() -> None:
        with torch.no_grad():
            for _ in range(STEPS):
                step()
            torch.mps.synchronize()

    run()  # compiles
    workers = [threading.Thread(target=run) for _ in range(threads)] if threads > 1 else []
    begin = time.process_time()
    for worker in workers:
        worker.start()
    if not workers:
        run()
    for worker in workers:
        worker.join()
    return time.process_time() - begin


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    found: dict = {}
    for _ in range(rounds):
        for mode in MODES:
            environment = dict(os.environ, PYTORCH_MPS_SANITIZE=mode)
            lines = subprocess.run([sys.executable, __file__, "--measure"], env=environment, capture_output=True, text=True, check=True).stdout
            for line in lines.splitlines():
                name, _, number = line.rpartition("\t")
                found.setdefault(name, {}).setdefault(mode, []).append(float(number))
    for name, modes in found.items():
        off = statistics.median(modes[""])
        print(f"{name}:", ", ".join(f"{mode} {statistics.median(modes[mode]) / off:.2f}" for mode in MODES if mode))


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        for threads in (1, 4):
            for name, step in cases().items():
                print(f"{name}, {threads} thread{'s' if threads > 1 else ''}\t{seconds(step, threads)}")
    else:
        main()
