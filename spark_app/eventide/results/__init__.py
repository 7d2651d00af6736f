"""What calls return to people: plans, descriptions, history."""
