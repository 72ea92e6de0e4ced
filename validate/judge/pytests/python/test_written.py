"""What an operator writes on one thread, another reads without waiting for anything: the tensors of `out=`, those changed in place,
those in lists, and statistics that no schema marks as written.

The operator comes late on its thread's stream, so that who does not wait for it reads what was there before. Numbers are small whole
ones, so that most results are exact.
"""

import torch
from harness import ParallelTest

SIZE = 4

# Each writes some of the targets (zeros of SIZE x SIZE, whole numbers of that shape) from x, which has that shape, too.
WRITERS = {
    "add": lambda t, n, x: torch.add(x, x, out=t),
    "addmm": lambda t, n, x: torch.addmm(x, x, x, out=t),
    "count": lambda t, n, x: torch.sum(x > 3, 1, out=n[0]),
    "amax": lambda t, n, x: torch.amax(x, 1, out=t[0]),
    "arange": lambda t, n, x: torch.arange(SIZE, out=n[0]),
    "bmm": lambda t, n, x: torch.bmm(x[None], x[None], out=t[None]),
    "cat": lambda t, n, x: torch.cat([x[:1], x[1:]], out=t),
    "clamp": lambda t, n, x: torch.clamp(x, 1, 5, out=t),
    "cumsum": lambda t, n, x: torch.cumsum(x, 0, out=t),
    "eye": lambda t, n, x: torch.eye(SIZE, out=t),
    "gather": lambda t, n, x: torch.gather(x, 1, (x > 3).long(), out=t),
    "index_select": lambda t, n, x: torch.index_select(x, 0, torch.tensor([3, 1, 0, 2], device=x.device), out=t),
    "linspace": lambda t, n, x: torch.linspace(0, 3, SIZE, out=t[0]),
    "max": lambda t, n, x: torch.max(x, 1, out=(t[0], n[0])),
    "mm": lambda t, n, x: torch.mm(x, x, out=t),
    "neg": lambda t, n, x: torch.neg(x, out=t),
    "sort": lambda t, n, x: torch.sort(-x, 1, out=(t, n)),
    "sum": lambda t, n, x: torch.sum(x, 1, out=t[0]),
    "topk": lambda t, n, x: torch.topk(x, SIZE, out=(t, n)),
    "tril": lambda t, n, x: torch.tril(x, out=t),
    "where": lambda t, n, x: torch.where(x > 3, x, -x, out=t),
    "a larger out=": lambda t, n, x: torch.add(x[None], torch.ones(3, 1, 1, device=x.device), out=t.resize_(0)),
    "addcmul_": lambda t, n, x: t.addcmul_(x, x),
    "copy_": lambda t, n, x: t.copy_(x.t()),
    "index_add_": lambda t, n, x: t.index_add_(0, torch.tensor([2, 0, 1, 3], device=x.device), x),
    "index_put_": lambda t, n, x: t.index_put_((torch.tensor([1, 2], device=x.device),), x[:2]),
    "masked_fill_": lambda t, n, x: t.masked_fill_(x > 3, 2.0),
    "masked_scatter_": lambda t, n, x: t.masked_scatter_(x > 3, x),
    "scatter_": lambda t, n, x: t.scatter_(0, (x > 3).long(), x),
    "set item": lambda t, n, x: t.__setitem__((slice(1, 3), slice(None)), x[:2]),
    "foreach": lambda t, n, x: torch._foreach_add_([t[0], t[1]], [x[0], x[1]]),
    "unscale": lambda t, n, x: torch._amp_foreach_non_finite_check_and_unscale_([t.add_(x)], n.new_zeros(1, dtype=torch.float32), x[0, 2]),
    "fused Adam": lambda t, n, x: torch._fused_adam_(
        [t[0]], [x[0]], [t[1]], [t[2]], [t[3]], [x.new_ones(())],
        lr=0.5, beta1=0.5, beta2=0.5, weight_decay=0.0, eps=1.0, amsgrad=True, maximize=False),
    "fused AdamW": lambda t, n, x: torch._fused_adamw_(
        [t[0]], [x[0]], [t[1]], [t[2]], [], [x.new_ones(())],
        lr=0.5, beta1=0.5, beta2=0.5, weight_decay=0.5, eps=1.0, amsgrad=False, maximize=False),
    "fused SGD": lambda t, n, x: torch._fused_sgd_(
        [t[0], t[1]], [x[0], x[1]], [t[2], t[3]],
        weight_decay=0.0, momentum=0.5, lr=0.5, dampening=0.0, nesterov=False, maximize=False, is_first_step=True),
    "update the scale": lambda t, n, x: torch._amp_update_scale_(t[0, :1].add_(8), n[0, :1].int(), x[0, 1:2], 2.0, 0.5, 5),
    "statistics": lambda t, n, x: torch.ops.aten._native_batch_norm_legit(x, x[0], x[1], t[0], t[1], True, 1.0, 1e-5),
}
NOT_IN_2_6 = ("unscale", "update the scale")  # PyTorch 2.6 has no kernel of MPS for them



class Written(ParallelTest):
    def targets(self, device: str):
        return torch.zeros(SIZE, SIZE, device=device), torch.zeros(SIZE, SIZE, dtype=torch.long, device=device)

    def test_written_elsewhere(self):
        """The main thread reads what the operators of other threads, which run at once, have written into its tensors."""
        device, threads = self.settings.device, range(self.settings.threads)
        x = torch.arange(16.0).view(SIZE, SIZE).remainder(7)
        on_device = x.to(device)
        for name, write in WRITERS.items():
            if name in NOT_IN_2_6 and torch.__version__.startswith("2.6."):
                continue
            expected, targets = self.targets("cpu"), [self.targets(device) for _ in threads]
            self.synchronize()
            write(*expected, x)

            def work(i, write=write, targets=targets):
                self.busy()
                write(*targets[i], on_device)
                self.done()

            self.together(work, operations=1)
            for i in threads:
                for found, right in zip(targets[i], expected, strict=True):
                    self.compare(found.cpu().double(), right.double(), f"{name}, thread {i}", tolerance=1e-6, answer=found is targets[i][0])
