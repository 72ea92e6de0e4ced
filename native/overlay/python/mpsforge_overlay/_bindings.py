"""torch._C._mps_*, as far as the series changes them (torch/csrc/mps/Module.cpp)."""

from __future__ import annotations

import ctypes
import struct
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from ._library import Argument, Library

# How a number becomes an argument of a kernel: struct's letter, and for numbers of less width that of the whole.
_CASTS = {"fp16": "e", "int32": "i", "int16": "h", "int8": "b", "uint8": "B"}
_BITS = {"i": 32, "h": 16, "b": 8, "B": 8}


class _Object:
    """What the library made for Python, and deletes with it."""

    def __init__(self, library: Library, kind: str, handle: int) -> None:
        self._library, self._handle = library, handle
        weakref.finalize(self, library.delete[kind], handle).atexit = False


def _packed(values: list[int | float], cast: str) -> bytes:
    whole = isinstance(values[0], int)
    if not cast:
        return struct.pack(f"={len(values)}{'q' if whole else 'f'}", *values)
    if cast == "bf16":
        return b"".join(torch.tensor(value, dtype=torch.float32).to(torch.bfloat16).view(torch.int16).numpy().tobytes() for value in values)
    if cast not in _CASTS:
        raise RuntimeError(f"Unsupported cast instruction {cast}")
    letter = _CASTS[cast]
    if letter == "e":
        return struct.pack(f"={len(values)}e", *values)
    size = _BITS[letter] // 8
    return b"".join((int(value) & ((1 << _BITS[letter]) - 1)).to_bytes(size, "little") for value in values)


def _argument(value: Any, cast: str) -> bytes:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    if not values:
        raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
    if not isinstance(values[0], (int, float)):
        raise RuntimeError("Unsupported argument type")
    return _packed(values, cast)


def _sizes(values: Any) -> list[int] | None:
    if values is None:
        return None
    return [values] if isinstance(values, int) else list(values)


class MetalKernel(_Object):
    def __init__(self, library: Library, handle: int) -> None:
        super().__init__(library, "kernel", handle)

    def _fact(self, index: int) -> int:
        facts = (ctypes.c_uint64 * 3)()
        self._library.call("kernel_facts", self._handle, facts)
        return facts[index]

    @property
    def max_threads_per_threadgroup(self) -> int:
        return self._fact(0)

    @property
    def thread_execution_width(self) -> int:
        return self._fact(1)

    @property
    def static_thread_group_memory_length(self) -> int:
        return self._fact(2)

    def __call__(self, *args: Any, threads: Any = None, group_size: Any = None, arg_casts: Any = None) -> None:
        threads, group_size = _sizes(threads), _sizes(group_size) or []
        casts = arg_casts if isinstance(arg_casts, dict) else {}
        default = arg_casts if isinstance(arg_casts, str) else ""
        arguments = (Argument * len(args))()
        for index, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                arguments[index].tensor = value._cdata
                threads = threads or [value.numel()]
            else:
                data = _argument(value, casts.get(index, default))
                arguments[index].data, arguments[index].size = data, len(data)
        threads = threads or []
        lengths, groups = (ctypes.c_uint64 * len(threads))(*threads), (ctypes.c_uint64 * len(group_size))(*group_size)
        self._library.call("kernel_call", self._handle, arguments, len(args), lengths, len(threads), groups, len(group_size))


class ShaderLibrary(_Object):
    def __init__(self, library: Library, source: str) -> None:
        super().__init__(library, "library", library.value("library_new", ctypes.c_void_p, source.encode()))

    def __getattr__(self, name: str) -> MetalKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        return MetalKernel(self._library, self._library.value("kernel_new", ctypes.c_void_p, self._handle, name.encode()))

    def __dir__(self) -> list[str]:
        return self._library.lines("library_names", self._handle)


class ExternalWork:
    """A context manager. Where a signal handler raises, `_queue` is what has begun and not ended; it ends with the object at the latest."""

    def __init__(self, library: Library, expected: int) -> None:
        self._library, self._expected, self._queue = library, expected, ctypes.c_void_p()

    def __enter__(self) -> int:
        try:
            self._library.call("external_begin", self._expected, ctypes.byref(self._queue))
            return self._queue.value or 0
        except BaseException:
            self._end_what_has_begun()
            raise

    def __exit__(self, *_args: Any) -> None:
        self._library.call("external_end", ctypes.byref(self._queue))

    def _end_what_has_begun(self) -> None:
        if self._queue:
            self.__exit__()

    __del__ = _end_what_has_begun


