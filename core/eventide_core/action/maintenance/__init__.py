"""What cleaning and archival may remove."""
