"""What cleaning, archival and rollbacks may remove."""
