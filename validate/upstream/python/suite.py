"""Runs tests of a file of PyTorch's, unchanged, each in a process of its own that is forked from this one.

python3 suite.py FILE [--standin MODULE]... [--jobs N] [--limit SECONDS] [--memory BYTES] [--events FD]

This process imports the file and all that it needs, and never uses device mps. It writes, a JSON object a line: identity (which torch
this is), tests (all names, the macOS that they see, the operators that have a kernel for MPS). Then it reads names from
standard input, a line each, and writes for each the result. It ends when standard input has ended and all tests have.

A result's outcome is one of unittest's (passed, failed, error, skipped, expected failure, unexpected success), or crash, hang or memory.
"""

import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

import identity
import standins

TEXT = 2000  # characters of an exception that a result keeps
OUTPUT = 24 << 10  # bytes of a bad test's output that a result keeps
WRITTEN = 1 << 30  # bytes that a test's process may write to a file; its output is one
ANSWER = 16 << 20  # bytes that it may report
PAUSE = 0.02  # seconds between two looks at the running tests


def tests_of(suite):
    """All tests, by name: Class.method."""
    found = {}
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            found.update(tests_of(test))
        elif exception := getattr(test, "_exception", None):  # what unittest makes of a file whose tests it cannot gather
            raise exception
        else:
            found[test.id().split(".", 1)[1]] = test
    return found


def load(path):
    """The module of a test file, as its tests find it: its folder is where modules are looked for."""
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]  # PyTorch's test modules read their own arguments, and look whether the tests are of the program that runs
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def root_of(exception):
    """The exception that began it: PyTorch's tests wrap what an operator raised into one that names the sample."""
    while exception.__cause__ is not None:
        exception = exception.__cause__
    return exception


