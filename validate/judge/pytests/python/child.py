"""Runs one test in this process and reports to the runner, a JSON object a line, on a file descriptor of its own.

python3 child.py NAME [--threads N] [--iterations N] [--device mps] [--graph] [--warmup] [--events FD]
python3 child.py --identity [--events FD]

Events: identity (which torch this is; always the first), beat (twice a second: how far it got, peak memory), then one of
skip (with the reason) and result (all counts); late has errors of threads that went on after it, and what was found then. What ends without one of these two has failed, whatever its exit code. On
SIGUSR1 all Python stacks go to standard error, also when no Python code can run any more.
"""

import argparse
import atexit
import faulthandler
import json
import os
import pathlib
import resource
import signal
import sys
import threading
import time
import unittest


class Events:
    """The file that events are written to; a lock keeps their lines whole."""

    def __init__(self, descriptor):
        self._descriptor, self._lock = descriptor, threading.Lock()

    def send(self, event, **fields):
        line = json.dumps({"event": event, **fields}) + "\n"
        with self._lock:
            os.write(self._descriptor, line.encode())


def peak_memory():
    """Bytes. Linux counts in kibibytes, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def beat(events, counts):
    while True:
        time.sleep(0.5)
        events.send("beat", ticks=counts.ticks, memory=peak_memory())


def find(name):
    """The test with this name, of all test_*.py beside this file."""
    tests = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent), "test_*.py")
    flat = [tests]
    while flat:
        test = flat.pop()
        if isinstance(test, unittest.TestSuite):
            flat.extend(test)
        elif test.id().rsplit(".", 1)[-1] == "test_" + name.replace("-", "_"):
            return test
        elif isinstance(test, unittest.loader._FailedTest):
            test.debug()
    sys.exit(f"child.py: there is no test {name}")


def send_late(events, counts, errors, found):
    late = {"errors": counts.errors[errors:], "findings": identity.findings()[found:]}
    if any(late.values()):
        events.send("late", **late)


def run(name, events, arguments):
    import harness

    counts = harness.ParallelTest.counts
    harness.ParallelTest.settings = harness.Settings(
        device=arguments.device, threads=arguments.threads, iterations=arguments.iterations, graph=arguments.graph, warmup=arguments.warmup
    )
    # What a thread that the test made by itself dies of is an error, too.
    threading.excepthook = lambda failure: counts.error(failure.exc_value or failure.exc_type())
    threading.Thread(target=beat, args=(events, counts), name="heartbeat", daemon=True).start()
    test = find(name)
    outcome = test.defaultTestResult()
    test.run(outcome)
    if outcome.skipped:
        events.send("skip", reason=outcome.skipped[0][1])
        return 0
    failures = [text.strip().splitlines()[-1] for _, text in outcome.errors + outcome.failures]
    failures = [text for text in failures if text != f"AssertionError: {counts.problem()}"]  # the runner judges the counts itself
    for _, text in outcome.errors + outcome.failures:
        print(text, file=sys.stderr)
    result = {key: value for key, value in vars(counts).items() if not key.startswith("_")}
    findings = identity.findings()
    atexit.register(send_late, events, counts, len(counts.errors), len(findings))  # runs when all threads have ended
    events.send("result", failures=failures, findings=findings, memory=peak_memory(), **result)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?")
    parser.add_argument("--identity", action="store_true")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--device", default="mps")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--warmup", action="store_true")
    parser.add_argument("--events", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.identity == bool(arguments.name):
        parser.error("name a test, or ask for --identity")
    events = Events(arguments.events)
    events.send("identity", **identity.of_torch(digest=arguments.identity))
    return 0 if arguments.identity else run(arguments.name, events, arguments)


if __name__ == "__main__":
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    import identity

    sys.exit(main())
