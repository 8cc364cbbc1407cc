"""What recording needs: nodes, edges, saved tensors, versions, views, modes and hooks.

Nothing here computes a derivative (`adjoint.operators`) or walks the graph (`adjoint.autograd`).
"""
