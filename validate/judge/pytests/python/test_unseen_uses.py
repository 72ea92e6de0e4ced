"""Uses of memory that an operator's schema does not show, or shows too late. Threads run one after the other, so stock is right.

Each thread writes behind some work that takes long (busy), and the main thread reads after join: who does not wait for the
write sees zeros, or what was there before.
"""

import torch
from harness import ParallelTest

CHANNELS = 32


class UnseenUses(ParallelTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.synchronize)  # what nobody waited for is done before the process ends

    def test_running_statistics(self):
        """Batch norm and its kin write running_mean and running_var, which their schemas do not mark as written."""
        device, results = self.settings.device, []
        weight, bias = torch.ones(CHANNELS, device=device), torch.zeros(CHANNELS, device=device)

        def native(x, mean, var):
            torch.native_batch_norm(x, weight, bias, mean, var, True, 1.0, 1e-5)

        kinds = [
            lambda x, mean, var: torch.batch_norm(x, weight, bias, mean, var, True, 1.0, 1e-5, False),
            native,
            lambda x, mean, var: torch.ops.aten._batch_norm_with_update(x, weight, bias, mean, var, 1.0, 1e-5),
            lambda x, mean, var: torch.instance_norm(x, weight, bias, mean, var, True, 1.0, 1e-5, False),
        ]

        def work(i):
            x = torch.full((4, CHANNELS, 8, 8), i + 3.0, device=device)
            self.busy()
            kinds[i % len(kinds)](x, means[i], variances[i])
            self.done()

        for _ in range(self.settings.iterations):
            means = [torch.zeros(CHANNELS, device=device) for _ in range(self.settings.threads)]
            variances = [torch.ones(CHANNELS, device=device) for _ in range(self.settings.threads)]
            self.in_turn(work)
            results += [(i, means[i].cpu(), variances[i].cpu()) for i in range(self.settings.threads)]
        for i, mean, variance in results:
            self.compare(mean, torch.full((CHANNELS,), i + 3.0), f"running_mean, kind {i % len(kinds)}", 1e-4)
            self.compare(variance, torch.zeros(CHANNELS), f"running_var, kind {i % len(kinds)}", 1e-4, answer=False)

    def test_freed_inside(self):
        """An operator frees the memory that it is to write; the next tensor gets that memory, and is not what was there before."""
        device, size = self.settings.device, 50_000
        larger = torch.zeros(4 * size, device=device)
        kinds = {
            "resize_": lambda tensor: tensor.resize_(4 * size),
            "out=": lambda tensor: torch.add(larger, 1, out=tensor),
            "set_ to a tensor": lambda tensor: tensor.set_(larger),
            "set_ to a storage": lambda tensor: tensor.set_(larger.untyped_storage(), 0, (4 * size,), (1,)),
        }

        def use(free, tensor):
            free(tensor)
            self.synchronize()

        def read(what):
            for tensor in later:
                self.compare(tensor.cpu(), torch.full((size,), 1.0 + iteration), what)
                self.done()

        for name, free in kinds.items():
            for iteration in range(self.settings.iterations):
                tensor = torch.zeros(size, device=device)
                self.together(lambda _, free=free, tensor=tensor: use(free, tensor), operations=0, threads=1)
                one = torch.ones(1, device=device)
                self.busy()
                later = [one.expand(size) + iteration for _ in range(3)]  # one of them has the memory, if it is given out again
                self.together(lambda _, what=f"{name}, iteration {iteration}": read(what), operations=3, threads=1)

    def test_stream_inside_an_operator(self):
        """An operator written in Python writes its argument on another stream than its caller's."""
        self.need(torch.mps, "Stream", "stream")
        device, size = self.settings.device, 4096
        streams = [torch.mps.Stream() for _ in range(self.settings.threads)]

        @torch.library.custom_op("field::write_elsewhere", mutates_args={"tensor"})
        def write_elsewhere(tensor: torch.Tensor, number: int) -> None:
            with torch.mps.stream(streams[number]):
                self.busy()
                tensor.fill_(number + 1.0)

        for iteration in range(self.settings.iterations):
            tensors = [torch.zeros(size, device=device) for _ in range(self.settings.threads)]

            def work(i, tensors=tensors):
                write_elsewhere(tensors[i], i)
                self.done()

            self.in_turn(work)
            for i, tensor in enumerate(tensors):
                self.compare(tensor.cpu(), torch.full((size,), i + 1.0), f"thread {i}, iteration {iteration}")

    def test_record_function_off(self):
        """The reader has switched PyTorch's record functions off, as some servers do to save time."""
        device, size = self.settings.device, 4096
        results = {}

        def work(i):
            self.busy()
            results[i] = torch.full((size,), i + 1.0, device=device) * 2
            self.done()

        for iteration in range(self.settings.iterations):
            self.in_turn(work)
            torch.autograd._enable_record_function(False)
            try:
                for i, tensor in results.items():
                    self.compare((tensor + 1).cpu(), torch.full((size,), 2 * (i + 1.0) + 1), f"thread {i}, iteration {iteration}")
            finally:
                torch.autograd._enable_record_function(True)
            results.clear()

    def test_strided_first(self):
        """A thread's first work is to copy a strided view to the CPU."""
        device = self.settings.device
        base = torch.arange(96.0).view(8, 12)
        there = base.to(device)
        views = [lambda t: t.unfold(1, 3, 1), lambda t: t[:, ::2], lambda t: t.t()[1:5], lambda t: t.diagonal(), lambda t: t[:, :1].expand(8, 12)]
        found = {}

        def work(i):
            found[i] = views[i % len(views)](there).cpu()
            self.done()

        for iteration in range(self.settings.iterations):
            self.in_turn(work)
            for i, view in found.items():
                self.compare(view.contiguous(), views[i % len(views)](base).contiguous(), f"view {i % len(views)}, iteration {iteration}")

    def test_gathered_inputs(self):
        """Before macOS 15 an operator gathers inputs that do not begin where their memory does: one after the other, for one graph."""
        device = self.settings.device
        bounds = torch.linspace(-1, 0, 65), torch.linspace(1, 0, 65)
        low, high = [bound.to(device) for bound in bounds]

        def work(i):
            values = torch.linspace(-2, 2 + i, 64)
            for iteration in range(self.settings.iterations):
                found = torch.clamp(values.to(device), min=low[1:], max=high[1:])
                self.compare(found.cpu(), torch.clamp(values, min=bounds[0][1:], max=bounds[1][1:]), f"thread {i}, iteration {iteration}")
                self.done()

        self.together(work)
        whole, held = torch.linspace(0, 1, (1 << 16) + 1).to(device), []
        for _ in range(8):  # median() has no autorelease pool, nor has Python's main thread
            whole[1:].median()
            torch.mps.synchronize()
            held.append(torch.mps.current_allocated_memory())
        self.assertLess(held[-1] - held[1], 1 << 18, f"bytes that gathered inputs keep, in turn: {held}")

    def test_host_memory(self):
        """A thread copies to the host without waiting; another copies from there to the device. Memory of the host is no buffer of PyTorch's."""
        device, size = self.settings.device, 1 << 18
        here = [torch.zeros(size) for _ in range(self.settings.threads)]

        def work(i):
            self.busy()
            here[i].copy_(torch.full((size,), i + 1.0, device=device), non_blocking=True)
            self.done()

        for iteration in range(self.settings.iterations):
            for tensor in here:
                tensor.zero_()
            self.in_turn(work)
            copies = [torch.empty(size, device=device).copy_(tensor) for tensor in here]
            for i, tensor in enumerate(copies):
                self.compare(tensor.cpu(), torch.full((size,), i + 1.0), f"thread {i}, iteration {iteration}")

    def test_host_memory_in_part(self):
        """The same where the reader's tensor begins in the middle of the writer's memory."""
        device, size, start = self.settings.device, 1 << 18, 1 << 12
        here = [torch.zeros(size) for _ in range(self.settings.threads)]

        def work(i):
            self.busy()
            here[i].copy_(torch.full((size,), i + 1.0, device=device), non_blocking=True)
            self.done()

        for iteration in range(self.settings.iterations):
            for tensor in here:
                tensor.zero_()
            self.in_turn(work)
            parts = [torch.frombuffer(memoryview(tensor.numpy())[start:], dtype=torch.float32) for tensor in here]
            copies = [torch.empty(size - start, device=device).copy_(part, non_blocking=True) for part in parts]
            for i, tensor in enumerate(copies):
                self.compare(tensor.cpu(), torch.full((size - start,), i + 1.0), f"thread {i}, iteration {iteration}")

    def test_host_memory_twice(self):
        """Two streams copy to one memory of the host without waiting: what the later copy wrote stays, and a third stream's copy from there
        comes after it."""
        self.need_mps()
        self.need(torch.mps, "Stream", "stream")
        size = 1 << 18
        ones, twos, here = torch.full((size,), 1.0, device="mps"), torch.full((size,), 2.0, device="mps"), torch.zeros(size)
        first, second, third = (torch.mps.Stream() for _ in range(3))
        for iteration in range(self.settings.iterations):
            self.synchronize()
            with torch.mps.stream(first):
                self.busy()
                here.copy_(ones, non_blocking=True)
            with torch.mps.stream(second):
                here.copy_(twos, non_blocking=True)
            with torch.mps.stream(third):
                back = torch.empty(size, device="mps").copy_(here, non_blocking=True)
            self.synchronize()
            self.compare(here.clone(), torch.full((size,), 2.0), f"on the host, iteration {iteration}")
            self.compare(back.cpu(), torch.full((size,), 2.0), f"copied from there, iteration {iteration}")
            self.counts.add(expected=1, operations=1)

    def test_event_first(self):
        """A thread's first call records an event: on stock's one queue that is after all that any thread has enqueued."""
        self.need_mps()
        size = 1 << 18
        here = torch.zeros(size)

        def work(_):
            event = torch.mps.Event()
            event.record()
            event.synchronize()
            self.compare(here.clone(), torch.full((size,), value), f"iteration {iteration}")
            self.done()

        for iteration in range(self.settings.iterations):
            for value in (iteration + float(i + 1) for i in range(self.settings.threads)):
                tensor = torch.full((size,), value, device="mps")
                self.busy()
                here.copy_(tensor, non_blocking=True)
                self.together(work, operations=1, threads=1)
