"""Every check of the project in one run, grouped by the decision that it holds."""
