"""Whether this machine's GPU can be judged at all, before hours go into it: python3 probe.py > probe.json

GitHub's Macs are virtual, and their GPUs have failed at the first 256 bytes, had kernels return zeros, or ended the process. Exit code
0: judge it; 3: it fails here and is a virtual machine's, so nothing that follows would say anything; 1: it fails here and is a real one's."""

import json
import platform
import signal
import subprocess
import sys
from typing import Any, Callable

KERNEL = """#include <metal_stdlib>
kernel void exp_kernel( device float *to [[buffer(0)]], device float *from [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  to[place] = metal::exp(from[place]);
}"""


def asked(*command: str) -> str:
    """What a program of the system says; nothing where there is none, as on Linux."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        return ""


def is_virtual() -> bool:
    return asked("sysctl", "-n", "kern.hv_vmm_present") == "1"


def allocation() -> str:
    import torch

    zeros = torch.zeros(64, device="mps")
    assert zeros.cpu().tolist() == [0.0] * 64, "64 zeros are not zeros"
    return "256 bytes"


def matmul() -> str:
    import torch

    one, other = torch.rand(64, 32), torch.rand(32, 48)
    torch.testing.assert_close((one.to("mps") @ other.to("mps")).cpu(), one @ other, rtol=1e-4, atol=1e-4)
    return "as on the CPU"


def kernel() -> str:
    import torch

    compile_shader = getattr(torch.mps, "compile_shader", None) or torch.mps._compile_shader  # its name in 2.6
    numbers = torch.linspace(-2, 2, 1000)
    result = torch.zeros(1000, device="mps")
    compile_shader(KERNEL).exp_kernel(result, numbers.to("mps"))
    torch.testing.assert_close(result.cpu(), numbers.exp(), rtol=1e-4, atol=1e-4)
    return "as on the CPU"


def memory() -> str:
    import torch

    assert torch.mps.driver_allocated_memory() > 0, "the driver says that nothing is allocated"
    return f"{torch.mps.driver_allocated_memory()} bytes allocated, {torch.mps.recommended_max_memory()} recommended at most"


CHECKS: list[Callable[[], str]] = [allocation, matmul, kernel, memory]


def run() -> None:
    """Each check's result, a line of JSON each, on the standard output."""
    signal.alarm(300)
    for check in CHECKS:
        try:
            found = {"passed": True, "detail": check()}
        except Exception as error:
            found = {"passed": False, "detail": f"{type(error).__name__}: {error}"}
        print(json.dumps({check.__name__: found}), flush=True)


def checks() -> dict[str, Any]:
    """The checks in a process of their own: Metal's assertions end one. It is no forked child, in which Metal may not find its compiler."""
    child = subprocess.run([sys.executable, __file__, "--checks"], stdout=subprocess.PIPE, text=True, check=False)
    found = {name: result for line in child.stdout.splitlines() for name, result in json.loads(line).items()}
    for check in CHECKS[len(found) :]:
        found[check.__name__] = {"passed": False, "detail": f"the process ended with {child.returncode}"}
    return found


def main() -> int:
    if sys.argv[1:] == ["--checks"]:
        run()
        return 0
    found = checks()
    virtual = is_virtual()
    passed = all(check["passed"] for check in found.values())
    verdict = "judge it" if passed else "not judged: a virtual GPU that fails the probe" if virtual else "failed"
    report = {"schema": 1, "verdict": verdict, "system": platform.platform(), "virtual": virtual, "checks": found}
    report["device"] = asked("system_profiler", "SPDisplaysDataType")  # name, and what Metal it supports
    print(json.dumps(report, indent=1))
    return 0 if passed else 3 if virtual else 1


if __name__ == "__main__":
    sys.exit(main())
