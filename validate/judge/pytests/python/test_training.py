"""Training on each thread: gradients and parameters are compared."""

import torch
from harness import ParallelTest, numbers, settle

STEPS_CASES = 4


class Doubled(torch.autograd.Function):
    """Reads its argument's accumulator of gradients with the interpreter lock held."""

    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


class Training(ParallelTest):
    tolerance = 1e-3

    def steps(self, device, case, each=lambda: None):
        """Trains a small model from fixed numbers; gives its gradients after each step, and its parameters."""
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        model = settle(model).train().to(device)
        x, y = numbers(10 + case, 8, 16).to(device), numbers(50 + case, 8, 4).to(device)
        found = []
        for _ in range(self.settings.iterations):
            model.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
            with torch.no_grad():  # what optim.SGD does; importing torch.optim takes seconds
                for parameter in model.parameters():
                    parameter -= 0.05 * parameter.grad
            found.append(gradients.cpu())
            each()
        return found, torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).cpu()

    def test_training(self):
        results = [None] * self.settings.threads

        def work(i):
            results[i] = self.steps(self.settings.device, i % STEPS_CASES, self.done)

        self.together(work)
        for case in range(min(STEPS_CASES, self.settings.threads)):
            gradients, parameters = self.steps(self.settings.device, case)
            on_cpu, parameters_on_cpu = self.steps("cpu", case)
            self.compare(parameters, parameters_on_cpu, f"case {case}, parameters, alone against the CPU", self.tolerance, answer=False)
            for step, gradient in enumerate(gradients):
                self.compare(gradient, on_cpu[step], f"case {case}, step {step}, alone against the CPU", self.tolerance, answer=False)
                for i in range(case, self.settings.threads, STEPS_CASES):
                    if results[i]:
                        self.compare(results[i][0][step], gradient, f"gradients of thread {i}, step {step}")
            for i in range(case, self.settings.threads, STEPS_CASES):
                if results[i]:
                    self.compare(results[i][1], parameters, f"parameters of thread {i}", answer=False)

    def test_shared_leaf(self):
        """The first that each thread does is to ask autograd for a leaf of all, in a function of Python's."""
        found = [None] * self.settings.threads

        def work(i):
            found[i] = Doubled.apply(leaf).detach()
            self.done()

        for round in range(self.settings.iterations):
            leaf = torch.full((16,), float(round), device=self.settings.device, requires_grad=True)
            self.together(work, operations=1)
            for i in range(self.settings.threads):
                self.compare(found[i].cpu(), torch.full((16,), 2.0 * round), f"thread {i}, round {round}")

    def test_lstm(self):
        """Each thread trains an LSTM of all by the operator that nn.LSTM calls where PyTorch is built for MPS; the host build's libtorch is not."""
        device, threads = self.settings.device, range(self.settings.threads)
        model = settle(torch.nn.LSTM(3, 4, 2))
        inputs, state = [numbers(70 + i, 5, 2, 3) for i in threads], [torch.zeros(2, 2, 4) for _ in range(2)]
        weights, state_there = [weight.detach().to(device) for weight in model._flat_weights], [part.to(device) for part in state]
        found: list[list[torch.Tensor]] = [[] for _ in threads]

        def work(i):
            for _ in range(self.settings.iterations):
                leaves = [weight.detach().requires_grad_() for weight in weights]
                self.busy()  # the main thread comes to the results before they are there
                output = torch.ops.aten._lstm_mps(inputs[i].to(device), state_there, leaves, True, 2, 0.0, True, False, False)[0]
                output.sum().backward()
                found[i] = [output.detach(), *(leaf.grad for leaf in leaves)]
                self.done()

        self.need_mps()
        self.together(work)
        read = [[one.cpu() for one in results] for results in found]
        for i in threads:
            model.zero_grad()
            output = model(inputs[i], tuple(state))[0]
            output.sum().backward()
            expected = [output.detach(), *(weight.grad for weight in model._flat_weights)]
            for number, (one, right) in enumerate(zip(read[i], expected, strict=True)):
                self.compare(one, right, f"thread {i}, result {number}", self.tolerance, answer=False)
        self.counts.add(answers=self.counts.operations)
