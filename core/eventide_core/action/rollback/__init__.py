"""What a rollback deletes and undoes."""
