"""Mistakes that type checkers find. Each line with `# error` contains a mistake. The other lines are correct."""

import adjoint as torch
import adjoint.nn.functional as F
from adjoint import Tensor, nn, optim

x = torch.randn(2, 3)
model = nn.Linear(3, 2)

torch.ones(2, 3, dtype="float32")  # error
torch.zeros("2")  # error
torch.tensor([1.0], requires_gradient=True)  # error
torch.arange(0, 1, stride=0.1)  # error
torch.randn(2.5)  # error
torch.full((2, 2))  # error
torch.linspace(0, 1, steps="ten")  # error
torch.from_numpy([1, 2])  # error
x.to(dtyp=torch.float64)  # error
x.reshape("3", 2)  # error
x.view(size=6)  # error
x.permute(dims="10")  # error
x.transpose(0)  # error
x.unsqueeze()  # error
x.sum(dim="0")  # error
x.mean(keepdims="yes", dim=0)  # error
x.topk("3")  # error
x.topk(2).value  # error
x.sort().indexes  # error
x.max(dim=0).argmax  # error
torch.cat(x)  # error
torch.cat([x, 1])  # error
torch.stack([x], axes=0)  # error
torch.where(x > 0)[0].items()  # error
torch.matmul(x, 3)  # error
torch.lerp(x, x, "half")  # error
torch.quantile(x, "0.5")  # error
torch.clamp(x, minimum=0)  # error
torch.einsum(x, "ij->ji")  # error
torch.equal(x, 2)  # error
torch.save(x)  # error
torch.no_such_function(x)  # error
torch.float31  # error
x.backwards()  # error
x.backward(retain="yes")  # error
x.requires_grad_("yes")  # error
x.register_hook(3)  # error
x.grad.zero_()  # error
x.numpy().no_such_method()  # error
x + "1"  # error
"1" - x  # error
x["a"]  # error
x[0] = "a"  # error
F.softmax(x, dimension=1)  # error
F.conv2d(x)  # error
F.cross_entropy(x, [0, 1])  # error
F.mse_loss(x, x, reduction=3)  # error
F.relu("x")  # error
F.interpolate(x, mode=2)  # error
nn.Linear(3)  # error
nn.Linear(3, 2, biased=False)  # error
nn.Conv2d(3, 8)  # error
nn.Dropout("half")  # error
nn.LSTM(3, 4, layers=2)  # error
nn.Sequential(3)  # error
optim.SGD(model.parameters(), learning_rate=0.1)  # error
optim.Adam(model.parameters(), betas=0.9)  # error
model.load_state_dict([1])  # error
torch.manual_seed("zero")  # error
torch.autograd.grad(x, x, create_graphs=True)  # error
torch.linalg.svd(x, full=True)  # error
torch.linalg.qr(x).q  # error
torch.fft.fft(x, n="8")  # error
first: int = x.sum()  # error
second: Tensor = x.shape  # error
