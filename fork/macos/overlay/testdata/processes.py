"""Children by spawn, by fork before the parent used mps, and by subprocess have the overlay, too."""

import multiprocessing
import os
import subprocess
import sys

import torch

import mpsforge_overlay


def child() -> None:
    assert mpsforge_overlay.reason == "", mpsforge_overlay.reason
    assert torch.ones(3, device="mps").sum().item() == 3
    assert hasattr(torch.mps, "stream_pool_stats")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        process = multiprocessing.get_context(method).Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0, (method, process.exitcode)
    program = "import torch, mpsforge_overlay; raise SystemExit(mpsforge_overlay.reason or 0)"
    subprocess.run([sys.executable, "-c", program], check=True)
    print("ok")
