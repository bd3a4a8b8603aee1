"""Decompose attention scores and head outputs into parts."""