class Result(unittest.TestResult):
    """Keeps the exceptions themselves beside their texts."""

    def __init__(self):
        super().__init__()
        self.raised = []

    def addError(self, test, err):
        super().addError(test, err)
        self.raised.append(("error", err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.raised.append(("failed", err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.raised.append(("failed" if issubclass(err[0], test.failureException) else "error", err[1]))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.raised.append(("expected failure", err[1]))


def run(test, own):
    """Runs one test in this process and gives its end."""
    result = Result()
    unittest.TestSuite([test]).run(result)
    for _, text in result.errors + result.failures:
        sys.stderr.write(text + "\n")
    unexpected = [(outcome, exception) for outcome, exception in result.raised if outcome != "expected failure"]
    if result.raised:
        outcome, exception = (unexpected or result.raised)[0]
        root = root_of(exception)
        return {"outcome": outcome, "type": type(root).__name__, "text": str(root)[:TEXT]}
    if result.errors or result.failures:
        return {"outcome": "error", "type": "unknown", "text": (result.errors + result.failures)[0][1][-TEXT:]}
    if result.unexpectedSuccesses:
        return {"outcome": "unexpected success"}
    if result.skipped:
        reason = result.skipped[0][1]
        return {"outcome": "skipped", "text": reason, "own": own(reason)}
    if result.testsRun != 1:
        return {"outcome": "error", "type": "RuntimeError", "text": f"unittest ran {result.testsRun} tests instead of one"}
    return {"outcome": "passed"}


def child(test, own, pointed, answer):
    """The whole life of a test's process."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    end = run(test, own)
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


def die_with_parent(parent):
    """Lets the system end this process when its parent dies, on systems that can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it died before
        os._exit(70)


class Running:
    """A test's process, from its start to its end."""

    def __init__(self, name, test, own, pointed, limits):
        self.name, self.limits, self.started, self.stopped = name, limits, time.monotonic(), ""
        self.output, parent = tempfile.TemporaryFile(), os.getpid()
        self.answer, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            die_with_parent(parent)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            os.close(self.answer)
            os.close(limits.events)  # who reads them waits for the end of all that could write
            for descriptor in (1, 2):
                os.dup2(self.output.fileno(), descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            try:
                child(test, own, pointed, write)
            finally:
                os._exit(70)  # an exception must not run the parent's program
        os.close(write)
        os.set_blocking(self.answer, False)
        self.words = b""

    def resident(self):
        """Bytes of memory, where the system reports them."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return 0

    def listen(self):
        """Takes what the process has written so far: a pipe that is full would stop it."""
        try:
            while len(self.words) <= ANSWER and (block := os.read(self.answer, 1 << 16)):
                self.words += block
        except BlockingIOError:
            pass

    def dump(self):
        """All stacks into the output: Python's own, and the native ones where there is a debugger."""
        os.kill(self.pid, signal.SIGUSR1)
        time.sleep(0.5)
        if shutil.which("gdb"):
            asked = ["gdb", "-p", str(self.pid), "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "thread apply all bt 24"]
            try:
                subprocess.run(asked, stdout=self.output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60, check=False)
            except subprocess.TimeoutExpired:
                pass

    def end(self):
        """The result, once the process has ended; until then None."""
        self.listen()
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.started
        if pid == 0:
            if seconds > self.limits.limit:
                self.stopped = "hang"
                self.dump()
            elif self.resident() > self.limits.memory:
                self.stopped = "memory"
            if self.stopped:
                os.killpg(self.pid, signal.SIGKILL)
                pid, status, usage = os.wait4(self.pid, 0)
            else:
                return None
        try:
            os.killpg(self.pid, signal.SIGKILL)  # processes that the test has left behind
        except ProcessLookupError:
            pass
        self.listen()
        os.close(self.answer)
        return self.judge(status, seconds, usage)

    def kill(self):
        os.killpg(self.pid, signal.SIGKILL)
        os.wait4(self.pid, 0)

    def judge(self, status, seconds, usage):
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - OUTPUT))
        output = self.output.read().decode(errors="replace")
        self.output.close()
        code = os.waitstatus_to_exitcode(status)
        result: dict[str, Any]
        if self.stopped:
            result = {"outcome": self.stopped, "text": f"ended after {seconds:.0f} s" if self.stopped == "hang" else "used too much memory"}
        elif code != 0 or not self.words:
            died = f"died by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code} without a result"
            result = {"outcome": "crash", "text": died + (" after its result" if self.words else "")}
        else:
            result = answered(self.words)
        if result["outcome"] in ("passed", "skipped", "expected failure") and not result.get("findings"):
            output = ""
        return {**result, "name": self.name, "seconds": round(seconds, 3), "memory": usage.ru_maxrss, "output": output}


def answered(words):
    """The result that a process has written: one, and nothing else."""
    try:
        result = json.loads(words)
    except ValueError:
        result = None
    if isinstance(result, dict) and "outcome" in result:
        return result
    return {"outcome": "crash", "text": f"wrote what is not one result: {words[:200]!r}"}


def names_from(descriptor, wait):
    """Lines that standard input holds now, or waits for some; None at its end."""
    if not select.select([descriptor], [], [], wait)[0]:
        return b""
    return os.read(descriptor, 1 << 16) or None


def serve(tests, own, pointed, limits, tell):
    """Runs what standard input names until it has ended."""
    running: list[Running] = []
    try:
        run_all(tests, own, pointed, limits, tell, running)
    finally:
        for one in running:  # this process must end
            one.kill()


def run_all(tests, own, pointed, limits, tell, running):
    waiting = collections.deque()
    rest, open_ = b"", True
    while open_ or waiting or running:
        if open_:
            block = names_from(0, 0 if running or waiting else 1)
            if block is None:
                open_ = False
            else:
                *lines, rest = (rest + block).split(b"\n")
                waiting.extend(line.decode() for line in lines)
        while waiting and len(running) < limits.jobs:
            name = waiting.popleft()
            if name not in tests:
                tell("result", name=name, outcome="error", text="there is no such test")
                continue
            running.append(Running(name, tests[name], own, pointed, limits))
        for one in list(running):
            if end := one.end():
                running.remove(one)
                tell("result", **end)
        if running:
            time.sleep(PAUSE)


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
        import torch

        pointed = [importlib.import_module(name) for name in limits.standin]
        with contextlib.ExitStack() as importing:
            for standin in pointed:
                importing.enter_context(standin.installed())
            module = load(path)
        tests = tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))
        threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
        if threads != 1:  # a fork has only the one that called it: locks that others held would stay locked for ever
            sys.exit(f"suite.py: {path} makes threads when it is imported: {threads}; its tests cannot be forked")
        tell("identity", **identity.of_torch())
        packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
        tell("tests", names=list(tests), macos=macos, packages=packages, operators=torch._C._dispatch_get_registrations_for_dispatch_key("MPS"))
        gc.collect()
        gc.freeze()  # or each child would write to, and so copy, all of these objects
        own = standins.skips_of_mps if pointed else standins.OwnSkips(source)
        serve(tests, own, pointed, limits, tell)


if __name__ == "__main__":
    main()
