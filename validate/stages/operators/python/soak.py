"""Runs operators by threads in one process for a long time, with changing seeds, and watches what the process holds.

python3 soak.py --seconds N [--seed N] [--device mps]

Each round runs an operator in a form, by threads that are new, compares all values, and takes a sample: resident memory, open files, threads, the
backend's memory, graphs and commands' ranges that the software Metal's checker remembers. Ends with 0 if all values were right and nothing has
grown after the first half; a line of JSON a minute, and the verdict as the last.
"""

import argparse
import ctypes
import gc
import json
import os
import random
import statistics
import sys
import time

# Those that models are made of, and whose graphs, kernels, copies and reductions differ. An entry that ends its process alone has no place here.
OPERATORS = (
    "add mul sub mm bmm addmm matmul exp tanh sigmoid rsqrt pow clamp where cat stack sum mean std amax argmax cumsum sort topk gather "
    "scatter_add index_select index_add tril flip roll repeat softmax log_softmax nn.functional.linear nn.functional.conv2d nn.functional.gelu "
    "nn.functional.layer_norm nn.functional.batch_norm nn.functional.embedding nn.functional.max_pool2d nn.functional.mse_loss nn.functional.cross_entropy"
).split()
FORMS = ("basic", "backward", "out", "in-place", "shared", "made-elsewhere", "handed-on", "strided", "first-work", "streams")
# What each may grow by, after the first half, without being called growth: noise of allocators, and streams that are made late, with a thread each.
SLACK = {"resident": 32 << 20, "files": 2, "threads": 32, "current": 1 << 20, "driver": 32 << 20, "graphs": 16, "checker_ranges": 20000}


class Statistics(ctypes.Structure):
    """mpsforge_host_statistics of native/objc/include/mpsforge/host.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("command_buffers", "commands", "handlers", "races", "violations", "checker_ranges", "checker_bytes")]


def sample(torch, engine, device):
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        held = {"resident": int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}
    held["files"], held["threads"] = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    if device == "mps":
        torch.mps.synchronize()
        torch.mps.empty_cache()
        held["current"], held["driver"] = torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
    if engine is not None:
        found = Statistics()
        engine.mpsforge_host_get_statistics(ctypes.byref(found))
        engine.mpsforge_host_live_graphs.restype = ctypes.c_uint64
        held["graphs"], held["checker_ranges"] = engine.mpsforge_host_live_graphs(), found.checker_ranges
    return held


def grown(samples):
    """What has grown between the third and the last quarter of the samples, by their medians: name, before and after."""
    quarter = len(samples) // 4
    if quarter == 0:
        return []
    third, last = samples[-2 * quarter : -quarter], samples[-quarter:]
    medians = ((name, statistics.median(s[name] for s in third), statistics.median(s[name] for s in last)) for name in samples[0])
    return [(name, before, after) for name, before, after in medians if after - before > SLACK[name]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="mps")
    arguments = parser.parse_args()

    import identity
    import job
    import storm
    import torch

    path = next((image for image in identity.images() if "mpsforge_objc" in os.path.basename(image)), None)
    engine = ctypes.CDLL(path) if path else None
    entries = storm.load_entries()
    started = said = time.monotonic()
    samples, ends, draw = [], {}, random.Random(arguments.seed)
    while (now := time.monotonic()) - started < arguments.seconds:
        asked = {"operator": draw.choice(OPERATORS), "dtype": "float32", "form": draw.choice(FORMS), "threads": draw.randint(2, 12)}
        asked |= {"seed": draw.randrange(1 << 30), "rounds": 2, "samples": 4, "device": arguments.device}
        result = job.run(asked, entries, identity.findings, lambda **_: None)
        ends[result["status"]] = ends.get(result["status"], 0) + 1
        if result["status"] not in ("right", "does not run alone", "does not apply"):
            print(json.dumps({"failed": asked, "result": result}))
            return 1
        samples.append(sample(torch, engine, arguments.device))
        if now - said > 60:
            said = now
            print(json.dumps({"seconds": round(now - started), "rounds": len(samples), **samples[-1]}), flush=True)
    growth = grown(samples)
    print(json.dumps({"rounds": len(samples), "ends": ends, "first": samples[0], "middle": samples[len(samples) // 2], "last": samples[-1], "grown": growth}))
    return 1 if growth or not ends.get("right") else 0


if __name__ == "__main__":
    sys.exit(main())
