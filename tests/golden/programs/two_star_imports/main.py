"""Names come from two modules by star imports: functions, a library, and data that one makes."""

from parts import *
from tools import *

model = make_model()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
for step in range(10):
    opt.zero_grad()
    loss = model(data).pow(2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item(), since(start))
