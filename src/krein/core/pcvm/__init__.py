"""PCVM: weighted sums of similarities under a sparsity prior, each weight held to a sign."""
