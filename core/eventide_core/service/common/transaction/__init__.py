"""How an action puts its files: one table of steps, and what runs, completes and withdraws them. Imports no other room."""
