"""Reading and writing arrays where indices, masks or conditions point."""
