"""Device mps as a host build's Python has it: run by TestHostPython."""

import concurrent.futures
import ctypes
import json
import multiprocessing
import pathlib
import sys
import unittest

import torch

build = pathlib.Path(sys.executable).parent


def library_of(function):
    """The file whose code a built-in function runs."""
    address_of = ctypes.pythonapi.PyCFunction_GetFunction
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object]
    address = address_of(function)
    with open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if start <= address < end:
                return pathlib.Path(line.split()[5])


def double(values):
    return (torch.tensor(values, device="mps") * 2).tolist()


class Device(unittest.TestCase):
    def test_bindings_and_package_are_the_checkouts(self):
        self.assertEqual(pathlib.Path(torch.mps.__file__), build / "torch/mps/__init__.py")
        self.assertEqual(pathlib.Path(sys.modules[torch.mps.Event.__module__].__file__), build / "torch/mps/event.py")
        bindings = {name for name in dir(torch._C) if name.startswith("_mps_")}
        self.assertGreater(len(bindings), 15)
        for name in bindings:
            function = getattr(torch._C, name)
            if type(function) is type(len) and name != "_mps_compileShader":  # that one is pybind11's
                self.assertEqual(library_of(function).parent, build / "python", name)
        self.assertIn("_mps_compileShader", bindings)  # only a build with MPS has it

    def test_the_loaded_library_is_the_builds(self):
        import mpsforge_hostmps

        library, stamp = mpsforge_hostmps.identity()
        self.assertEqual(pathlib.Path(library), build / "libhostmps.so")
        print(json.dumps({"stamp": stamp}))

    def test_linear_is_right(self):
        torch.manual_seed(1)
        alone, inputs = torch.nn.Linear(8, 4), torch.randn(3, 8)
        expected = alone(inputs)
        expected.sum().backward()
        model = torch.nn.Linear(8, 4).to("mps")
        model.load_state_dict(alone.state_dict())
        found = model(inputs.to("mps"))
        found.sum().backward()
        torch.mps.synchronize()
        torch.testing.assert_close(found.cpu(), expected)
        torch.testing.assert_close(model.weight.grad.cpu(), alone.weight.grad)

    def test_events_measure_time(self):
        start, end = torch.mps.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
        values = torch.zeros(1024, device="mps")
        start.record()
        values.fill_(3)
        end.record()
        self.assertGreater(start.elapsed_time(end), 0)
        self.assertTrue(end.query())
        self.assertEqual(values.cpu().sum().item(), 3 * 1024)

    def test_memory_is_counted(self):
        before = torch.mps.current_allocated_memory()
        kept = torch.zeros(1 << 20, device="mps")
        self.assertGreaterEqual(torch.mps.current_allocated_memory() - before, kept.nbytes)

    def test_a_spawned_process_has_the_device_too(self):
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, spawn) as processes:
            self.assertEqual(processes.submit(double, [1.0, 2.0]).result(timeout=120), [2.0, 4.0])


if __name__ == "__main__":
    unittest.main()
