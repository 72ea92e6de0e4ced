"""Launches translated kernels through native/programs/launch_kernels.cc, with tensors as their memory."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

DTYPES = {
    "float": torch.float,
    "half": torch.half,
    "bfloat": torch.bfloat16,
    "float2": torch.complex64,
    "half2": torch.complex32,
    "bool": torch.bool,
    "uchar": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
}


class Memory(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("length", ctypes.c_uint64)]


@dataclass
class Argument:
    kind: int  # of native/shaders/run.h: 0 buffer, 1 threadgroup memory, 2 position
    writes: bool
    size: int
    type: str
    name: str


@dataclass
class Kernel:
    name: str
    arguments: list[Argument] = field(default_factory=list)


@dataclass
class Launch:
    """One kernel's memory by its arguments' names, its grid, and what it must write."""

    memory: Mapping[str, object]
    expected: Mapping[str, torch.Tensor] = field(default_factory=dict)
    threads: tuple[int, int, int] = (128, 1, 1)
    group: tuple[int, int, int] = (64, 1, 1)
    tolerance: float | None = None
    reached: Sequence[torch.Tensor] = ()  # by addresses that are data


def unwritten(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Not a number, of a type that has such ones."""
    count = torch.Size(shape).numel() * torch.empty(0, dtype=dtype).element_size()
    return torch.full((count,), 0xFF, dtype=torch.uint8).view(dtype).view(*shape)


class Library:
    def __init__(self, launcher: str, path: str) -> None:
        self.c = ctypes.CDLL(launcher)
        self.c.mpsforge_load.restype = self.c.mpsforge_launch.restype = ctypes.c_char_p
        text = self.c.mpsforge_load(path.encode())
        if text is None:
            raise OSError(f"{path} is no library of kernels")
        self.kernels: dict[str, Kernel] = {}
        for line in text.decode().splitlines():
            word, *rest = line.split("\t")
            if word == "kernel":
                kernel = self.kernels[rest[0]] = Kernel(rest[0])
            else:
                kernel.arguments.append(Argument(int(word), int(rest[0]) > 1, int(rest[1]), rest[2], rest[3]))

    def launch(self, kernel: Kernel, what: Launch, races: bool = False) -> str:
        """Returns what was found, which is nothing if all is right."""
        kept: list[torch.Tensor] = []
        memory = (Memory * (len(kernel.arguments) + len(what.reached)))()
        for place, argument in enumerate(kernel.arguments):
            if argument.kind == 2:
                continue
            given = what.memory[argument.name]
            tensor = given if isinstance(given, torch.Tensor) else torch.tensor(given)
            kept.append(tensor)
            memory[place] = Memory(tensor.data_ptr(), tensor.untyped_storage().nbytes())
        for place, tensor in enumerate(what.reached, len(kernel.arguments)):
            memory[place] = Memory(tensor.data_ptr(), tensor.untyped_storage().nbytes())
        grid = (ctypes.c_uint32 * 3)(*what.threads)
        group = (ctypes.c_uint32 * 3)(*what.group)
        return self.c.mpsforge_launch(kernel.name.encode(), memory, len(memory), grid, group, int(races)).decode()


def difference(result: torch.Tensor, expected: torch.Tensor, tolerance: float | None) -> str:
    """What differs, or nothing. Whole numbers are exact, unless the case has a tolerance."""
    if result.shape != expected.shape:
        return f"shape {tuple(result.shape)}, want {tuple(expected.shape)}"
    if not result.is_floating_point() and not result.is_complex():
        wrong = (result.long() - expected.to(result.dtype).long()).abs() > (tolerance or 0)
    else:
        if tolerance is None:
            tolerance = {torch.half: 4e-3, torch.complex32: 8e-3, torch.bfloat16: 3e-2}.get(result.dtype, 1e-4)
        wide = torch.complex128 if result.is_complex() else torch.double
        # What the result's type cannot hold is infinite there.
        a, b = result.to(wide), expected.to(wide).to(result.dtype).to(wide)
        wrong = ~torch.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        result, expected = a, b
    if not wrong.any():
        return ""
    at = int(wrong.flatten().nonzero()[0])
    return f"{int(wrong.sum())} of {wrong.numel()} wrong, first at {at}: {result.flatten()[at]}, want {expected.flatten()[at]}"
