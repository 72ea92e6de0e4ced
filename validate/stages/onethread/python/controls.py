"""A program, and the same with one difference planted: each must show in the measure that it is of (validate/stages/onethread/controls.go)."""

import os

import torch

DEVICE = "mps"
kept = []  # what a fault keeps


def value(leaves):
    """The last bit of one number."""
    number = leaves[0].detach().cpu().flatten()
    number[0] = torch.nextafter(number[0], number[0] + 1)
    leaves[0] = number.view(leaves[0].shape).to(DEVICE)


def kernel(_leaves):
    torch.ones(3, device=DEVICE).add_(1)


def wait(_leaves):
    torch.mps.synchronize()


def peak(_leaves):
    torch.empty(48 << 20, dtype=torch.uint8, device=DEVICE)


def keep(_leaves):
    kept.append(torch.empty(3, device=DEVICE))


def graph(_leaves):
    torch.logcumsumexp(torch.ones(3, 5, 2, device=DEVICE), 0)


def pipeline(_leaves):
    torch.arange(6, device=DEVICE).bitwise_and(3)


def event(_leaves):
    kept.append(torch.mps.Event())
    kept[-1].record()
    kept.append(torch.mps.Event())
    kept[-1].record()


def throw(_leaves):
    raise RuntimeError("planted")


def crash(_leaves):
    os.abort()


def nothing(_leaves):
    pass


FAULTS = {"none": nothing, "again": nothing, "value": value, "kernel": kernel, "wait": wait, "peak": peak, "kept": keep, "graph": graph, "pipeline": pipeline,
          "event": event, "raise": throw, "crash": crash}  # fmt: skip


def program(fault):
    """A small computation with its fault in the middle, where work has been encoded and not committed."""
    x = torch.linspace(0, 1, 24, device=DEVICE).view(4, 6)
    leaves = [(x @ x.t()).relu()]
    FAULTS[fault](leaves)
    leaves.append(leaves[0].exp())
    return [leaf.detach() for leaf in leaves]
