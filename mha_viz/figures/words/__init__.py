"""Sentences about heads."""
