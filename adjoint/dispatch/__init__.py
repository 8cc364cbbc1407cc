"""How a declaration becomes functions, nodes and messages: decorators, registry, code generation, slow path."""
