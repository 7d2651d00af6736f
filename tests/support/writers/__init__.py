"""Stock writers that never pause: Hudi's own, each in a separate process, for compactions that run beside them."""
