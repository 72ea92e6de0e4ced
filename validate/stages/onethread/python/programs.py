"""Programs by their names: a function each, which uses device mps on the calling thread and gives the values that are compared.

The names begin with what a program is of: operator, module, optimizer (PyTorch's own databases), sequence (several operators, one
after another), shape (written for this, see shapes.py).
"""

import functools
import random

import controls
import shapes
import torch
import unittests
import values
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

DEVICE = "mps"
SAMPLES = 3  # of an operator
SEQUENCES = 100  # that can be drawn from
IN_SEQUENCE = 8
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool, torch.complex64)


def word(dtype):
    return str(dtype).removeprefix("torch.")


def operators():
    """(name, entry, type, whether backward) of all operators in all types."""
    for entry in op_db:
        for dtype in DTYPES:
            if dtype not in entry.dtypes:
                continue
            yield f"operator {entry.full_name} {word(dtype)}", entry, dtype, False
            if dtype == torch.float32 and entry.supports_autograd:
                yield f"operator {entry.full_name} {word(dtype)} backward", entry, dtype, True


def of_operator(entry, dtype, backward, seed):
    """Some samples of an entry, and the gradients of each."""
    leaves = []
    with torch.set_grad_enabled(backward):
        for _, sample in values.choose_samples(entry, dtype, seed, SAMPLES, backward):
            inputs = values.on_device(sample, DEVICE, strided=False)
            result = entry(inputs.first, *inputs.rest, **inputs.keywords)
            found = values.tensors_of(result)
            if backward:
                found += gradients(sample.output_process_fn_grad(result), inputs.tensors())
            leaves += found + inputs.tensors()  # some operators change their arguments
    return leaves


def gradients(result, inputs):
    outputs = [leaf for leaf in values.tensors_of(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    if not outputs or not wanted:
        return []
    found = torch.autograd.grad([output.sum() if not output.is_complex() else output.real.sum() for output in outputs], wanted, allow_unused=True)
    return ["none" if gradient is None else gradient for gradient in found]


def of_sequence(chosen, seed):
    """Several operators in one process; one that does not run ends none of the others."""
    leaves = []
    for name, entry, dtype, backward in chosen:
        try:
            leaves += of_operator(entry, dtype, backward, seed)
        except Exception as error:  # noqa: BLE001 many have no kernel for MPS
            leaves.append(f"{name}: {type(error).__name__}: {error}")
    return leaves


def of_module(info, training, seed):
    """A module's own inputs, forward and, in training, backward."""
    leaves = []
    inputs = info.module_inputs_func(info, device=DEVICE, dtype=torch.float32, requires_grad=training, training=training)
    for number, one in enumerate(inputs):
        if number == SAMPLES or one.forward_input is None:
            break
        torch.manual_seed(seed)
        module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).to(DEVICE).train(training)
        result = module(*one.forward_input.args, **one.forward_input.kwargs)
        leaves += values.tensors_of(result)
        if training:
            leaves += gradients(result, list(module.parameters()))
    return leaves


def of_optimizer(info, number, seed):
    """Three steps of a small model with one of the optimizer's own settings; number counts modulo how many there are."""
    settings = info.optim_inputs_func(device=DEVICE)
    keywords = dict(settings[number % len(settings)].kwargs)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).to(DEVICE)
    optimizer = info.optim_cls(model.parameters(), **keywords)
    x, y = torch.randn(4, 6, device=DEVICE), torch.randn(4, 2, device=DEVICE)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(3):
        losses.append(optimizer.step(closure))
    return [loss.detach() for loss in losses if loss is not None] + [parameter.detach() for parameter in model.parameters()]


def of_test(test):
    """One of PyTorch's own tests: how it ends is its value."""
    end = unittests.run(test, lambda reason: True)
    return [end["outcome"], end.get("type", ""), end.get("text", "")]


def catalogue(seed_of):
    """All programs by name; seed_of gives the seed of a name."""
    found = {}
    every = list(operators())
    for name, entry, dtype, backward in every:
        found[name] = functools.partial(of_operator, entry, dtype, backward, seed_of(name))
    for number in range(SEQUENCES):
        name = f"sequence {number}"
        found[name] = functools.partial(of_sequence, random.Random(seed_of(name)).sample(every, IN_SEQUENCE), seed_of(name))
    for info in module_db:
        for training in (True, False):
            name = f"module {info.name} {'training' if training else 'inference'}"
            found[name] = functools.partial(of_module, info, training, seed_of(name))
    for info in optim_db:
        for number in range(3):
            name = f"optimizer {info.optim_cls.__name__} {number}"
            found[name] = functools.partial(of_optimizer, info, seed_of(name) + number, seed_of(name))
    found.update({f"control {fault}": functools.partial(controls.program, fault) for fault in controls.FAULTS})
    found.update({f"shape {name}": function for name, function in shapes.SHAPES.items()})
    return found
