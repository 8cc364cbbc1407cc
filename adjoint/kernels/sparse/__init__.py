"""Kernels for arrays of sparse layouts: conversion, arithmetic, products, reductions."""
