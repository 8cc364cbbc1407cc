"""The data structures of recording: nodes, edges, saved tensors, versions, views, modes and hooks."""
