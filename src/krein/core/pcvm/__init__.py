"""PCVM: weighted sums of similarities under a sparsity prior with sign constraints."""
