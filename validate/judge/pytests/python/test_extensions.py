"""Work that PyTorch's operators do not see: extensions that encode by themselves, and memory that is not the allocator's.

The extension is that of a host build (native/torch/python/field.mm). One thread after the other uses MPS, so stock is right.
"""

import math
import signal
import threading
import time
import traceback

import torch
from harness import ParallelTest

SIZE = 4096


class Extensions(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.addCleanup(self.synchronize)

    def test_foreign_buffer(self):
        """Threads and the main thread write tensors over buffers that another library made, as from_blob and DLPack give them, and read
        what the other wrote: some that the CPU can read, and private ones."""
        foreign = self.need_extension().foreign
        for kind, private in {"shared": False, "private": True}.items():
            tensors = [foreign(SIZE, private) for _ in range(self.settings.threads)]
            for tensor in tensors:
                tensor.zero_()
            for iteration in range(self.settings.iterations):
                for i, tensor in enumerate(tensors):
                    what, before = f"{kind}, thread {i}, iteration {iteration}", 2.0 * iteration

                    def work(_, tensor=tensor, what=what, before=before):
                        self.compare((tensor + 1).cpu(), torch.full((SIZE,), before + 1), what)
                        self.busy()
                        tensor.add_(1)
                        self.done()

                    self.together(work, operations=1, threads=1)
                    self.compare(tensor.cpu(), torch.full((SIZE,), before + 1), f"{what}, by the main thread", answer=False)
                    self.busy()
                    tensor.add_(1)

    def unseen(self, copy, value):
        """A thread writes a tensor late; the next one copies it in a way that is no operator; the main thread reads the copy,
        and writes both again. Each of the three steps needs the one before."""
        source, target = torch.zeros(SIZE, device="mps"), torch.zeros(SIZE, device="mps")

        def write(number):
            self.busy()
            source.fill_(number)

        def encode():
            self.busy()
            copy(target, source)

        for iteration in range(self.settings.iterations):
            for i in range(self.settings.threads):
                number = (iteration + i) % 7 + 1.0
                self.together(lambda _, number=number: write(number), operations=0, threads=1)
                self.together(lambda _: (encode(), self.done()), operations=1, threads=1)
                source.zero_()  # not before it is copied
                self.compare(target.cpu(), torch.full((SIZE,), value(number)), f"iteration {iteration}, turn {i}", 1e-6)
                target.fill_(-1)

    def test_raw_encoding(self):
        """An extension takes the thread's stream and encodes on its command buffer."""
        self.unseen(self.need_extension().encode_copy, lambda number: number)

    def test_raw_encoding_first(self):
        """The same by a thread that does nothing else with MPS."""
        encode_copy = self.need_extension().encode_copy
        source, target = torch.zeros(SIZE, device="mps"), torch.zeros(SIZE, device="mps")
        for iteration in range(self.settings.iterations):
            for i in range(self.settings.threads):
                self.busy()
                source.fill_(iteration + i + 1.0)
                self.together(lambda _: (encode_copy(target, source), self.done()), operations=1, threads=1)
                self.compare(target.cpu(), torch.full((SIZE,), iteration + i + 1.0), f"iteration {iteration}, turn {i}")

    def test_external_work(self):
        """A library takes the default stream's queue once, and commits command buffers of its own to it on any thread."""
        extension = self.need_extension()
        self.need(torch.mps, "external_work")
        with torch.mps.external_work() as queue:
            pass

        def copy(to, source):
            with torch.mps.stream(torch.mps.default_stream()), torch.mps.external_work(queue):
                extension.library_copy(to, source, queue)

        self.unseen(copy, lambda number: number)

    def test_interrupted_external_work(self):
        """Where a signal handler raises, as Ctrl-C does, as external work begins, runs and ends, the thread does not stay inside."""
        self.need(torch.mps, "external_work")
        tensor = torch.zeros(8, device="mps")
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, signal.default_int_handler)

        def work():
            with torch.mps.external_work():
                pass

        work()
        begin = time.perf_counter()
        work()
        most = 2 * (time.perf_counter() - begin)
        interrupted = inside = 0
        for i in range(self.settings.iterations):
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, most * i / self.settings.iterations))
                work()
                time.sleep(1)
            except KeyboardInterrupt as interrupt:
                interrupted += 1
                inside += any(frame.f_code is work.__code__ for frame, _ in traceback.walk_tb(interrupt.__traceback__))
            self.compare(tensor.add_(1).cpu(), torch.full((8,), i + 1.0), f"iteration {i}")
            self.done()
        # Python ignores what a handler raises within a finalizer, and the overlay's object has one.
        self.assertGreater(interrupted, self.settings.iterations // 2)
        self.assertGreater(inside, 0, "no signal came while external work began, ran or ended")
        self.counts.add(expected=self.settings.iterations)

    def test_dropped_external_work(self):
        """External work that is never ended, as its context is dropped, ends with that; one that was ended ends once."""
        self.need(torch.mps, "external_work")

        def work(i: int):
            tensor = torch.zeros(8, device="mps")
            for iteration in range(self.settings.iterations):
                dropped = torch.mps.external_work()
                dropped.__enter__()
                with self.assertRaises(RuntimeError):
                    tensor.add_(1)
                del dropped
                with torch.mps.external_work() as queue:
                    self.assertNotEqual(queue, 0)
                self.compare(tensor.add_(1).cpu(), torch.full((8,), iteration + 1.0), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_external_work_entered_twice(self):
        """One context that threads enter at once: it is one thread's, and the others get an exception and go on."""
        self.need(torch.mps, "external_work")
        ready = threading.Barrier(self.settings.threads)
        entered = [False] * self.settings.threads

        def work(i: int):
            tensor = torch.zeros(8, device="mps")
            for iteration in range(self.settings.iterations):
                if ready.wait() == 0:
                    self.context = torch.mps.external_work()
                ready.wait()
                try:
                    self.context.__enter__()
                except RuntimeError:
                    entered[i] = False
                else:
                    entered[i] = True
                ready.wait()
                if sum(entered) != 1:
                    raise AssertionError(f"iteration {iteration}: {sum(entered)} of {len(entered)} threads have entered one context")
                if entered[i]:
                    self.context.__exit__(None, None, None)
                self.compare(tensor.add_(1).cpu(), torch.full((8,), iteration + 1.0), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)

    def test_kernels_of_an_extension(self):
        """An extension's two kernels, one with PyTorch's encoder and one with its own, in turn with PyTorch's on one command buffer."""
        extension = self.need_extension()
        self.need(torch.mps, "external_work")

        def work(i):
            source, copy, result = [torch.full((SIZE,), 0.5 + i, device="mps") for _ in range(3)]
            for _ in range(self.settings.iterations):
                source.sub_(0.25)
                extension.kernel_exp(result, source)
                extension.kernel_copy(copy, result)
                extension.kernel_copy(source, copy)
                source.log_()
                self.done()
            self.compare(source.cpu(), torch.full((SIZE,), 0.5 + i - 0.25 * self.settings.iterations), f"thread {i}", 1e-4)
            self.counts.add(answers=self.settings.iterations - 1)

        self.together(work)

    def test_command_block(self):
        """What a model compiled ahead of time does: MetalKernelFunction::runCommandBlock, and no operator around it."""
        self.unseen(self.need_extension().run_shader, math.exp)

    def test_compiled_shader(self):
        """A shader of the program's own, by torch.mps: threads read one tensor of weights and write one after the other."""
        self.unseen(self.compiled_exp(), math.exp)

    def compiled_exp(self):
        library = self.need_shader_compiler()(
            "#include <metal_stdlib>\n"
            "kernel void exp_kernel( device float *to [[buffer(0)]], device float *from [[buffer(1)]], uint place [[thread_position_in_grid]]) {\n"
            "  to[place] = metal::exp(from[place]);\n}"
        )
        return library.exp_kernel

    def test_compiled_shader_waits(self):
        """Threads read one tensor of weights, by an operator and by a shader of the program's own. How often a stream waits for
        another one for it are facts: readers need not, but PyTorch takes each tensor that a shader is given as written."""
        self.need(torch.mps, "stream_pool_stats")
        shader, weights = self.compiled_exp(), torch.ones(SIZE, device="mps")
        kernels = {"operator": lambda to: torch.exp(weights, out=to), "shader": lambda to: shader(to, weights)}
        meet = threading.Barrier(self.settings.threads)

        def waits():
            return torch.mps.stream_pool_stats()["hand_over_waits"]

        def work(i):
            own = torch.zeros(SIZE, device="mps")
            for name, kernel in kernels.items():
                kernel(own)  # the first use waits for who made the weights
                meet.wait()
                before = waits()
                meet.wait()
                for _ in range(self.settings.iterations):
                    kernel(own)
                    self.done()
                    meet.wait()  # so that they come by turns
                if i == 0:
                    counted[name] = (waits() - before) / (self.settings.iterations * self.settings.threads)
                self.compare(own.cpu(), torch.full((SIZE,), math.e), f"thread {i}, {name}", 1e-6)
                self.counts.add(answers=self.settings.iterations - 1)

        counted = {}
        self.together(work, operations=2 * self.settings.iterations)
        for name, number in counted.items():
            self.counts.facts[f"waits for another stream by {name} that reads shared weights"] = number
        self.assertEqual(counted.get("operator"), 0, "operators that only read waited for each other")
