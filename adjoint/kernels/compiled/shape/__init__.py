"""Compiled joins."""
