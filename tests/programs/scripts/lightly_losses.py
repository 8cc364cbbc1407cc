"""Self-supervised losses and heads of lightly."""
# kind: training
# requires: lightly

import torch
from lightly.loss import BarlowTwinsLoss, DINOLoss, NegativeCosineSimilarity, NTXentLoss, SwaVLoss, VICRegLoss
from lightly.models.modules import SimCLRProjectionHead, SimSiamPredictionHead
from lightly.models.utils import deactivate_requires_grad, update_momentum
from shown import show, train

torch.manual_seed(0)
first, second = torch.randn(8, 6), torch.randn(8, 6)
for loss in (NTXentLoss(), BarlowTwinsLoss(), VICRegLoss(), NegativeCosineSimilarity()):
    torch.manual_seed(0)
    head = SimCLRProjectionHead(6, 8, 4)
    show(type(loss).__name__)
    train(head.parameters(), lambda h=head, l=loss: l(h(first), h(second)), steps=6)
show("dino", DINOLoss(output_dim=6)([first, second], [first, second], epoch=1))
show("swav", SwaVLoss()([first, second], [first, second]))
average = SimSiamPredictionHead(6, 8, 4)
deactivate_requires_grad(average)
update_momentum(SimSiamPredictionHead(6, 8, 4), average, 0.9)
show("average", *average.parameters())
