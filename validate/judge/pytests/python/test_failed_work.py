"""Work that fails on the GPU is an exception in each thread that waits for the GPU, and later work is right."""

import threading

import torch
from harness import ParallelTest

ERROR = "(injected)"  # in the error that the software Metal gives to a command buffer that was asked to fail


class FailedWork(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.extension = self.need_extension()
        self.addCleanup(self.raise_all)

    def raise_all(self):
        """After this the calling thread has raised all that has failed so far."""
        while True:
            try:
                return torch.mps.synchronize()
            except RuntimeError as error:
                self.assertIn(ERROR, str(error))

    def failing_sum(self, tensor):
        self.extension.fail_command_buffer(1)
        return (tensor + 1).sum()

    def backward(self, tensor):
        """What the backward computes fails, on the autograd engine's thread."""
        leaf = tensor.clone().requires_grad_()
        total = (leaf * 2).sum()
        total.register_hook(lambda _: self.extension.fail_command_buffer(1))
        total.backward()
        return leaf.grad.cpu()

    def of_another_thread(self, tensor):
        """The thread that gave the work to the GPU has ended."""
        results = []
        maker = threading.Thread(target=lambda: results.append(self.failing_sum(tensor)))
        maker.start()
        maker.join()
        return (results[0] + 1).item()

    def with_event(self, tensor):
        self.failing_sum(tensor)
        event = torch.mps.Event()
        event.record()
        event.synchronize()

    def test_failed_work(self):
        places = {
            "item": lambda tensor: self.failing_sum(tensor).item(),
            "copy to the CPU": lambda tensor: self.failing_sum(tensor).cpu(),
            "synchronize": lambda tensor: (self.failing_sum(tensor), torch.mps.synchronize()),
            "event": self.with_event,
            "backward": self.backward,
            "another thread": self.of_another_thread,
        }
        barrier = threading.Barrier(self.settings.threads)

        def work(_):
            tensor = torch.ones(64, device="mps")
            torch.mps.synchronize()  # else the command buffer that fails may have it, too
            for name, consume in places.items():
                for _ in range(self.settings.iterations):
                    barrier.wait()
                    with self.assertRaisesRegex(RuntimeError, "The GPU failed to execute", msg=name) as raised:
                        consume(tensor)
                    self.assertIn(ERROR, str(raised.exception))
                    barrier.wait()
                    self.raise_all()
                    barrier.wait()
                    self.compare((tensor + 2).sum().cpu(), torch.tensor(192.0), f"after {name}")
                    self.done()

        self.together(work, operations=len(places) * self.settings.iterations)

    def test_failed_operators(self):
        """The exception names the operators of the command buffer that failed and their thread, and no other operators."""
        turn = threading.Lock()  # another thread's work outside of operators makes each commit what it has

        def backward(tensor):
            leaf = tensor.clone().requires_grad_()
            total = leaf.exp().sum()
            torch.mps.synchronize()
            total.register_hook(lambda _: self.extension.fail_command_buffer(1))
            total.backward()
            return leaf.grad.cpu()

        def another_thread(tensor):
            results = []
            maker = threading.Thread(target=lambda: results.append(self.failing_sum(tensor)))
            maker.start()
            maker.join()
            kept = -tensor  # in a command buffer of this thread's stream
            # a graph may commit by itself after the first of them
            with self.assertRaisesRegex(RuntimeError, rf"with work of add_Tensor(, \w+)? \(thread {maker.ident}\): "):
                (results[0] * kept).cpu()

        places = {
            "item": (lambda tensor: self.failing_sum(tensor).item(), "add_Tensor"),
            "synchronize": (lambda tensor: (self.failing_sum(tensor), torch.mps.synchronize()), "add_Tensor"),
            "event": (self.with_event, "add_Tensor"),
            "backward": (backward, "mul_Tensor"),
        }

        def work(_):
            with turn:
                tensor = torch.ones(64, device="mps")
                for name, (consume, named) in places.items():
                    (-tensor).cpu()  # a command buffer that does not fail
                    with self.assertRaises(RuntimeError, msg=name) as raised:
                        consume(tensor)
                    text = str(raised.exception)
                    self.assertRegex(text, rf"with work of (.*, )?{named}\b.* \(thread \d+\): ", name)
                    self.assertNotRegex(text, r"\bneg\b|\bexp\b", name)
                    self.raise_all()
                    self.compare((tensor + 2).sum().cpu(), torch.tensor(192.0), f"after {name}")
                    self.done()
                another_thread(tensor)
                self.compare((tensor + 2).sum().cpu(), torch.tensor(192.0), "after another thread")
                self.done()

        self.together(work, operations=len(places) + 1)

    def test_failed_work_once(self):
        """All threads that used MPS raise what failed on one of them, and raise it once; those that begin later do not."""
        tensor, barrier = torch.ones(64, device="mps"), threading.Barrier(self.settings.threads)

        def sum_of(what):
            self.compare(tensor.sum().cpu(), torch.tensor(64.0), what)

        def work(i):
            sum_of(f"thread {i} before")
            barrier.wait()
            if i == 0:
                self.failing_sum(tensor)
                torch.mps.empty_cache()  # waits, and raises nothing
                self.assertRaisesRegex(RuntimeError, "The GPU failed", torch.mps.synchronize)
            barrier.wait()
            if i > 0:
                self.assertRaisesRegex(RuntimeError, "The GPU failed", tensor.sum().item)
            sum_of(f"thread {i} after")
            self.done()

        def later(i):
            sum_of(f"later thread {i}")
            self.done()

        self.together(work, operations=1)
        self.together(later, operations=1)

    def test_failed_work_unheard(self):
        """A thread that begins after work has failed, which nobody has raised yet, raises it."""
        tensor, results = torch.ones(64, device="mps"), []
        torch.mps.synchronize()

        def fails(_):
            results.append(self.failing_sum(tensor))
            event = torch.mps.Event()
            event.record()
            while not event.query():  # raises nothing
                pass
            self.done()

        def hears(i):
            self.assertRaisesRegex(RuntimeError, "The GPU failed", results[0].cpu)
            self.compare((tensor + 2).sum().cpu(), torch.tensor(192.0), f"thread {i} afterwards")
            self.done()

        self.together(fails, operations=1, threads=1)
        self.counts.add(answers=1)
        self.together(hears, operations=1, threads=1)  # one that begins once another has raised it raises nothing
