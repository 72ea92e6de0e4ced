"""Processes: fork, spawn, the interpreter's end, and processes instead of threads."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import operations
import torch
from harness import ParallelTest, exit_code, numbers
from process_pool import ProcessPool

PATIENCE = 60  # seconds; only what hangs takes so long
ALL_STATS = "8"  # MPSProfiler.h, LogOptions

PROFILED = """
import sys, threading, torch

def work():
    value = torch.ones(16, device="mps")
    for _ in range(int(sys.argv[2])):
        value = torch.exp(value)
    value.to("cpu")

threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

PAGE = 1 << 14  # values of float16 that fill pages
SLOW_GPU = {"MPSFORGE_METAL_MAX_DELAY_US": "100000"}  # the software Metal's; the process has ended by itself long before
WRITTEN_LAST = """
import ctypes, sys, threading, torch

threads, size = int(sys.argv[2]), int(sys.argv[3])
file = torch.from_file(sys.argv[1], shared=True, size=threads * size, dtype=torch.float16)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(file))  # it is mapped to the very end

def work(i):
    values = torch.full((size,), i + 1.0, device="mps")
    array = torch.from_numpy(torch.empty(size, dtype=torch.float16).numpy())  # must not go once Python has ended
    array.copy_(values, non_blocking=True)
    for _ in range(30):
        values = values * 1
    file[i * size : (i + 1) * size].copy_(values, non_blocking=True)

others = [threading.Thread(target=work, args=(i,)) for i in range(1, threads)]
for thread in others:
    thread.start()
for thread in others:
    thread.join()
work(0)
"""

TOO_OLD = {"MPSFORGE_METAL_MACOS": "12.7"}  # MPSDevice.mm: no device, as MPSGraph lacks methods of 13.0 and 14.0
WITHOUT_DEVICE = """
import sys, threading, torch

def work():
    try:
        torch.zeros(1, device="mps")
        problem = None
    except RuntimeError as error:
        problem = f"RuntimeError: {error}"
    answers = torch.backends.mps.is_available(), torch.mps.synchronize(), torch.mps.empty_cache(), torch.mps.current_allocated_memory()
    print(*answers, str(problem).splitlines()[0])

threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
    thread.join()
"""


def compute(device, case):
    """What a spawned process answers."""
    with torch.no_grad():
        operation = operations.Linear(device)
        return operation(*[tensor.to(device) for tensor in operation.inputs(case)]).cpu().numpy()


