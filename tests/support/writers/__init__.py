"""Stock writers that never pause: Hudi's own, each in a process of its own, for compactions that run beside them."""
