"""One job, in a process of its own: an entry's samples alone, then by threads at once."""

import collections
import contextlib
import queue
import random
import re
import sys
import threading
import time

import forms
import torch
import values
from torch.utils._python_dispatch import TorchDispatchMode

RANGE_RUNS = 6  # of a random operator alone, for the range of its values
GENERATOR_SEED = 20
FREE_BLOCKS = [256 << power for power in range(8) for _ in range(8)]  # bytes
REFILLS = 64  # of free memory, in one answer: each takes milliseconds, and some operators are thousands inside
HAND_OVER_SECONDS = 60  # what a thread waits for its neighbour at most
LOOKS = 3  # at the arguments of one operator inside of a case
UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided")

# What torchgen's table of this name says that a kernel may write beside what its schema declares; a test compares the two.
MPS_WRITES = {
    "_copy_from": ("dst",),
    "_copy_from_and_resize": ("dst",),
    "native_batch_norm": ("running_mean", "running_var"),
    "_native_batch_norm_legit": ("running_mean", "running_var"),
}

# What PyTorch has no Metal kernel for, and whose CPU kernel gives other last bits in another thread: with --device cpu, too.
ROUNDED = ("linalg.lstsq",)


class Case:
    """One sample of one entry, and what it gave alone."""

    def __init__(self, entry, number, sample, dtype):
        self.entry, self.number, self.sample, self.dtype = entry, number, sample, dtype
        self.changed = frozenset()  # numbers of the arguments that the operator changes
        self.random = False
        self.generator = False  # random, the same with a generator of the same seed
        self.undeclared = []  # what operators inside change with nothing that says so
        self.alone = []  # answers; of a random operator without a generator several
        self.out = None  # what out= is made like

    def title(self):
        return f"{self.entry.full_name}, sample {self.number}"


class Program:
    """What a thread does with a case, by the form."""

    def __init__(self, form, device, without=()):
        self.form, self.device = form, device
        self.without = [tuple(one) for one in without]  # entries and numbers of samples that end the process

    def inputs(self, case):
        return values.on_device(case.sample, self.device, self.form.layout == "strided", self.form.source != "own")

    def compute(self, case, inputs):
        """Calls the operator and gives the leaves of its answer, on the device, changed arguments among them."""
        inputs = inputs.with_copies_of(case.changed)
        keywords = dict(inputs.keywords)
        if case.generator:
            keywords["generator"] = torch.Generator(self.device).manual_seed(GENERATOR_SEED)
        if self.form.call == "in-place":
            result = case.entry.get_inplace()(inputs.first.clone(), *inputs.rest, **keywords)
        elif self.form.call == "out":
            result = case.entry(inputs.first, *inputs.rest, out=values.mapped(case.out, self.empty), **keywords)
        else:
            result = case.entry(inputs.first, *inputs.rest, **keywords)
        leaves = values.tensors_of(result)
        if self.form.call == "backward":
            leaves += gradients(case, inputs, result)
        tensors = inputs.tensors()
        return leaves + [tensors[number] for number in sorted(case.changed)]

    def empty(self, like):
        return torch.full(like.shape, 7, dtype=like.dtype, device=self.device)


