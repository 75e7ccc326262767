"""An Adam phase, then an LBFGS phase with a closure; state that is born inside the loops."""

import torch

import detrain


class Fit:
    def __init__(self):
        self.t = torch.linspace(0, 6, 60).unsqueeze(1)
        self.target = torch.sin(self.t) * torch.exp(-0.2 * self.t)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(1, 10), torch.nn.Tanh(), torch.nn.Linear(10, 1)
        )
        self.curve = []
        self.calls = 0

    def loss(self):
        self.calls += 1
        return ((self.net(self.t) - self.target) ** 2).mean()


def phase(run, fit, optimizer, steps):
    for step in run.loop(range(steps), fit=fit, optimizer=optimizer):

        def closure():
            optimizer.zero_grad()
            loss = fit.loss()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        fit.curve.append(loss.item())
        run.record(loss=loss.item())
        if step % 4 == 0:
            print(
                f"{type(optimizer).__name__} {step} {loss.item():.10f} {torch.rand(1).item():.6f}"
            )
        if type(optimizer).__name__ == "LBFGS" and loss.item() < 1e-9:
            break


def main():
    with detrain.run(seed=2) as run:
        fit = Fit()
        phase(run, fit, torch.optim.Adam(fit.net.parameters(), lr=0.01), 18)
        print("between the phases", fit.calls, f"{fit.curve[-1]:.10f}")
        phase(run, fit, torch.optim.LBFGS(fit.net.parameters(), lr=0.3, max_iter=3), 18)
        print("done", fit.calls, sum(fit.curve))


main()
