"""What a table shows at one moment, and the checks of single invariants on it. Imports the oracle alone."""