def gradients(case, inputs, result):
    """The gradients of all inputs that require one, for weights that differ from element to element."""
    processed = case.sample.output_process_fn_grad(result)
    outputs = [leaf for leaf in values.tensors_of(processed) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    wanted = [tensor for tensor in inputs.tensors() if tensor.requires_grad]
    if not outputs or not wanted:
        raise NotApplicable("no gradient")
    weights = [torch.linspace(0.5, 1.5, output.numel()).reshape(output.shape).to(output.dtype).to(output.device) for output in outputs]
    found = torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
    return ["no gradient" if gradient is None else gradient for gradient in found]


class NotApplicable(Exception):
    """The case has no such form."""


REASONS = (  # words in an exception's text, and what they mean; the first that fits
    ("is not currently implemented for the MPS device", "not implemented for MPS"),
    ("with arguments from the 'MPS' backend", "not implemented for MPS"),
    ("Could not run", "not implemented for MPS"),
    ("unexpected device type was provided mps", "not implemented for MPS"),
    ("create function state object", "missing kernel"),
    ("no host kernel", "missing kernel"),
    ("float64", "unsupported type"),
    ("dtype", "unsupported type"),
    ("data type", "unsupported type"),
    ("omplex", "unsupported type"),
    ("not supported", "unsupported type"),
    ("not implemented for '", "unsupported type"),
)


class NotDeterministic(Exception):
    """Two runs alone gave two answers, though nothing draws random numbers: mostly it reads memory that was never written."""


def why(error):
    """Why something does not run: a kind of reason, ": ", and the operator, the kernel or the first line of the text."""
    if isinstance(error, NotDeterministic):
        return "two runs alone differ, and nothing in it is random"
    text = " ".join(str(error).strip().split("\n")[:3]).strip()
    for words, kind in REASONS:
        if words in text:
            if "DispatchStub" in text:
                return f"{kind}: a dispatch stub has no kernel for it"
            named = re.search(r"'(aten::\S+)'|for: (\w+)|Metal function (\w+)", text)
            return f"{kind}: {next(filter(None, named.groups())) if named else text[:160]}"
    return f"{type(error).__name__}: {text[:160]}"


def prepare(program, entry, dtype, job, progress):
    """The entry's cases that run alone, and the reasons of those that do not."""
    cases, reasons = [], []
    try:
        chosen = values.choose_samples(entry, dtype, job["seed"], job["samples"], program.form.call == "backward")
    except Exception as error:  # noqa: BLE001 the database's own programs may need what is not installed
        return [], [f"no samples: {why(error)}"]
    for number, sample in chosen:
        if (entry.full_name, number) in program.without:
            continue
        progress(phase="alone", sample=number, entry=entry.full_name)
        case = Case(entry, number, sample, dtype)
        try:
            run_alone(program, case)
        except NotApplicable as error:
            reasons.append(f"does not apply: {error}")
        except Exception as error:  # noqa: BLE001 whatever it raises is a reason
            reasons.append(why(error))
        else:
            cases.append(case)
    return cases, reasons


class Watch(TorchDispatchMode):
    """Looks at the operators inside: whether one draws random numbers (two equal answers may be luck), and, where there are guards, whether
    one changes memory that its guard takes for read, because neither the schema nor torchgen's table says that it is written."""

    def __init__(self, guarded):
        super().__init__()
        self.looks = LOOKS if guarded else 0
        self.random, self.undeclared, self.calls = False, [], collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.random = self.random or torch.Tag.nondeterministic_seeded in function.tags
        self.calls[function] += 1
        read = self.only_read(function, args, kwargs or {}) if self.calls[function] <= self.looks else []
        before = values.read([tensor for _, tensor in read])
        result = function(*args, **(kwargs or {}))
        for (name, tensor), old in zip(read, before, strict=True):
            if values.difference(values.read([tensor]), [old]):
                self.undeclared.append(f"{function.name()} changes its argument {name}, and neither its schema nor MPS_WRITES of torchgen says so")
        return result

    def only_read(self, function, args, kwargs):
        """Names and tensors of the arguments that are not written as far as PyTorch says, nor share memory with one that is."""
        arguments = function._schema.arguments
        given = list(zip(arguments, args, strict=False)) + [(a, kwargs[a.name]) for a in arguments if a.name in kwargs]
        read, written = [], set()
        for argument, value in given:
            tensors = [leaf for leaf in values.tensors_of(value) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
            if argument.is_write or argument.name in MPS_WRITES.get(function._schema.name.removeprefix("aten::"), ()):
                written.update(tensor.untyped_storage().data_ptr() for tensor in tensors)
            else:
                read += [(argument.name, tensor) for tensor in tensors if tensor.device.type == "mps"]
        return [(name, tensor) for name, tensor in read if tensor.untyped_storage().data_ptr() not in written]


class Refill(TorchDispatchMode):
    """Fills free memory before each operator inside, too: what it reads and nobody wrote may be what an earlier one has freed."""

    def __init__(self, device, content):
        super().__init__()
        self.device, self.content, self.left = device, content, REFILLS

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if self.left > 0:
            fill_free_memory(self.device, self.content, FREE_BLOCKS[::4])
            self.left -= 1
        return function(*args, **(kwargs or {}))


def refilled(program, case, content):
    """The answer under Refill, to be compared with another one: operators without an MPS kernel have other gradients in a mode."""
    inputs = program.inputs(case)
    with Refill(program.device, content):
        return values.read(program.compute(case, inputs))


def run_alone(program, case):
    inputs = program.inputs(case)
    if program.form.call == "in-place" and not isinstance(inputs.first, torch.Tensor):
        raise NotApplicable("no tensor to write into")
    if program.form.call == "in-place" and case.sample.broadcasts_input:
        # logical_and_ of 2.6.0 makes its argument larger there and reads memory that was never written, where the CPU refuses
        raise NotApplicable("the result is larger than what it is to be written into")
    if program.form.call == "out":
        case.out = case.entry(inputs.first, *inputs.rest, **inputs.keywords)
        if not all(isinstance(leaf, torch.Tensor) for leaf in values.tensors_of(case.out)):
            raise NotApplicable("its results are no tensors")
        case.out = values.mapped(tuple(case.out) if isinstance(case.out, tuple) else case.out, lambda tensor: torch.empty_like(tensor, device="cpu"))
    before = values.read(inputs.tensors())
    with Watch(has_guards(program)) as watch:
        first = program.compute(case, inputs)
    case.random, case.undeclared = watch.random, watch.undeclared
    if not any(isinstance(leaf, torch.Tensor) and leaf.device.type == program.device for leaf in first + inputs.tensors()):
        raise NotApplicable("it does nothing on the device")
    after = values.read(inputs.tensors())
    case.changed = frozenset(i for i in range(len(before)) if values.difference([after[i]], [before[i]]))
    answers = []
    for content in unwritten():
        inputs = program.inputs(case)
        fill_free_memory(program.device, content)  # what making the inputs has freed, too
        answers.append(values.read(program.compute(case, inputs)))
    differs = values.difference(*answers)
    if program.form.call == "backward" and not case.random and not differs:
        differs = values.difference(*(refilled(program, case, content) for content in unwritten()))
    if case.random:
        answers = with_generator(program, case) or [values.read(program.compute(case, program.inputs(case))) for _ in range(RANGE_RUNS)]
    elif differs and case.entry.name not in UNDEFINED:
        raise NotDeterministic(differs)
    else:
        answers = answers[:1]
    case.alone = answers


def fill_free_memory(device, content, sizes=FREE_BLOCKS):
    """Fills the memory that the allocator gives out next: an operator that reads what nobody wrote answers otherwise for other bytes."""
    if device == "mps":
        torch.mps.empty_cache()  # a free block of another size would be given out unfilled
    blocks = [part.to(device) for part in content[: sum(sizes)].split(sizes)]
    if device == "mps":
        torch.mps.synchronize()
    del blocks


def unwritten():
    """Two contents of memory that nobody wrote: random bytes, and bytes that are NaN in each floating-point type, which no arithmetic
    loses. One byte everywhere is lost in a quotient of two such numbers, and random bytes may give the same infinity twice (both seen with
    triangular solvers of 2.6.0, strided)."""
    size = sum(FREE_BLOCKS)
    yield torch.randint(256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(GENERATOR_SEED))
    yield torch.full((size,), 255, dtype=torch.uint8)


def with_generator(program, case):
    """The answer of a random operator that takes a generator, in a list; nothing if it does not."""
    case.generator = True
    try:
        answers = [values.read(program.compute(case, program.inputs(case))) for _ in range(2)]
        if not values.difference(*answers):
            return answers[:1]
    except (TypeError, RuntimeError):
        pass
    case.generator = False
    return []


def new_stream():
    """A stream that no other thread has; None where this torch makes none."""
    if hasattr(torch.mps, "Stream"):
        return torch.mps.Stream()
    try:
        return torch.Stream(device="mps")
    except RuntimeError:
        return None


@contextlib.contextmanager
def on_stream(stream):
    """The thread's work inside is on the stream. Without the patch python-streams PyTorch's functions for all devices are used."""
    if hasattr(torch.mps, "stream"):
        with torch.mps.stream(stream):
            yield
        return
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)


class Storm:
    """The cases by threads at once."""

    def __init__(self, program, cases, job):
        self.program, self.cases, self.job = program, cases, job
        self.lock = threading.Lock()
        self.problems, self.streams = [], set()
        self.calls = self.compared = self.wrong = 0

    def problem(self, status, case, text):
        with self.lock:
            self.problems.append({"status": status, "sample": case.number if case else -1, "text": text, "case": case.title() if case else ""})

    def compare(self, case, answer, reader):
        undefined = case.entry.name in UNDEFINED
        if len(case.alone) > 1 or undefined:
            found = values.outside(answer, case.alone, undefined)
        elif case.entry.name in ROUNDED:
            found = values.far(answer, case.alone[0], case.entry, case.dtype)
        else:
            found = values.difference(answer, case.alone[0])
        with self.lock:
            self.compared += values.count(answer)
            self.wrong += bool(found)
        if found:
            self.problem("wrong values", case, f"{case.title()}, {reader}: {found}")

    def order(self, thread, turn):
        order = list(range(len(self.cases)))
        random.Random(f"{self.job['seed']} {thread} {turn}").shuffle(order)
        return order

    def run(self):
        form, threads = self.program.form, self.job["threads"]
        if form.thread == "fresh":
            first = random.Random(f"{self.job['seed']} first")
            if first.random() < 0.5:  # else several threads get their streams at the same time
                self.together(1, [[first.randrange(len(self.cases))]])
            for _ in range(self.job["rounds"]):
                for number in range(len(self.cases)):
                    self.together(threads, [[number]] * threads)
        else:
            rounds = self.job["rounds"]
            self.together(threads, [[i for turn in range(rounds) for i in self.order(thread, turn)] for thread in range(threads)])

    def together(self, threads, orders):
        form = self.program.form
        shared = [self.program.inputs(case) for case in self.cases] if form.source == "shared" else None
        makers = [queue.Queue(2) for _ in range(threads)] if form.source == "maker" else []
        handed = [queue.Queue() for _ in range(threads)] if form.delivery == "neighbour" else []
        barrier = threading.Barrier(threads + len(makers))
        end = threading.Barrier(threads + len(makers))  # a thread that ends early would give its stream to another, which orders the two

        def make(thread):
            try:
                barrier.wait()
                for i in orders[thread]:
                    makers[thread].put(self.program.inputs(self.cases[i]))
            except Exception as error:  # noqa: BLE001 the other thread reports it
                makers[thread].put(error)
            end.wait()

        def work(thread):
            stream = on_stream(new_stream()) if form.stream == "explicit" else contextlib.nullcontext()
            barrier.wait()
            with stream:
                for i in orders[thread]:
                    case = self.cases[i]
                    try:
                        self.step(thread, case, i, shared, makers, handed)
                    except Exception as error:  # noqa: BLE001 whatever it raises is a result
                        self.problem("error", case, f"{case.title()}, thread {thread}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
                current_stream = getattr(torch.mps, "current_stream", torch.accelerator.current_stream if form.stream == "explicit" else None)
                if self.program.device == "mps" and current_stream:
                    with self.lock:
                        self.streams.add(current_stream().stream_id)
            end.wait()

        started = [threading.Thread(target=make, args=(i,), name=f"maker {i}") for i in range(len(makers))]
        started += [threading.Thread(target=work, args=(i,), name=f"worker {i}") for i in range(threads)]
        for one in started:
            one.start()
        for one in started:
            one.join()

    def step(self, thread, case, i, shared, makers, handed):
        """One call of the operator, and the comparison of one answer: the thread's own, or its neighbour's."""
        leaves = None
        try:
            if shared is not None:
                inputs = shared[i]
            elif makers:
                inputs = makers[thread].get(timeout=HAND_OVER_SECONDS)
                if isinstance(inputs, Exception):
                    raise inputs
            else:
                inputs = self.program.inputs(case)
            leaves = self.program.compute(case, inputs)
            with self.lock:
                self.calls += 1
        finally:
            if handed:
                handed[(thread + 1) % len(handed)].put((case, leaves))
        if not handed:
            self.compare(case, values.read(leaves), f"thread {thread}")
            return
        del leaves
        case, leaves = handed[thread].get(timeout=HAND_OVER_SECONDS)
        if leaves is not None:  # else the neighbour reports why
            self.compare(case, values.read(leaves), f"read by thread {thread}")


def against_cpu(program, cases, dtype):
    """The first difference from the CPU that is beyond the tolerances, or an empty text; and how many were compared."""
    if program.form.name not in ("basic", "backward"):
        return "", 0
    cpu, compared = Program(program.form, "cpu"), 0
    for case in cases:
        if case.random or case.entry.name in UNDEFINED:
            continue
        try:
            expected = values.read(cpu.compute(case, cpu.inputs(case)))
        except Exception:  # noqa: BLE001, S112 the CPU has no such operator: there is nothing to compare with
            continue
        compared += 1
        found = values.far(case.alone[0], expected, case.entry, dtype)
        if found:
            return f"{case.title()}: {found}", compared
    return "", compared


def synchronize(program):
    if program.device == "mps":
        torch.mps.synchronize()


def has_guards(program):
    return program.device == "mps" and hasattr(torch.mps, "stream_pool_stats")


def fences():
    """How often work was given to a stream outside of every guard: no operator of PyTorch's may."""
    return torch.mps.stream_pool_stats().get("fences", 0)


def run(job, entries, findings, progress):
    """Runs the job and gives its result as a dictionary; progress gets how far it is, for the case that the process dies."""
    started = time.monotonic()
    form, dtype = forms.parse(job["form"]), getattr(torch, job["dtype"])
    entry = entries[job["operator"]]
    missing = forms.why_not(form, entry, lambda: new_stream() is not None)
    if missing:
        return {"status": "does not apply", "reason": missing}
    program = Program(form, job["device"], job.get("without", ()))
    with torch.enable_grad() if form.call == "backward" else torch.no_grad():
        cases, reasons = prepare(program, entry, dtype, job, progress)
        if not cases:
            reason = reasons[0] if reasons else "does not apply: no samples"
            applies = next((reason for reason in reasons if not reason.startswith("does not apply")), "")
            if not applies:
                return {"status": "does not apply", "reason": reason.removeprefix("does not apply: ")}
            return {"status": "does not run alone", "reason": applies}
        if form.partner:
            beside, _ = prepare(program, entries[form.partner], dtype, job, progress)
            if not beside:
                return {"status": "does not apply", "reason": f"{form.partner} does not run alone"}
            cases += beside
        synchronize(program)
        found = findings()
        if found:
            return {"status": "does not run alone", "reason": f"the software Metal finds alone: {found[0]['message'][:160]}", "findings": found[:3]}
        far, with_cpu = against_cpu(program, cases, dtype)
    progress(phase="together", sample=-1)
    sys.setswitchinterval(1e-4)
    storm = Storm(program, cases, job)
    # Whether gradients are recorded belongs to the thread: new ones record.
    if form.call != "backward":
        plain = storm.step

        def step(*arguments):
            with torch.no_grad():
                plain(*arguments)

        storm.step = step
    storm.run()
    synchronize(program)
    found = findings()
    undeclared = [text for case in cases for text in case.undeclared]
    status, text, sample, title = "right", "", -1, ""
    if storm.problems:
        worst = next((p for p in storm.problems if p["status"] == "wrong values"), storm.problems[0])
        status, text, sample, title = worst["status"], worst["text"], worst["sample"], worst["case"]
    elif found:
        status = "race" if found[0]["kind"] == 1 else "violation"
        text = f"{found[0]['message']} ({found[0]['first']}; {found[0]['second']})"
    elif undeclared:
        status, text = "violation", undeclared[0]
    elif has_guards(program) and fences():
        status, text = "violation", f"{fences()} times work was given to a stream outside of every guard"
    return {
        "status": status, "text": text, "sample": sample, "case": title, "problems": len(storm.problems), "findings": found[:3], "found": len(found),
        "samples": [case.number for case in cases], "not_alone": reasons, "calls": storm.calls, "values": storm.compared, "streams": len(storm.streams),
        "random": "" if not any(case.random for case in cases) else "generator" if all(case.generator for case in cases if case.random) else "range",
        "cpu": far, "cpu_compared": with_cpu, "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip
