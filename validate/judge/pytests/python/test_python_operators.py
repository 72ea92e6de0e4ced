"""Operators whose kernels are Python: while one runs, other threads do the same things as at any time, and it may wait for them.

No two threads use MPS at the same moment, so stock is right.
"""

import threading
import typing
from concurrent.futures import ThreadPoolExecutor

import torch
from harness import ParallelTest

SIZE = 4096


class PythonOperators(ParallelTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.synchronize)

    def wait_for(self, event, what):
        """The wait itself gives up; if PyTorch still waits inside, the runner ends the process."""
        if not event.wait(30):
            raise TimeoutError(what)

    def test_index_by_tensor(self):
        """While an operator written in Python has a tensor, another thread indexes that tensor by a tensor, which waits for its number."""
        device = self.settings.device
        entered, ended = threading.Event(), threading.Event()

        @torch.library.custom_op("field::add_and_wait", mutates_args={"tensor"})
        def add_and_wait(tensor: torch.Tensor) -> None:
            tensor.add_(1)
            entered.set()
            self.wait_for(ended, "the thread that indexes did not come back")

        def work(tensor, index, found):
            self.wait_for(entered, "the operator did not begin")
            found.append(tensor[index].cpu())
            found.append(tensor[index : index + 2].cpu())
            tensor[index] = 5.0
            ended.set()
            self.done()

        for iteration in range(self.settings.iterations):
            entered.clear()
            ended.clear()
            tensor, index, found = torch.arange(SIZE * 1.0).to(device), torch.tensor(3, device=device), []
            calls = threading.Thread(target=add_and_wait, args=(tensor,))
            calls.start()
            self.together(lambda _, args=(tensor, index, found): work(*args), operations=1, threads=1)
            calls.join()
            expected = torch.arange(SIZE * 1.0) + 1
            self.compare(found[0], expected[3], f"iteration {iteration}")
            self.compare(found[1], expected[3:5], f"iteration {iteration}", answer=False)
            expected[3] = 5
            self.compare(tensor.cpu(), expected, f"iteration {iteration}", answer=False)

    def in_pool(self, call, mutates=False):
        """Calls an operator that hands its arguments to threads of a pool, one at a time, and waits for them."""
        device = self.settings.device
        for iteration in range(self.settings.iterations):
            parts = [torch.full((SIZE,), i + 1.0, device=device) for i in range(self.settings.threads)]
            result = call(parts).cpu()
            self.counts.add(expected=1)
            self.done()
            total = float(sum(i + 1 for i in range(self.settings.threads)))
            self.compare(result, torch.full((SIZE,), 2 * total), f"iteration {iteration}")
            for i, part in enumerate(parts if mutates else []):
                self.compare(part.cpu(), torch.full((SIZE,), 2 * (i + 1.0)), f"part {i}, iteration {iteration}", answer=False)

    def test_pool_in_operator(self):
        """A custom operator whose body maps its arguments over a pool of threads."""
        with ThreadPoolExecutor(self.settings.threads) as pool:

            @torch.library.custom_op("field::sum_of_doubles", mutates_args={"parts"})
            def sum_of_doubles(parts: typing.List[torch.Tensor]) -> torch.Tensor:  # noqa: UP006 custom_op knows no list[...]
                for part in parts:
                    pool.submit(part.mul_, 2).result()
                return torch.stack(parts).sum(0)

            self.in_pool(sum_of_doubles, mutates=True)

    def test_python_kernel(self):
        """The same as a kernel that is registered for device mps."""
        library = torch.library.Library("field_kernel", "DEF")  # noqa: TOR901 it ends with the process
        library.define("sum_of_doubles(Tensor(a!)[] parts) -> Tensor")
        with ThreadPoolExecutor(self.settings.threads) as pool:

            def kernel(parts):
                for part in parts:
                    pool.submit(part.mul_, 2).result()
                return torch.stack(parts).sum(0)

            library.impl("sum_of_doubles", kernel, self.settings.device.upper())
            self.in_pool(torch.ops.field_kernel.sum_of_doubles, mutates=True)

    def test_python_inside_a_kernel(self):
        """A kernel in Python takes the place of zero_, and PyTorch's kernel of sum calls it, as this sum is of nothing. Another takes that of
        the CPU's avg_pool2d, which PyTorch's kernel for mps calls for integers with a divisor."""
        library = torch.library.Library("aten", "IMPL")  # noqa: TOR901 it ends with the process
        device = self.settings.device
        with ThreadPoolExecutor(1) as pool:

            def work(i):
                nothing, result = torch.ones(0, 64, device=device), torch.full((64,), i + 1.0, device=device)
                torch.sum(nothing, 0, out=result)
                self.compare(result.cpu(), torch.full((64,), 3.0), f"thread {i}")
                pooled = torch.nn.functional.avg_pool2d(there, 2, divisor_override=3)
                self.compare(pooled.cpu(), numbers[..., ::2, ::2], f"thread {i}, of the CPU's kernel", answer=False)
                self.done()

            def pooling(tensor, *_):
                pool.submit(there.add_, 0).result()
                return tensor[..., ::2, ::2].contiguous()

            numbers = torch.arange(64).reshape(1, 1, 8, 8)
            there = numbers.to(device)
            library.impl("avg_pool2d", pooling, "CPU")

            # zero_ with threes, to see that it was this one
            library.impl("zero_", lambda tensor: pool.submit(tensor.fill_, 3).result() if tensor.numel() else tensor, device.upper())
            for _ in range(self.settings.iterations):
                self.in_turn(work)

    def test_python_inside_two_kernels(self):
        """A kernel in Python takes the place of fill_. PyTorch's kernel of renorm calls the one of the norm, which calls it, as this is the
        norm of nothing; and in it a second thread uses mps for the first time."""
        library = torch.library.Library("aten", "IMPL")  # noqa: TOR901 it ends with the process
        device = self.settings.device
        nothing, other = torch.empty(0, 4, device=device), torch.arange(64.0).to(device)
        with ThreadPoolExecutor(1) as pool:

            def kernel(tensor, value):
                pool.submit(other.add_, 1).result()
                return tensor.copy_(torch.zeros(tensor.shape) + value)

            library.impl("fill_.Scalar", kernel, device.upper())
            self.assertEqual(torch.renorm(nothing, 2, 1, 1.0).shape, (0, 4))
        self.counts.add(expected=1)
        self.done()
        self.compare(other.cpu(), torch.arange(64.0) + 1, "what the second thread added to")

    def test_fallback_in_python(self):
        """An operator with a kernel in Python for the CPU alone is called with a tensor of mps: the CPU fallback copies it, and in the
        kernel a pool of threads uses the tensor of mps itself."""
        library = torch.library.Library("field_fallback", "DEF")  # noqa: TOR901 it ends with the process
        library.define("add_maximum_(Tensor(a!) tensor) -> Tensor(a!)")
        device, seen = self.settings.device, []
        with ThreadPoolExecutor(self.settings.threads) as pool:

            def kernel(copy):
                seen.append(copy.device.type)
                return copy.add_(pool.submit(lambda: there.max().item()).result())

            library.impl("add_maximum_", kernel, "CPU")
            for iteration in range(self.settings.iterations):
                there = torch.arange(float(SIZE), device=device) + iteration
                torch.ops.field_fallback.add_maximum_(there)
                self.counts.add(expected=1)
                self.done()
                self.compare(there.cpu(), torch.arange(float(SIZE)) + SIZE - 1 + 2 * iteration, f"iteration {iteration}")
        self.assertEqual(seen, ["cpu"] * self.settings.iterations)

    def test_nested_operators(self):
        """Each thread runs an operator that has one tensor as its argument, and whose body adds to the tensors of all threads."""
        library = torch.library.Library("field_nested", "DEF")  # noqa: TOR901 it ends with the process
        library.define("add_to_all(Tensor(a!) own) -> ()")
        device, threads = self.settings.device, self.settings.threads
        tensors = [torch.zeros(SIZE, device=device) for _ in range(threads)]
        meet = threading.Barrier(threads)

        def kernel(own):
            meet.wait(30)  # all of them are inside their operators
            own.add_(100)
            for tensor in tensors:
                tensor.add_(1)

        library.impl("add_to_all", kernel, device.upper())

        def work(i):
            for _ in range(self.settings.iterations):
                torch.ops.field_nested.add_to_all(tensors[i])
                self.done()

        self.together(work)
        for i, tensor in enumerate(tensors):
            self.compare(tensor.cpu(), torch.full((SIZE,), (100.0 + threads) * self.settings.iterations), f"tensor {i}")
        # Each tensor is the sum over all the operations.
        self.counts.add(answers=threads * (self.settings.iterations - 1))
