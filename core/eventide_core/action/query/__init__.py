"""Which file slices and log files a query reads."""
