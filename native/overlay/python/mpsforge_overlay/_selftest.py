"""`python -m mpsforge_overlay --selftest`: half a minute of programs that threads break on torch's own backend.

Each check is a process of its own, so that one that dies or hangs is a result like others. Values are compared with the CPU's. Speed and
memory of one thread are compared with torch's own backend, in a process with MPSFORGE_OVERLAY=0.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
import pathlib
import platform
import queue
import signal
import statistics
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch

from . import SWITCH

THREADS = 8
ROWS = 24  # of the largest batch
BUDGET = 3.0  # seconds that a check goes on for, after its first round
LIMIT = 120  # seconds after which a process hangs
SLOWEST = 1.5  # times the processor time of torch's own backend, one thread
MEMORY = 1.25, 32 << 20  # times its memory, and bytes more: a heap of the allocator's

cpu, mps = torch.device("cpu"), torch.device("mps")


class Comparison:
    """What a check has compared. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.compared = 0
        self.wrong: list[str] = []

    def close(self, what: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
        found = found.detach().cpu()
        same = found.shape == wanted.shape and bool(torch.isclose(found, wanted, rtol=1e-3, atol=1e-4).all())
        first = "" if same else f"{what}: {found.flatten()[:3].tolist()} in the place of {wanted.flatten()[:3].tolist()}"
        self.expect(same, first)

    def expect(self, holds: bool, what: str) -> None:
        with self._lock:
            self.compared += 1
            if not holds and len(self.wrong) < 5:
                self.wrong.append(what)


def at_once(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs work(number) in threads that begin together. The first exception of one is raised."""
    failed: list[BaseException] = []
    start = threading.Barrier(count)

    def body(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001 raised below
            failed.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def until_over(budget: float) -> Callable[[], bool]:
    end = time.monotonic() + budget
    return lambda: time.monotonic() < end


def model(seed: int) -> torch.nn.Module:
    """(n, 16) to (n, 4)."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4), torch.nn.Softmax(dim=1))


def on_mps(of: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(of).to(mps)


def models_in_threads(budget: float, c: Comparison) -> None:
    """Small models, one for all threads and one for each, against the CPU. Of each size of a batch all threads are the first."""
    inputs = [torch.randn(ROWS, 16) for _ in range(THREADS)]
    shared, own = model(1), [model(2 + number) for number in range(THREADS)]
    wanted = [[of(inputs[number]).detach() for of in (shared, own[number])] for number in range(THREADS)]
    there, theirs = on_mps(shared), [on_mps(of) for of in own]
    going = until_over(budget)

    def work(number: int) -> None:
        rows = 0
        while True:
            rows = rows % ROWS + 1
            x = inputs[number][:rows].to(mps)
            c.close(f"the shared model in thread {number}", there(x), wanted[number][0][:rows])
            c.close(f"the model of thread {number}", theirs[number](x), wanted[number][1][:rows])
            if not going():
                return

    at_once(work)


def hand_over(budget: float, c: Comparison) -> None:
    """Tensors passed from thread to thread, changed in place by all, and freed by another than their maker; nobody waits for the GPU."""
    places, done = ([queue.Queue[torch.Tensor]() for _ in range(THREADS)] for _ in range(2))
    rounds = 12

    def ring(number: int) -> None:
        value = torch.full((257,), float(number), device=mps)
        for _ in range(THREADS):
            places[(number + 1) % THREADS].put(value)
            value = places[number].get(timeout=LIMIT) * 2 + torch.ones_like(value)
        done[number].put(value)

    counter, turn = torch.zeros(64, device=mps), threading.Lock()

    def add(_number: int) -> None:
        for _ in range(rounds):
            with turn:
                counter.add_(1)

    going = until_over(budget)
    steps = 0
    while True:
        at_once(ring)
        for number, place in enumerate(done):
            value = float(number)
            for _ in range(THREADS):
                value = value * 2 + 1
            c.close("around the ring", place.get(), torch.full((257,), value))
        at_once(add)
        steps += 1
        c.close("added to by all threads", counter, torch.full((64,), float(steps * rounds * THREADS)))
        if not going():
            return


def backward(budget: float, c: Comparison) -> None:
    """Training in each thread, and the backward pass of another thread's forward pass."""
    inputs = torch.randn(8, 16)

    def train(of: torch.nn.Module, device: torch.device) -> list[torch.Tensor]:
        optimizer = torch.optim.SGD(of.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            of(inputs.to(device)).square().sum().backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in of.parameters()]

    models = [model(number) for number in range(THREADS)]
    wanted = [train(copy.deepcopy(of), cpu) for of in models]
    going = until_over(budget)

    def work(number: int) -> None:
        while True:
            for found, right in zip(train(on_mps(models[number]), mps), wanted[number], strict=True):
                c.close(f"weights that thread {number} trained", found, right)
            if not going():
                return

    at_once(work)
    weight = torch.ones(32, device=mps, requires_grad=True)
    losses: queue.Queue[torch.Tensor] = queue.Queue()
    at_once(lambda number: losses.put((weight * float(number)).sum()))
    at_once(lambda _number: losses.get().backward())
    assert weight.grad is not None
    c.close("gradients of other threads' forward passes", weight.grad, torch.full((32,), float(sum(range(THREADS)))))


class Block(bytearray):
    """Memory of a CPU tensor whose end can be seen."""


def copies(budget: float, c: Comparison) -> None:
    """Copies both ways that nobody waits for, of views and with casts; what they were made of goes when they are done."""
    going = until_over(budget)
    sources: list[weakref.ref[Block]] = []

    def work(number: int) -> None:
        while True:
            block = Block(4 * 1024)
            source = torch.frombuffer(block, dtype=torch.float32)
            source.fill_(number + 1.0)
            sources.append(weakref.ref(block))
            there = source.to(mps, non_blocking=True)
            source.zero_()  # the copy is of what was there at the call
            del block, source
            grid = (there * 2).view(32, 32)
            back = grid.t()[1:, ::2].to(cpu, torch.float16, non_blocking=True)
            del there, grid
            torch.mps.synchronize()
            c.close(f"copied back by thread {number}", back.float(), torch.full((31, 16), 2.0 * (number + 1)))
            if not going():
                return

    at_once(work)
    torch.mps.synchronize()
    kept = sum(source() is not None for source in sources)
    c.expect(kept == 0, f"{kept} of {len(sources)} tensors that were copied are still in memory")


def memory(budget: float, c: Comparison) -> None:
    """Threads that come and go, and free each other's tensors, leave no memory behind."""
    there = on_mps(model(1))
    passed: queue.Queue[torch.Tensor] = queue.Queue()

    def work(number: int) -> None:
        x = torch.full((64, 16), float(number), device=mps)
        passed.put(there(x) + x.sum())
        passed.get()

    def settle() -> tuple[int, int]:
        torch.mps.synchronize()
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()

    for _ in range(3):
        at_once(work)
    before, going, rounds = settle(), until_over(budget), 0
    while True:
        at_once(work)
        rounds += 1
        if not going():
            break
    after, settled = settle(), until_over(5)
    while after[0] > before[0] and settled():  # handlers of command buffers, which run after the wait, give memory back
        time.sleep(0.05)
        after = settle()
    c.expect(after[0] <= before[0], f"{after[0] - before[0]} bytes of tensors more after {rounds} rounds of {THREADS} threads")
    c.expect(after[1] <= before[1] + MEMORY[1], f"{after[1] - before[1]} bytes of the driver's more after {rounds} rounds of {THREADS} threads")


def streams(_budget: float, c: Comparison) -> None:
    """Threads have streams of their own while they live, and the main thread has the default one."""
    if not hasattr(torch.mps, "current_stream"):
        return  # an overlay of the part fixes
    c.expect(torch.mps.current_stream() == torch.mps.default_stream(), "the main thread's stream is not the default one")
    if os.environ.get("PYTORCH_MPS_STREAM_PER_THREAD") == "0":
        return
    used: set[int] = set()
    meet = threading.Barrier(THREADS)

    def work(_number: int) -> None:
        torch.ones(4, device=mps).add_(1)
        used.add(torch.mps.current_stream().stream_id)
        meet.wait()  # nobody's is free for another

    at_once(work)
    c.expect(len(used) == THREADS, f"{THREADS} threads at once have {len(used)} streams")


def one_thread(_budget: float, c: Comparison) -> dict[str, float]:
    """A program without threads, for its speed and memory: runs under both backends."""
    here = model(1)
    there, x = on_mps(here), torch.randn(4, 16)
    wanted, input_ = here(x).detach(), x.to(mps)

    def steps(count: int) -> float:
        began = time.process_time()
        for _ in range(count):
            y = there(input_)
        torch.mps.synchronize()
        c.close("the model", y, wanted)
        return (time.process_time() - began) / count

    steps(20)
    return {"seconds": min(steps(60) for _ in range(5)), "memory": float(torch.mps.driver_allocated_memory())}


CHECKS: dict[str, Callable[[float, Comparison], Any]] = {
    "models in threads": models_in_threads,
    "hand-over": hand_over,
    "backward": backward,
    "copies": copies,
    "memory": memory,
    "streams": streams,
}


def child(name: str, budget: float) -> None:
    """One check in this process: its result is the last line."""
    compared = Comparison()
    facts = one_thread(budget, compared) if name == "one thread" else CHECKS[name](budget, compared)
    print(json.dumps({"compared": compared.compared, "wrong": compared.wrong, "facts": facts}))


def run(name: str, budget: float, own: bool = True) -> dict[str, Any]:
    """One check in a process of its own, over the overlay or over torch's own backend."""
    environment = dict(os.environ) | ({} if own else {SWITCH: "0"})
    command = [sys.executable, "-m", "mpsforge_overlay", "--selftest", "--check", name, "--seconds", str(budget)]
    began = time.monotonic()
    result: dict[str, Any] = {"check": name, "backend": "the overlay" if own else "torch's own"}
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        said = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        return result | {"fault": f"hangs: not done after {LIMIT} s", "stderr": said[-4000:]}
    result["seconds"] = round(time.monotonic() - began, 1)
    lines = ended.stdout.splitlines()
    if ended.returncode != 0 or not lines:
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        how = f"exit code {ended.returncode}"
        if ended.returncode < 0:
            how = f"died by {signal.Signals(-ended.returncode).name}"
        return result | {"fault": f"{how}: {last[0]}", "stderr": ended.stderr[-4000:]}
    result |= json.loads(lines[-1])
    if result["wrong"]:
        result["fault"] = result["wrong"][0]
    elif result["compared"] == 0 and name != "streams":
        result["fault"] = "it compared nothing"
    return result


def against_stock(budget: float) -> dict[str, Any]:
    """One thread under both backends, in turn: processor time and memory."""
    result: dict[str, Any] = {"check": "one thread against torch's own backend"}
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for _ in range(3):
        for own, facts in ((True, ours), (False, theirs)):
            one = run("one thread", budget, own)
            if "fault" in one:
                return one | result | {"fault": f"over {one['backend']}: {one['fault']}"}
            facts.append(one["facts"])
    ratio = statistics.median(one["seconds"] for one in ours) / statistics.median(one["seconds"] for one in theirs)
    most = [max(int(one["memory"]) for one in facts) for facts in (ours, theirs)]
    result |= {"facts": {"time": round(ratio, 2), "memory": most}, "compared": 6}
    if ratio > SLOWEST:
        result["fault"] = f"one thread takes {ratio:.2f} times the processor time"
    elif most[0] > most[1] * MEMORY[0] + MEMORY[1]:
        result["fault"] = f"one thread has {most[0]} bytes of the driver's memory in the place of {most[1]}"
    return result


def machine() -> dict[str, str]:
    chip = platform.processor() or platform.machine()
    if sys.platform == "darwin":  # such as Apple M4 Max
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False)
        chip = asked.stdout.strip() or chip
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "macos": platform.mac_ver()[0],
        "processor": chip,
        "python": sys.version.split()[0],
    }


def main(status: dict[str, Any], budget: float, path: pathlib.Path) -> int:
    """All checks; prints a line for each, and writes the file. Returns the exit code: 0 if no fault was found."""
    began = time.monotonic()
    settings = {name: value for name, value in os.environ.items() if name.startswith(("PYTORCH_", "MPSFORGE_"))}
    report: dict[str, Any] = {"schema": 1, "machine": machine(), "environment": settings, "status": status, "checks": []}
    faults = []

    def note(result: dict[str, Any]) -> None:
        report["checks"].append(result)
        fault = result.get("fault")
        if fault:
            faults.append(f"{result['check']}: {fault}")
        print(f"{'FAULT' if fault else 'ok   '} {result['check']}: {fault or counted(result)}", flush=True)

    identity: dict[str, Any] = {"check": "identity", "compared": 1}
    if not status["active"]:
        foreign = status.get("foreign") or status.get("left") or ["unknown"]
        identity["fault"] = f"torch's own backend answers: {status['reason'] or foreign[0]}"
    note(identity)
    if not faults:
        for name in CHECKS:
            note(run(name, budget))
        note(against_stock(budget))
    report["seconds"], report["faults"] = round(time.monotonic() - began, 1), faults
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"{len(faults)} faults" if faults else f"no fault found in {report['seconds']:.0f} s")
    print(f"{'please send' if faults else 'all of it is in'} {path}")
    return 1 if faults else 0


def counted(result: dict[str, Any]) -> str:
    facts = result.get("facts") or {}
    if "time" in facts:
        return f"{facts['time']} times its processor time, {facts['memory'][0] >> 20} MiB in the place of {facts['memory'][1] >> 20}"
    return f"{result['compared']} comparisons" if result["check"] != "identity" else "the overlay answers for every part of the backend"