UNASKED = """
import os, sys, torch
value = torch.full((4,), float(sys.argv[1]), device="mps")
child = os.fork()
if child == 0:
    torch.manual_seed(1)
    os._exit(0 if torch.mps._is_in_bad_fork() and not getattr(torch.mps, "is_initialized", bool)() else 3)
status = os.waitpid(child, 0)[1]
print((value + 1).cpu()[0].item())
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Model:
    """The model that each process of the pool makes for itself."""

    def __init__(self, device):
        self.device, self.operation = device, operations.Linear(device)

    def __call__(self, case, repeat):
        for _ in range(repeat):
            with torch.no_grad():
                result = self.operation(*[tensor.to(self.device) for tensor in self.operation.inputs(case)]).cpu()
        return result.numpy()


class Processes(ParallelTest):
    def test_fork(self):
        """After a fork the child's first use raises a normal exception that says to use spawn; the parent goes on."""
        self.need_mps()
        x = numbers(1, 16)
        self.compare((x.to("mps") + 1).cpu(), x + 1, "before the fork")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            answer = "it worked"
            try:
                torch.ones(4, device="mps").cpu()
            except BaseException as error:  # noqa: BLE001 whatever it is, the parent gets it
                answer = f"{type(error).__name__}: {error}"
            os.write(writer, answer.encode())
            os._exit(0)
        os.close(writer)
        try:
            ready, _, _ = select.select([reader], [], [], PATIENCE / 4)
            answer = os.read(reader, 4096).decode() if ready else ""
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        self.assertTrue(answer, f"the child said nothing; it {'hung' if not ready else f'ended with status {status}'}")
        self.assertIn("spawn", answer)

        def work(i):
            self.compare((x.to("mps") + i).cpu(), x + i, f"after the fork, thread {i}")
            self.done()

        self.together(work, operations=1)

    def test_fork_unasked(self):
        """A forked child knows that its parent used MPS, also if that never asked whether there is MPS, nor seeded it: so a seed does not reach it."""
        self.need_mps()
        for iteration in range(self.settings.iterations):
            ended = self.run_to_its_end(UNASKED, {}, iteration)
            self.compare(torch.tensor(float(ended.stdout)), torch.tensor(iteration + 1.0), f"iteration {iteration}")
            self.done()
        self.counts.add(expected=self.settings.iterations)

    def test_fork_functions(self):
        """Children of a fork beside threads that use mps call what may wait for their locks: it raises or returns, and does not hang."""
        self.need_mps()
        x = numbers(1, 64)
        there, event, going = x.to("mps"), torch.mps.Event(), True
        event.record()
        functions = {"empty_cache": torch.mps.empty_cache, "Event": torch.mps.Event, "Event.query": event.query, "an event's end": event.__del__}
        functions |= {"a view": lambda: there[1:], "is_pinned": lambda: x.is_pinned(), "a kernel": lambda: there + 1}
        functions |= {"profiler.start": torch.mps.profiler.start, "profiler.stop": torch.mps.profiler.stop}
        if hasattr(torch.mps, "graph_cache_stats"):
            functions["graph_cache_stats"] = torch.mps.graph_cache_stats

        def child(function):
            process = os.fork()
            if process == 0:
                try:
                    function()
                finally:
                    os._exit(0)
            return exit_code(process, PATIENCE / 6)

        def work(i):
            nonlocal going
            if i == 0:
                try:
                    for name, function in functions.items():
                        for _ in range(self.settings.iterations):
                            self.assertEqual(child(function), 0, f"{name} in a forked child: None is a hang, less than 0 a signal")
                finally:
                    going = False
            while going:
                one = torch.mps.Event()
                result = there + i
                one.record()
                torch.mps.empty_cache()
                self.compare(result.cpu(), x + i, f"thread {i}", answer=False)
            self.compare((there + i).cpu(), x + i, f"thread {i}, at the end")
            self.done()

        self.together(work, operations=1)

    def test_fork_workers(self):
        """One thread reads from a DataLoader, whose forked workers do not use mps, while the others compute."""
        self.need_mps()
        cases = [numbers(case, 16) for case in range(8)]
        loader = torch.utils.data.DataLoader(cases, num_workers=2, multiprocessing_context="fork", timeout=PATIENCE)

        def work(i):
            for iteration in range(self.settings.iterations):
                for case, batch in enumerate(loader if i == 0 else cases):
                    self.compare((batch.to("mps") + i).cpu().flatten(), cases[case] + i, f"thread {i}, iteration {iteration}, batch {case}")
                    self.done()

        self.together(work, operations=self.settings.iterations * len(cases))

    def run_to_its_end(self, script, environment, *arguments):
        """Runs the script in a process of its own, with these variables beside ours. Its exit code is 0."""
        child = [sys.executable, "-c", script, *map(str, arguments)]
        ended = subprocess.run(child, env=os.environ | environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def test_profiling_stats(self):
        """At a process's end the profiler logs how often each operator ran, with the runs of all threads."""
        self.need_mps()
        threads, runs = self.settings.threads, self.settings.iterations
        ended = self.run_to_its_end(PROFILED, {"PYTORCH_MPS_LOG_PROFILE_INFO": ALL_STATS}, threads, runs)
        rows = [line.split() for line in ended.stderr.splitlines()]
        logged = sum(int(row[1]) for row in rows if len(row) > 5 and row[0][0] in "GK" and row[5].startswith("exp"))
        self.compare(torch.tensor(logged), torch.tensor(threads * runs), f"runs of exp by {threads} threads")
        self.counts.add(expected=1, operations=1)

    def test_work_at_exit(self):
        """A process ends once the GPU has done its work, here with a file that another process reads."""
        self.need_mps()
        threads = self.settings.threads
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "values")
            self.run_to_its_end(WRITTEN_LAST, SLOW_GPU, file, threads, PAGE)
            values = torch.from_file(file, size=threads * PAGE, dtype=torch.float16).reshape(threads, PAGE).float()
            self.compare(values, torch.arange(1.0, threads + 1)[:, None].expand(threads, PAGE), "in the file")
            self.counts.add(expected=threads, operations=threads, answers=threads - 1)

    def test_no_device(self):
        """On a macOS that is too old, torch.mps answers as it did with one stream, and a tensor says why there is none."""
        self.need_extension()  # the software Metal's
        threads = self.settings.threads
        printed = self.run_to_its_end(WITHOUT_DEVICE, TOO_OLD, threads).stdout
        answers = printed.splitlines()
        self.assertEqual(len(answers), threads, printed)
        for answer in answers:
            self.assertRegex(answer, "^False None None 0 RuntimeError: The MPS backend is supported on MacOS")
            self.compare(torch.tensor(int(answer.split()[3])), torch.tensor(0), "bytes allocated")
        self.counts.add(expected=threads, operations=threads)

    def test_spawn(self):
        """A spawned process computes while threads of this one do."""
        device = self.settings.device
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            answer = pool.apply_async(compute, (device, 3))
            self.parallel(operations.Linear)
            self.compare(torch.from_numpy(answer.get(PATIENCE)), torch.from_numpy(compute(device, 3)), "the spawned process", answer=False)

    def test_exit(self):
        """The interpreter ends while threads still compute, and none synchronises. The process must end well."""
        self.parallel(operations.Tensors)

        def work(i):
            end = time.monotonic() + 0.3
            operation = operations.Tensors(self.settings.device)
            while time.monotonic() < end:
                operation(operation.inputs(i)[0].to(self.settings.device))

        for i in range(self.settings.threads):
            threading.Thread(target=work, args=(i,), daemon=False).start()

    def test_processes(self):
        """Processes instead of threads, each with a model of its own: what to use where threads are not enough."""
        device, processes, repeat = self.settings.device, self.settings.threads, self.settings.iterations
        with ProcessPool(Model, device, workers=processes) as pool:
            pool.map([(0, 1)] * processes)  # until all have started
            begin = time.perf_counter()
            answers = pool.map([(case, repeat) for case in range(processes)])
            self.counts.add(seconds=time.perf_counter() - begin)
        self.counts.add(expected=processes * repeat, operations=processes * repeat)
        for case, answer in enumerate(answers):
            self.compare(torch.from_numpy(answer), torch.from_numpy(compute(device, case)), f"process {case}")
        # A process repeats one operation and answers with its last result.
        self.counts.add(answers=processes * (repeat - 1))
