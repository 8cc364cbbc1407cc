"""The code that builds the documentation: an extension of Sphinx, and the modules that it uses."""
