"""What the parallel tests share: threads that start at once, values that are compared, and counts of both.

A test is a method test_NAME of a ParallelTest. It may be run by unittest alone (python3 -m unittest discover, in this
folder); mpsforge runs each in a process of its own through child.py, and judges by the counts.
"""

import ctypes
import dataclasses
import os
import signal
import threading
import time
import unittest
from collections.abc import Callable

import identity
import torch


@dataclasses.dataclass
class Settings:
    """What a run of a test varies."""

    device: str = "mps" if torch.backends.mps.is_available() else "cpu"
    threads: int = 4
    iterations: int = 10
    graph: bool = False  # inputs that the no-graph path of Linear does not take
    warmup: bool = False  # one thread goes first; by default nothing does


class Counts:
    """What a test did. All of it is counted, so that what did not happen cannot pass."""

    def __init__(self):
        self._lock = threading.Lock()
        self.reset()

    def reset(self):
        self.expected = 0  # operations that the threads are to do
        self.operations = 0  # operations that they did
        self.answers = 0  # results of operations that were compared
        self.values = 0  # numbers that were compared
        self.wrong = 0  # numbers that were not as they should be
        self.first_wrong = ""
        self.errors = []  # exceptions of the threads
        self.seconds = 0.0  # from the threads' start to their end
        self.facts = {}  # what else the test found out
        self.ticks = 0  # rises as long as the test gets anywhere

    def add(self, **numbers):
        with self._lock:
            self.ticks += 1
            for name, number in numbers.items():
                setattr(self, name, getattr(self, name) + number)

    def error(self, error):
        with self._lock:
            self.errors.append(f"{type(error).__name__}: {error}".splitlines()[0])

    def problem(self):
        """Why this is not a pass, or an empty text."""
        if self.errors:
            return f"errors: {len(self.errors)}, the first: {self.errors[0]}"
        if self.wrong:
            return f"wrong values: {self.wrong} of {self.values}, the first: {self.first_wrong}"
        if self.operations != self.expected:
            return f"operations done: {self.operations} of {self.expected}"
        if self.answers < self.operations:
            return f"results compared: {self.answers} of {self.operations}"
        if self.values == 0:
            return "no value was compared"
        return ""


def numbers(seed, *shape):
    """The same numbers for the same seed, made on the CPU, whatever other threads do."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def resident() -> int:
    """Bytes of the process that are in memory, as Linux counts them; -1 elsewhere."""
    if not os.path.exists("/proc/self/statm"):
        return -1
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether done() comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not (is_done := done()) and time.monotonic() < deadline:
        time.sleep(0.001)
    return is_done


def exit_code(child: int, seconds: float) -> int | None:
    """The exit code of a forked child, negative for a signal. None if it does not end in time: then it is killed."""
    deadline = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


def settle(module):
    """Gives a module parameters that are the same each time; what its constructor drew depends on the thread."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(100 + i, *parameter.shape) * parameter.shape[-1] ** -0.5)
    return module.eval()


