"""Layers of torch-geometric on a small graph, in plain form (no compiled extension)."""
# kind: models
# requires: torch-geometric
# cases: GCNConv GATConv GATv2Conv SAGEConv GINConv TransformerConv GraphConv ChebConv TAGConv ARMAConv

import sys

import torch
from shown import show, train
from torch_geometric import nn
from torch_geometric.data import Batch, Data

torch.manual_seed(0)
name = sys.argv[1]
edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0, 4, 5], [1, 0, 2, 1, 3, 2, 0, 3, 5, 4]])
graph = Data(x=torch.randn(6, 4), edge_index=edges, y=torch.tensor([0, 1, 0, 1, 2, 2]))
layer = getattr(nn, name)
if name == "GINConv":
    first, second = (layer(torch.nn.Linear(a, b)) for a, b in ((4, 8), (8, 3)))
else:
    extra = {"K": 2} if name == "ChebConv" else {}
    first, second = layer(4, 8, **extra), layer(8, 3, **extra)


def scores():
    return second(first(graph.x, graph.edge_index).relu(), graph.edge_index)


show("scores", scores())
train([*first.parameters(), *second.parameters()], lambda: torch.nn.functional.cross_entropy(scores(), graph.y), lr=0.1)
batch = Batch.from_data_list([graph, graph])
show("pooled", nn.global_mean_pool(first(batch.x, batch.edge_index), batch.batch))
