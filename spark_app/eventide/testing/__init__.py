"""The kit for testing your own adapter against eventide. The extra `testing` has pytest and Hypothesis, which it needs."""
