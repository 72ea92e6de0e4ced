"""Runs work in processes that are forked from this one, which has imported all that they need and uses no device, and listens to how
each ends: a crash, a hang or too much memory is a result."""

import collections
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

OUTPUT = 24 << 10  # bytes of a bad test's output that a result keeps
WRITTEN = 1 << 30  # bytes that a test's process may write to a file; its output is one
ANSWER = 16 << 20  # bytes that it may report
PAUSE = 0.02  # seconds between two looks at the running tests


def die_with_parent(parent):
    """Lets the system end this process when its parent dies, on systems that can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it died before
        os._exit(70)


class Running:
    """A process, from its start to its end. Its work gets the descriptor for its result, and ends the process."""

    def __init__(self, name, work, limits):
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
            if torch := sys.modules.get("torch"):  # once asked for mps, it takes a fork for a bad one, and seeds no generator of mps
                torch.mps._is_in_bad_fork = lambda: False
            try:
                work(write)
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
            os.killpg(self.pid, signal.SIGKILL)  # processes that it has left behind
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


def serve(names, work_of, limits, tell):
    """Runs what standard input names, a line each, until it has ended. work_of gives the work of a name."""
    running: list[Running] = []
    try:
        run_all(names, work_of, limits, tell, running)
    finally:
        for one in running:  # this process must end
            one.kill()


def run_all(names, work_of, limits, tell, running):
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
            if name not in names:
                tell("result", name=name, outcome="error", text="there is no such name")
                continue
            running.append(Running(name, work_of(name), limits))
        for one in list(running):
            if end := one.end():
                running.remove(one)
                tell("result", **end)
        if running:
            time.sleep(PAUSE)


