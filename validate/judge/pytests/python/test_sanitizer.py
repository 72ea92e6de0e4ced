"""What PYTORCH_MPS_SANITIZE finds is said where the program is: as an exception, or as a warning, at its line in Python.

Each test runs in a process of its own with the variable set; mpsforge sets it (validate/judge/pytests/tests.go).
"""

import traceback
import warnings

import torch
from harness import ParallelTest

SIZE = 4096


class Sanitizer(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.need(torch.mps, "Stream")
        self.addCleanup(self.synchronize)

    def warnings_of(self, call):
        """The sanitizer's warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [warning for warning in caught if "PYTORCH_MPS_SANITIZE" in str(warning.message)]

    def unordered(self):
        """A kernel of an extension binds a tensor of another stream, and neither guards it nor asks for its stream."""
        extension = self.need_extension()
        tensor = torch.full((SIZE,), 2.0, device="mps")
        other = torch.mps.Stream()

        def bind():
            with torch.mps.stream(other):
                torch.ones(1, device="mps")  # the kernel comes after an operator
                extension.bind(tensor)

        return tensor, bind

    def test_sanitizer_raises(self):
        """PYTORCH_MPS_SANITIZE=error"""
        tensor, bind = self.unordered()

        def work(_):
            for _ in range(self.settings.iterations):
                try:
                    bind()
                    raised = ""
                except RuntimeError:  # assertRaises drops the traceback
                    raised = traceback.format_exc()
                self.assertIn("code outside of PyTorch's operators gives stream", raised)
                self.assertIn("extension.bind(tensor)", raised)
                self.compare((tensor * 2).cpu(), torch.full((SIZE,), 4.0), "after it")
                self.done()

        self.together(work, threads=1)

    def test_sanitizer_warns(self):
        """PYTORCH_MPS_SANITIZE=warn"""
        tensor, bind = self.unordered()
        for _ in range(self.settings.iterations):
            [warning] = self.warnings_of(bind)
            self.assertIn("code outside of PyTorch's operators gives stream", str(warning.message))
            self.assertEqual(warning.filename, __file__)
            self.assertEqual([], self.warnings_of(lambda: tensor.add_(1)))
        self.compare(tensor.cpu(), torch.full((SIZE,), 2.0 + self.settings.iterations), "the tensor", answer=False)

    def test_sanitizer_waits(self):
        """PYTORCH_MPS_SANITIZE=warn,waits"""
        one, other = torch.mps.Stream(), torch.mps.Stream()

        def use(wait):
            with torch.mps.stream(one):
                tensor = torch.full((SIZE,), 2.0, device="mps")
            with torch.mps.stream(other):
                wait()
                results.append(tensor + 1)

        for _ in range(self.settings.iterations):
            results = []
            [warning] = self.warnings_of(lambda: use(lambda: None))
            self.assertIn(f"on stream {other.stream_id} reads a tensor that Scalar_fill_ on stream {one.stream_id}", str(warning.message))
            self.assertEqual(warning.filename, __file__)
            for wait in (lambda: other.wait_stream(one), lambda: other.wait_event(one.record_event()), one.synchronize, torch.mps.synchronize):
                self.assertEqual([], self.warnings_of(lambda wait=wait: use(wait)))
            for result in results:
                with torch.mps.stream(other):
                    self.compare(result.cpu(), torch.full((SIZE,), 3.0), "the sum", answer=False)

    def test_sanitizer_waits_of_default(self):
        """PYTORCH_MPS_SANITIZE=warn,waits: one of the two streams is the default one."""
        other = torch.mps.Stream()
        for _ in range(self.settings.iterations):
            for made, used in ((torch.mps.default_stream(), other), (other, torch.mps.default_stream())):
                with torch.mps.stream(made):
                    self.busy()
                    tensor = torch.full((SIZE,), 2.0, device="mps")
                results = []
                with torch.mps.stream(used):
                    [warning] = self.warnings_of(lambda tensor=tensor, results=results: results.append(tensor + 1))
                self.assertIn("did not make it wait", str(warning.message))
                torch.mps.synchronize()
                self.compare(results[0].cpu(), torch.full((SIZE,), 3.0), "the sum", answer=False)

    def test_sanitizer_poison(self):
        """PYTORCH_MPS_SANITIZE=poison"""

        def work(i):
            for iteration in range(self.settings.iterations):
                size = SIZE << (iteration % 8)
                unwritten = torch.empty(size, device="mps")
                self.compare(unwritten.isnan().sum().cpu(), torch.tensor(size), f"thread {i}: numbers that nobody has written")
                number = torch.empty(size, device="mps", dtype=torch.int32)
                self.compare(number.cpu(), torch.full((size,), -1, dtype=torch.int32), f"thread {i}: whole ones")
                torch.add(unwritten.fill_(i), 1, out=unwritten)
                self.compare(unwritten.cpu(), torch.full((size,), i + 1.0), f"thread {i}: numbers that were written")
                del unwritten, number  # the next ones may be there
                self.done()

        self.together(work)
