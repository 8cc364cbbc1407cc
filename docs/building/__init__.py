"""What the documentation is built with: an extension of Sphinx and what it stands on."""
