"""The same jobs through other queues: `make bench-peers`."""
