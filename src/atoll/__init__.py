"""Private PCA and analytics across data islands."""
