"""Verbs that plan and run compactions, and show and publish freshness. Imports no other room of verbs."""