class StreamContext:
    """A context manager. Where a signal handler raises, `_before[2]` says whether there is something to restore, at the latest with the object."""

    def __init__(self, library: Library, number: int | None) -> None:
        self._library, self._number, self._before = library, number, (ctypes.c_int64 * 3)()

    def __enter__(self) -> None:
        try:
            if self._number is not None:
                self._library.call("stream_set", self._number, self._before)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_args: Any) -> None:
        if self._before[2]:
            self._library.call("stream_restore", self._before)

    __del__ = __exit__


def _functions(library: Library) -> dict[str, Callable[..., Any]]:
    call, value = library.call, library.value

    def stream(number: int) -> torch.Stream:
        mps = torch.device("mps", 0)
        return torch.Stream(stream_id=number, device_index=mps.index, device_type=_device_type())

    def identifier(of: torch.Stream) -> int:
        if of.device.type != "mps":
            raise ValueError(f"{of} is not of MPS")
        return of.stream_id

    def statistics(of: str) -> dict[str, int]:
        return {name: int(number) for name, number in (line.split("\t") for line in library.lines(f"{of}_statistics"))}

    def run_suspended(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        suspension = ctypes.c_void_p()
        try:
            call("suspend", ctypes.byref(suspension))
            return kernel(*args, **kwargs)
        finally:
            call("resume", ctypes.byref(suspension))

    functions: dict[str, Callable[..., Any]] = {
        "deviceSynchronize": lambda: call("synchronize"),
        "emptyCache": lambda: call("empty_cache"),
        "profilerStopTrace": lambda: call("profiler_stop"),
        "releaseEvent": lambda event: call("event_release", event),
        "recordEvent": lambda event: call("event_record", event),
        "waitForEvent": lambda event: call("event_wait", event),
        "synchronizeEvent": lambda event: call("event_synchronize", event),
        "elapsedTimeOfEvents": lambda start, end: value("event_elapsed", ctypes.c_double, start, end),
        "compileShader": lambda source: ShaderLibrary(library, source),
    }
    if library.has("external_begin"):
        functions["ExternalWork"] = lambda queue: ExternalWork(library, queue)
    if not library.has("stream_current"):
        return functions
    return functions | {
        "getCurrentStream": lambda: stream(value("stream_current", ctypes.c_int64)),
        "getDefaultStream": lambda: stream(value("stream_default", ctypes.c_int64)),
        "getStreamFromPool": lambda: stream(value("stream_new", ctypes.c_int64)),
        "setStream": lambda to: call("stream_set", identifier(to), (ctypes.c_int64 * 3)()),
        "resetStream": lambda: call("stream_set", -1, (ctypes.c_int64 * 3)()),
        "StreamContext": lambda to: StreamContext(library, None if to is None else identifier(to)),
        "queryStream": lambda of: bool(value("stream_query", ctypes.c_int, identifier(of))),
        "releaseStreamSlot": lambda: call("stream_release"),
        "graphCacheStats": lambda: statistics("graph"),
        "streamPoolStats": lambda: statistics("stream"),
        "runSuspended": run_suspended,
    }


def _device_type() -> int:
    """c10::DeviceType::MPS."""
    return 13


def _static_runtime(*_args: Any, **_kwargs: Any) -> None:
    raise RuntimeError(
        "Static Runtime is refused under mpsforge_overlay: it would copy tensors of device mps by torch's own copy of the backend. "
        "MPSFORGE_OVERLAY=0 leaves torch as it is."
    )


def install(torch_c: types.ModuleType, library: Library) -> None:
    for name, function in _functions(library).items():
        setattr(torch_c, "_mps_" + name, function)
    # Its copies are branches inside libtorch_cpu, which nothing can lead to this copy (fork/macos/mac/branches.go).
    torch_c._jit_to_static_module = torch_c._fuse_to_static_module = _static_runtime
    torch_c._mps_ShaderLibrary, torch_c._mps_MetalKernel = ShaderLibrary, MetalKernel
