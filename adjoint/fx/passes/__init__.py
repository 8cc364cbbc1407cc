"""`torch.fx.passes`: programs that compute properties of graphs."""
