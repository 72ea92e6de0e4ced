"""A training step on each thread: gradients and parameters are compared."""

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
