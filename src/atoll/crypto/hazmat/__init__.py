"""Low-level primitives. Easy to misuse: protocols and secure sums call them, nothing above does."""