class ParallelTest(unittest.TestCase):
    settings = Settings()
    counts = Counts()

    def setUp(self):
        self.counts.reset()

    def tearDown(self):
        problem = self.counts.problem()
        if problem and self.tests_ran():
            self.fail(problem)

    def tests_ran(self):
        """Whether the test neither failed by itself nor was skipped, so that its counts mean something."""
        outcome = self._outcome
        return outcome is None or outcome.success

    def need(self, module, *names):
        """Skips the test unless the loaded torch has all of these."""
        missing = [f"{module.__name__}.{name}" for name in names if not hasattr(module, name)]
        if missing:
            self.skipTest(f"this torch has no {', '.join(missing)}")

    def need_ability(self, what, attempt):
        """Skips the test, with the loaded torch's own words, unless that torch can do what attempt() does."""
        self.need_mps()
        try:
            attempt()
        except Exception as error:  # noqa: BLE001 which one says that a function lacks a device differs
            self.skipTest(f"this torch cannot do {what}: {type(error).__name__}: {str(error).splitlines()[0]}")

    def need_shader_compiler(self):
        """torch.mps.compile_shader, which PyTorch 2.6 calls _compile_shader; skips the test where there is neither."""
        for name in ("compile_shader", "_compile_shader"):
            if hasattr(torch.mps, name):
                return getattr(torch.mps, name)
        self.skipTest("this torch has no torch.mps.compile_shader")

    def need_mps(self):
        if self.settings.device != "mps":
            self.skipTest(f"speaks of device mps; this is {self.settings.device}")

    def need_extension(self):
        """The functions that a host build of mpsforge has for these tests; skips the test on another torch."""
        try:
            import _mpsforge_hostmps
        except ImportError:
            self.skipTest("needs the extension of a host build (mpsforge build --host)")
        return _mpsforge_hostmps

    def has_callbacks(self):
        """Whether PyTorch has a callback that every operator of every device calls (at::hasGlobalCallbacks)."""
        for path in identity.images():
            ask = identity.symbol(path, "_ZN2at18hasGlobalCallbacksEv", None) if "libtorch_cpu." in path else None
            if ask is not None:
                ask.restype = ctypes.c_bool
                return ask()
        raise AssertionError("no loaded libtorch_cpu has at::hasGlobalCallbacks")

    def synchronize(self):
        if self.settings.device == "mps":
            torch.mps.synchronize()

    def together(self, work, operations=None, threads=None, stay=True):
        """Calls work(i) on each of the threads, which start at once, and waits for all of them.

        Each thread is to call done() for each of its operations. Errors of threads fail the test when all have ended.
        With stay no thread ends before all are done, so that none takes over what another has leased.
        """
        threads = threads or self.settings.threads
        operations = self.settings.iterations if operations is None else operations
        self.counts.add(expected=threads * operations)
        barrier, end = threading.Barrier(threads + 1), threading.Barrier(threads)

        def run(i):
            barrier.wait()
            try:
                work(i)
            except BaseException as error:  # noqa: BLE001 whatever ends a thread is a result
                self.counts.error(error)
            if stay:
                end.wait()

        started = [threading.Thread(target=run, args=(i,), name=f"worker {i}") for i in range(threads)]
        for thread in started:
            thread.start()
        barrier.wait()
        begin = time.perf_counter()
        for thread in started:
            thread.join()
        self.counts.add(seconds=time.perf_counter() - begin)

    def in_turn(self, work):
        """Calls work(i) on one thread after the other: the next starts when the one before has ended. Stock is right here."""
        for i in range(self.settings.threads):
            self.together(lambda _, i=i: work(i), operations=1, threads=1)

    def busy(self):
        """Gives the calling thread's stream work for some hundredths of a second, on Apple's GPUs for less. What the thread enqueues next is
        done late, so that who does not wait for it sees what was there before."""
        square = torch.ones(512, 512, device=self.settings.device)
        torch.mm(square, square)

    def done(self):
        self.counts.add(operations=1)

    def compare(self, actual, expected, what, tolerance=0.0, answer=True):
        """Compares two tensors of the CPU, by default bit for bit. An answer is the result of a thread's operation."""
        self.counts.add(answers=int(answer), values=expected.numel())
        if actual.shape != expected.shape:
            self.counts.add(wrong=expected.numel())
            self.counts.first_wrong = self.counts.first_wrong or f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
            return
        bad = ~((actual == expected) | ((actual - expected).abs() <= tolerance * (1 + expected.abs())))
        if bad.any():
            at = tuple(bad.nonzero()[0].tolist())
            self.counts.add(wrong=int(bad.sum()))
            self.counts.first_wrong = self.counts.first_wrong or f"{what}{list(at)}: {actual[at].item()!r}, expected {expected[at].item()!r}"

    def inputs(self, operation, case):
        """The inputs of an operation's case, on the device; in a form that only the graph path takes, if that is asked for."""
        tensors = [tensor.to(self.settings.device) for tensor in operation.inputs(case)]
        if self.settings.graph:
            tensors = [tensor.mT.contiguous().mT for tensor in tensors]
        return tensors

    def parallel(self, kind, tolerance=1e-4, own=False, cases=8, stay=True):
        """Runs an operation on all threads: one object shared by them, or with own one for each, made by its thread.

        Each result is compared bit for bit with the same computation done alone afterwards, and that with the CPU within
        the tolerance. Nothing runs on the device before the threads start but what making the shared object does.
        """
        device = self.settings.device
        results = [[] for _ in range(self.settings.threads)]
        shared = None if own else kind(device)

        def work(i):
            with torch.no_grad():
                operation = shared or kind(device)
                for iteration in range(self.settings.iterations):
                    case = (3 * i + iteration) % cases
                    result = operation(*self.inputs(operation, case))
                    self.synchronize()
                    results[i].append((case, result.cpu()))
                    self.done()

        with torch.no_grad():
            if self.settings.warmup:
                first = shared or kind(device)
                first(*self.inputs(first, 0)).cpu()
            self.together(work, stay=stay)
            alone, cpu = kind(device), kind("cpu")
            expected = [alone(*self.inputs(alone, case)).cpu() for case in range(cases)]
            for case in range(cases):
                what = f"{kind.__name__}, case {case}, alone against the CPU"
                self.compare(expected[case], cpu(*cpu.inputs(case)), what, tolerance, answer=False)
        for i, answers in enumerate(results):
            for iteration, (case, result) in enumerate(answers):
                self.compare(result, expected[case], f"{kind.__name__}, thread {i}, iteration {iteration}, case {case}")
