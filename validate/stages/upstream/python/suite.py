"""Runs tests of a file of PyTorch's, unchanged, each in a process of its own that is forked from this one.

python3 suite.py FILE [--standin MODULE]... [--jobs N] [--limit SECONDS] [--memory BYTES] [--events FD]

This process imports the file and all that it needs, and never uses device mps. It writes, a JSON object a line: identity (which torch
this is), tests (all names, the macOS that they see, what is installed beside torch). Then it reads names from
standard input, a line each, and writes for each the result. It ends when standard input has ended and all tests have.

A result's outcome is one of unittest's (passed, failed, error, skipped, expected failure, unexpected success), or crash, hang or memory.
"""

import argparse
import contextlib
import faulthandler
import functools
import gc
import importlib.metadata
import json
import os
import pathlib
import signal
import sys

import forked
import identity
import standins
import unittests


def child(test, own, pointed, answer):
    """The whole life of a test's process."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    end = unittests.run(test, own)
    if pointed:
        end["unused"] = not any(standin.used() for standin in pointed)
    del test
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and identity.stamped()[0]:
        torch.mps.synchronize()  # what was still under way may find something, or die
    end["findings"] = identity.findings()
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(answer, json.dumps(end).encode())
    os._exit(0)  # not the end of the interpreter: this is not the process that it began in


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--standin", action="append", default=[], help="a module beside this one, which points the tests at device mps")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--memory", type=int, default=8 << 30)
    parser.add_argument("--events", type=int, default=1)
    limits = parser.parse_args()

    def tell(event, **fields):
        line = (json.dumps({"event": event, **fields}) + "\n").encode()
        while line:
            line = line[os.write(limits.events, line) :]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    path = limits.file.resolve()
    source = path.read_text(encoding="utf-8")
    macos = standins.newest_macos(source)
    with standins.install(macos, limits.memory):
        pointed = [importlib.import_module(name) for name in limits.standin]
        with contextlib.ExitStack() as importing:
            for standin in pointed:
                importing.enter_context(standin.installed())
            module = unittests.load(path)
        tests = unittests.tests_in(module)
        threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
        if threads != 1:  # a fork has only the one that called it: locks that others held would stay locked for ever
            sys.exit(f"suite.py: {path} makes threads when it is imported: {threads}; its tests cannot be forked")
        tell("identity", **identity.of_torch())
        packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
        tell("tests", names=list(tests), macos=macos, packages=packages)
        gc.collect()
        gc.freeze()  # or each child would write to, and so copy, all of these objects
        own = standins.skips_of_mps if pointed else standins.OwnSkips(source)
        forked.serve(tests, lambda name: functools.partial(child, tests[name], own, pointed), limits, tell)


if __name__ == "__main__":
    main()
