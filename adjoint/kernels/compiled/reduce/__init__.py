"""Compiled reductions and scans."""
