"""Runs programs on the main thread, each in a process of its own that is forked from this one, and writes what each gave and did.

python3 onethread.py --seed N [--tests FILE] [--memory BYTES] [--limit SECONDS] [--jobs N] [--events FD]

This process imports everything and uses no device. It writes, a JSON object a line: identity (which torch this is), programs (the names
of all that there are). Then it reads names from standard input, a line each, and writes for each a result: how it ended, its values
(bytes by their digest), the memory at its end and after it, and the record of the software Metal.
"""

import argparse
import faulthandler
import functools
import gc
import hashlib
import json
import os
import pathlib
import random
import signal
import sys

import forked
import identity
import programs
import standins
import unittests
import values


def describe(leaf):
    """A value in one word: type, shape and digest of a tensor, else its text."""
    import torch

    if not isinstance(leaf, torch.Tensor):
        return str(leaf)[:300]
    settled = values.settled(leaf)
    digest = hashlib.sha256(values.bits(settled).numpy().tobytes()).hexdigest()[:16]
    return f"{values.kind(settled)} {digest}"


def memory():
    import torch

    return {"current": torch.mps.current_allocated_memory(), "driver": torch.mps.driver_allocated_memory()}


def end_of(program, seed):
    """The program's end in this process."""
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    outcome, text, leaves = "passed", "", []
    try:
        leaves = program()
    except Exception as error:  # noqa: BLE001 what stock raises the patched sources are to raise, too
        outcome, text = "error", f"{type(error).__name__}: {str(error).strip()[:2000]}"
    torch.mps.synchronize()
    inside = memory()
    # Read after the record of what the program did: the copies to the CPU would hide what it left open.
    record = identity.recorded()
    described = [describe(leaf) for leaf in leaves]
    del leaves
    gc.collect()
    torch.mps.synchronize()
    torch.mps.empty_cache()
    return {"outcome": outcome, "text": text, "values": described, "end": inside, "after": memory(), "record": record}


def child(program, seed, answer):
    """The whole life of a program's process."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    end = end_of(program, seed)
    end["findings"] = identity.findings()
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(answer, json.dumps(end).encode())
    os._exit(0)


def seed_of(seed, name):
    """A program's own seed: it depends on nothing but the run's and the name."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--tests", type=pathlib.Path, help="PyTorch's test/test_mps.py, of which programs are, too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--memory", type=int, default=8 << 30)
    parser.add_argument("--events", type=int, default=1)
    limits = parser.parse_args()

    def send(event, **fields):
        line = (json.dumps({"event": event, **fields}) + "\n").encode()
        while line:
            line = line[os.write(limits.events, line) :]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    macos = standins.newest_macos(limits.tests.read_text(encoding="utf-8")) if limits.tests else ""
    with standins.install(macos, limits.memory):
        send("identity", **identity.of_torch())
        tests = {}
        if limits.tests:
            loaded = unittests.tests_in(unittests.load(limits.tests.resolve()))
            tests = {f"test {name}": functools.partial(programs.of_test, test) for name, test in loaded.items()}
        everything = {**programs.catalogue(functools.partial(seed_of, limits.seed)), **tests}
        send("programs", names=list(everything))
        gc.collect()
        gc.freeze()
        forked.serve(everything, lambda name: functools.partial(child, everything[name], seed_of(limits.seed, name)), limits, send)


if __name__ == "__main__":
    main()
