"""What has to change in a catalog."""
