"""Many runs: which they are, where they go, how far they are."""
