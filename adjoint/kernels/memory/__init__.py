"""The memory behind arrays: storages, bounds, copies."""
