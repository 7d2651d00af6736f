"""What it costs to plan, on tables that are only made up. README.md has the figures."""
