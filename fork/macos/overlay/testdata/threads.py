"""threads.py N ITERATIONS: forward and backward of a shared module, copies, random numbers and synchronize on N threads."""

import sys
import threading

import torch
from torch import nn

count, iterations = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
module = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8))
given = torch.randn(16, 32)
expected = module(given).detach()
on_mps = module.to("mps")
wrong = []


def work():
    try:
        for _ in range(iterations):
            here = given.to("mps").requires_grad_(True)
            result = on_mps(here)
            result.sum().backward()
            if not torch.allclose(result.detach().cpu(), expected, rtol=1e-3, atol=1e-3):
                wrong.append("a wrong value")
            torch.empty(100, device="mps").uniform_().copy_(torch.ones(100))
            torch.mps.synchronize()
    except Exception as error:
        wrong.append(repr(error))


threads = [threading.Thread(target=work) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("wrong:", wrong[:3])
sys.exit(1 if wrong else 0)
