"""Benchmarks of emq-native: one file is one question, `python -m bench` asks them all."""
