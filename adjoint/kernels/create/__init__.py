"""Arrays from Python data, regular ones and random ones."""
