"""Runs what inductor_generate.py wrote on device mps, by four threads at once, and compares each graph's values with the CPU's.

inductor_run.py FILE prints one JSON object: how many graphs and Metal sources ran for each model, what went wrong, and
what the software Metal found.
Runs under any PyTorch with device mps: of Inductor it needs nothing, as its code calls ATen and its own kernels only.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from typing import Any, Callable

import torch
from findings import findings

compile_shader = torch._C._mps_compileShader


class Externs:
    """Inductor's extern_kernels: functions of torch by name."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(torch, name)


class Nothing:
    def wait(self, names: dict[str, Any]) -> None:
        pass


def check_layout(tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> None:
    wrong = [i for i, n in enumerate(size) if n > 1 and tensor.stride(i) != stride[i]]
    if tuple(tensor.shape) != tuple(size) or wrong:
        raise AssertionError(f"{tuple(tensor.shape)} {tensor.stride()}, and {size} {stride} was expected")


def load(graph: dict[str, Any]) -> Callable[[list[torch.Tensor]], Any]:
    """Makes the graph's function. The imports at the top of its code are those of its own version of PyTorch, and left out."""
    imports, code = graph["code"].split("import compile_mps_shader\n", 1)
    names: dict[str, Any] = {
        "torch": torch,
        "math": math,
        "inf": math.inf,
        "nan": math.nan,
        "device": torch.device,
        "aten": torch.ops.aten,
        "empty_strided": torch.empty_strided,
        "extern_kernels": Externs(),
        "reinterpret_tensor": lambda t, size, stride, offset=0: torch.as_strided(
            t, size, stride, t.storage_offset() + offset
        ),
        "assert_size_stride": check_layout,
        "assert_alignment": lambda *_: None,
        "async_compile": Nothing(),
        "compile_mps_shader": lambda source: compile_shader(graph["shaders"][source]),
    }
    exec(compile(code.split("def benchmark_compiled_module", 1)[0], f"{graph['model']} {graph['pass']}", "exec"), names)
    return names["call"]


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    there = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="mps")
    there.copy_(tensor)
    return there


def compare(graph: dict[str, Any], call: Callable[[list[torch.Tensor]], Any]) -> None:
    got = call([on_device(t) for t in graph["inputs"]])
    if len(got) != len(graph["outputs"]):
        raise AssertionError(f"{len(got)} outputs, and {len(graph['outputs'])} were expected")
    for i, (here, want) in enumerate(zip(got, graph["outputs"])):
        if want is not None:
            torch.testing.assert_close(here.cpu(), want, rtol=1e-3, atol=1e-4, msg=lambda m: f"output {i}: {m}")


def main() -> None:
    graphs = torch.load(sys.argv[1], weights_only=True)
    report: dict[str, Any] = {"models": {}, "wrong": []}
    calls = []
    for graph in graphs:
        model = report["models"].setdefault(graph["model"], {"forward": 0, "backward": 0, "sources": 0})
        model[graph["pass"]] += 1
        model["sources"] += len(graph["shaders"])
        calls.append((graph, load(graph)))

    def thread() -> None:
        for graph, call in calls:
            try:
                compare(graph, call)
            except Exception as wrong:
                report["wrong"].append(f"{graph['model']} {graph['pass']}: {type(wrong).__name__}: {wrong}")

    threads = [threading.Thread(target=thread) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps({**report, "findings": findings()}))


if __name__ == "__main__":
    main()
