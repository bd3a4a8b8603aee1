"""See what each attention head does."""
