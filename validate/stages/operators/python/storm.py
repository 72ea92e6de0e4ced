"""Runs entries of PyTorch's operator database by threads, each job in a process forked from this one.

python3 storm.py --events FD [--device mps]     jobs on standard input, a JSON object a line
python3 storm.py --job JSON                     one job, in this process; its result on standard output

This process imports everything and uses no device. Events, a JSON object a line: identity (which torch this is), entries
(what the database has), then for each job, in order, result. A job has id, operator, dtype, form, seed, threads, rounds,
samples, device, seconds (its limit), and environment (settings of its process).
"""

import argparse
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback

OWN_FAULT = 70  # exit code of a process that failed by this program's own fault
ERROR_TAIL = 6000  # bytes of a process's standard error that are kept
ANSWER = 16 << 20  # bytes that a process may report
WRITTEN = 1 << 30  # bytes that a process may write to a file; its standard error is one


def load_entries():
    """The operator database by full names; and what MPSFORGE_OPERATORS_EXTRA, a Python file, adds to it, for tests of this one."""
    from torch.testing._internal.common_methods_invocations import op_db

    entries = {entry.full_name: entry for entry in op_db}
    extra = os.environ.get("MPSFORGE_OPERATORS_EXTRA")
    if extra:
        space = {"__file__": extra}
        with open(extra, encoding="utf-8") as file:
            exec(compile(file.read(), extra, "exec"), space)  # noqa: S102
        entries.update({entry.full_name: entry for entry in space["entries"]})
    return entries


def describe(entries):
    """What a plan needs to know of each entry."""
    return [
        {"name": name, "dtypes": sorted(str(dtype).removeprefix("torch.") for dtype in entry.dtypes), "out": entry.supports_out,
         "in_place": entry.get_inplace() is not None, "backward": entry.supports_autograd}
        for name, entry in entries.items()
    ]  # fmt: skip


def in_child(job, entries, pipe, errors):
    """Runs the job in this process, which was forked for it, and ends it."""
    os.dup2(errors, 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    for inherited in job["close"]:
        os.close(inherited)  # whoever reads them must see their end when the process that forks ends
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.environ.update(job.get("environment", {}))

    def progress(**fields):
        os.write(pipe, (json.dumps(fields) + "\n").encode())

    try:
        import identity
        import job as jobs  # both are there since the start

        progress(result=jobs.run(job, entries, identity.findings, progress))
    except BaseException:  # noqa: BLE001 a fault of this program itself
        traceback.print_exc()
        os._exit(OWN_FAULT)
    os._exit(0)  # what interpreters do at their end has tests of its own


def run(job, entries, events):
    """Gives the job's result. A sample that ends the process alone is left out, and the job is run again with the others."""
    without, crashed = [], None
    while True:
        result = run_once({**job, "without": without, "close": [events] if events > 2 else []}, entries)
        sample = [result.get("entry"), result.get("sample")]
        if result["status"] != "crashed" or result["phase"] != "alone" or sample in without:
            break
        crashed = crashed or result
        without.append(sample)
    if crashed and result["status"] == "does not apply":
        result = crashed  # no sample is left
    elif crashed:
        result["not_alone"] = result.get("not_alone", []) + [f"crashed: {entry}, sample {number}" for entry, number in without]
    return result


def watch(child, reader, deadline):
    """What a process reports until its end, its state then, and whether it hung. Others that it has left behind may keep the pipe open."""
    data, readers = b"", [reader]
    while len(data) <= ANSWER and time.monotonic() < deadline:
        if select.select(readers, [], [], 0.5 if readers else 0.002)[0]:
            block = os.read(reader, 1 << 16)
            data += block
            readers = [reader] if block else []
            continue
        ended, state = os.waitpid(child, os.WNOHANG)
        if ended:
            while len(data) <= ANSWER and select.select(readers, [], [], 0)[0] and (block := os.read(reader, 1 << 16)):
                data += block  # written between the two looks
            return data, state, False
    hung = len(data) <= ANSWER
    if hung:
        os.kill(child, signal.SIGUSR1)  # it writes its stacks
        time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    return data, os.waitpid(child, 0)[1], hung


def run_once(job, entries):
    """Forks a process for the job, waits for its end, and gives the result."""
    started = time.monotonic()
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.close(reader)
            in_child(job, entries, writer, errors.fileno())
        os.close(writer)
        data, state, hung = watch(child, reader, started + job["seconds"])
        os.close(reader)
        errors.seek(max(0, os.fstat(errors.fileno()).st_size - ERROR_TAIL))
        tail = errors.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(state)
    lines = [json.loads(line) for line in data.splitlines() if line.endswith(b"}")]
    results = [line["result"] for line in lines if "result" in line]
    raced = "WARNING: ThreadSanitizer" in tail  # which changes the exit code to 66
    if hung or not results or not (code == 0 or code == 66 and raced):
        phase = next((line for line in reversed(lines) if "phase" in line), {"phase": "start", "sample": -1})
        result = {"status": "hung" if hung else "crashed", "phase": phase["phase"], "entry": phase.get("entry", ""), "sample": phase["sample"], "exit": code}
    elif len(results) > 1:
        result = {"status": "error", "text": f"it reported {len(results)} results"}
    else:
        result = results[0]
    if raced or result["status"] not in ("right", "does not run alone", "does not apply"):
        result["stderr"] = tail
    return {**result, "id": job["id"], "wall": round(time.monotonic() - started, 3)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1)
    parser.add_argument("--job")
    arguments = parser.parse_args()
    # a buffer that other streams use and no guard covers is an error; what has no guards does not look
    os.environ.setdefault("PYTORCH_MPS_SANITIZE", "error")

    import identity

    def send(event, **fields):
        os.write(arguments.events, (json.dumps({"event": event, **fields}) + "\n").encode())

    send("identity", **identity.of_torch())
    import job  # noqa: F401 so that no child has to
    entries = load_entries()
    if arguments.job:
        send("result", **run(json.loads(arguments.job), entries, arguments.events))
        return
    send("entries", entries=describe(entries))
    for line in sys.stdin:
        send("result", **run(json.loads(line), entries, arguments.events))


if __name__ == "__main__":
    main()
