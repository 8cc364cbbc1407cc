"""The graph drawn, stepped through and explained."""
