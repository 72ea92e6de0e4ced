"""native/overlay/overlay.h through ctypes."""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

_ERRORS: dict[int, type[Exception]] = {1: RuntimeError, 2: ValueError, 3: NotImplementedError, 4: TypeError}


class Argument(ctypes.Structure):
    """mpsforge_overlay_argument."""

    _fields_ = [("tensor", ctypes.c_void_p), ("data", ctypes.c_char_p), ("size", ctypes.c_uint64)]


_id, _stream, _object = ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p
_text, _sizes = ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_uint64)

# The arguments of those functions that give 0 or what to raise. The library of an overlay without streams lacks some.
_FUNCTIONS: dict[str, list[Any]] = {
    "attach": [ctypes.c_char_p] + 6 * [_object],
    "status": [_text],
    "synchronize": [],
    "empty_cache": [],
    "graph_statistics": [_text],
    "profiler_stop": [],
    "event_release": [_id],
    "event_record": [_id],
    "event_wait": [_id],
    "event_synchronize": [_id],
    "event_elapsed": [_id, _id, ctypes.POINTER(ctypes.c_double)],
    "stream_current": [ctypes.POINTER(_stream)],
    "stream_default": [ctypes.POINTER(_stream)],
    "stream_new": [ctypes.POINTER(_stream)],
    "stream_set": [_stream, ctypes.POINTER(_stream)],
    "stream_restore": [ctypes.POINTER(_stream)],
    "stream_query": [_stream, ctypes.POINTER(ctypes.c_int)],
    "stream_release": [],
    "stream_statistics": [_text],
    "external_begin": [ctypes.c_void_p, ctypes.POINTER(_object)],
    "external_end": [ctypes.POINTER(_object)],
    "suspend": [ctypes.POINTER(_object)],
    "resume": [ctypes.POINTER(_object)],
    "library_new": [ctypes.c_char_p, ctypes.POINTER(_object)],
    "library_names": [_object, _text],
    "kernel_new": [_object, ctypes.c_char_p, ctypes.POINTER(_object)],
    "kernel_facts": [_object, _sizes],
    "kernel_call": [_object, ctypes.POINTER(Argument), ctypes.c_size_t, _sizes, ctypes.c_size_t, _sizes, ctypes.c_size_t],
}


class Library:
    """The overlay's library. Its calls release Python's global lock."""

    def __init__(self, path: pathlib.Path) -> None:
        # Its symbols are nobody's business but its own: rebinding names those that others come to use.
        self.raw = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self._error = self.raw.mpsforge_overlay_error
        self._error.argtypes, self._error.restype = [], ctypes.c_char_p
        self._functions = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self.raw, "mpsforge_overlay_" + name, None)
            if function is None:
                continue
            function.argtypes, function.restype = arguments, ctypes.c_int
            self._functions[name] = function
        self.delete = {}
        for kind in ("library", "kernel"):
            function = getattr(self.raw, f"mpsforge_overlay_{kind}_delete")
            function.argtypes, function.restype = [_object], None
            self.delete[kind] = function

    def has(self, name: str) -> bool:
        """Whether the patches that the library was made of have what this function calls."""
        return name in self._functions

    def call(self, name: str, *arguments: Any) -> None:
        function = self._functions[name]
        if len(arguments) != len(_FUNCTIONS[name]):
            # ctypes would pass the rest as those of a variadic function, which Apple's arm64 does by other places than Linux.
            raise TypeError(f"mpsforge_overlay_{name}() takes {len(_FUNCTIONS[name])} arguments, not {len(arguments)}")
        kind = function(*arguments)
        if kind:
            raise _ERRORS[kind](self._error().decode(errors="replace"))

    def value(self, name: str, kind: Any, *arguments: Any) -> Any:
        """What a function stores through its last argument."""
        result = kind()
        self.call(name, *arguments, ctypes.byref(result))
        return result.value

    def lines(self, name: str, *arguments: Any) -> list[str]:
        return self.value(name, ctypes.c_char_p, *arguments).decode(errors="replace").splitlines()

    def attach(self, stock: bytes) -> None:
        python = ctypes.pythonapi
        unchecked = getattr(python, "PyThreadState_GetUnchecked", None) or python._PyThreadState_UncheckedGet
        functions = (
            unchecked,
            python.PyGILState_GetThisThreadState,
            python.PyEval_SaveThread,
            python.PyEval_RestoreThread,
            python.Py_IsInitialized,
            python.Py_AddPendingCall,
        )
        self.call("attach", stock, *(ctypes.cast(function, ctypes.c_void_p) for function in functions))


_opened: Library | None = None


def open_library(path: pathlib.Path) -> Library:
    global _opened
    _opened = Library(path)
    return _opened


def opened() -> Library | None:
    return _opened
